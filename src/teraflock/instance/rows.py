"""An instance as a row, and a row as an instance. Pure; the columns stand in the order of `NAMES`."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.fleet.model import HostId
from teraflock.instance.model import (
    Access,
    Held,
    HeldGpu,
    HeldPort,
    Hold,
    Instance,
    InstanceId,
    Operation,
    Progress,
    Request,
    Shape,
    Spec,
)
from teraflock.instance.states import Phase, Wanted
from teraflock.storage.database import Row
from teraflock.tenant.model import MemberId, ProjectId

NAMES: Final = (
    "id", "project_id", "name", "wanted", "wanted_at_us", "phase", "gpu", "gpus", "vcpus", "ram_bytes", "disk_bytes",
    "held_vcpus", "held_ram_bytes", "held_disk_bytes", "held_snapshots_bytes", "image", "access", "spec", "host_id",
    "address", "host_key", "problem", "exit_code", "created_at_us", "created_by", "running_since_us", "gone_at_us",
    "request", "operation", "step", "undoing", "operation_since_us", "attempts", "generation", "sequence", "due_at_us",
    "settled", "hold", "notice", "problem_operator",
    "labels", "command_run", "stop_at_us", "stop_told", "user_data_waits", "user_data_exit_code",
    "site", "candidate", "tries", "try_next", "doing",
)  # fmt: skip
_SPEC: Final = msgspec.json.Decoder(Spec)
_HOLD: Final = msgspec.json.Decoder(Hold)
_LABELS: Final = msgspec.json.Decoder(dict[str, str])
_REQUEST: Final = msgspec.json.Decoder(Request)


def values_of(instance: Instance) -> dict[str, Any]:
    progress, shape, held = instance.progress, instance.shape, instance.held
    return {
        "id": instance.id,
        "project_id": instance.project_id,
        "name": instance.name,
        "wanted": instance.wanted,
        "wanted_at_us": microseconds(instance.wanted_at),
        "phase": instance.phase,
        "gpu": shape.gpu,
        "gpus": shape.gpus,
        "vcpus": shape.vcpus,
        "ram_bytes": shape.ram_bytes,
        "disk_bytes": shape.disk_bytes,
        "held_vcpus": held.vcpus,
        "held_ram_bytes": held.ram_bytes,
        "held_disk_bytes": held.disk_bytes,
        "held_snapshots_bytes": held.snapshots_bytes,
        "image": instance.image,
        "access": instance.access,
        "spec": msgspec.json.encode(instance.spec).decode(),
        "host_id": instance.host_id,
        "address": instance.address,
        "host_key": instance.host_key,
        "problem": instance.problem,
        "exit_code": instance.exit_code,
        "created_at_us": microseconds(instance.created_at),
        "created_by": instance.created_by,
        "running_since_us": microseconds(instance.running_since) if instance.running_since else None,
        "gone_at_us": microseconds(instance.gone_at) if instance.gone_at else None,
        "request": msgspec.json.encode(instance.request).decode() if instance.request else "",
        "operation": progress.operation if progress else "",
        "step": progress.step if progress else "",
        "undoing": int(progress.undoing) if progress else 0,
        "operation_since_us": microseconds(progress.since) if progress else 0,
        "attempts": progress.attempts if progress else 0,
        "generation": instance.generation,
        "sequence": instance.sequence,
        "due_at_us": microseconds(instance.due_at),
        "settled": int(instance.settled),
        "hold": msgspec.json.encode(instance.hold).decode() if instance.hold else "",
        "notice": instance.notice,
        "problem_operator": instance.problem_operator,
        "labels": labels_text(instance.labels),
        "command_run": instance.command_run,
        "stop_at_us": microseconds(instance.stop_at) if instance.stop_at else None,
        "stop_told": int(instance.stop_told),
        "user_data_waits": int(instance.user_data_waits),
        "user_data_exit_code": instance.user_data_exit_code,
        "site": instance.site,
        "candidate": instance.candidate,
        "tries": progress.tries if progress else 0,
        "try_next": int(progress.try_next) if progress else 0,
        "doing": progress.doing if progress else "",
    }


def instance_from(row: Row, gpus: tuple[HeldGpu, ...], ports: tuple[HeldPort, ...]) -> Instance:
    (
        id, project_id, name, wanted, wanted_at_us, phase, gpu, count, vcpus, ram, disk, held_vcpus, held_ram,
        held_disk, held_snapshots, image, access, spec, host_id, address, host_key, problem, exit_code, created_at_us,
        created_by, running_since_us, gone_at_us, request, operation, step, undoing, since_us, attempts, generation,
        sequence, due_at_us, settled, hold, notice, problem_operator,
        labels, command_run, stop_at_us, stop_told, user_data_waits, user_data_exit_code,
        site, candidate, tries, try_next, doing,
    ) = row  # fmt: skip
    progress = (
        Progress(
            operation=Operation(operation),
            since=at_microseconds(since_us),
            step=step,
            undoing=bool(undoing),
            attempts=attempts,
            tries=tries,
            try_next=bool(try_next),
            doing=doing,
        )
        if operation
        else None
    )
    return Instance(
        id=InstanceId(id),
        project_id=ProjectId(project_id),
        name=name,
        wanted=Wanted(wanted),
        wanted_at=at_microseconds(wanted_at_us),
        phase=Phase(phase),
        shape=Shape(gpu=gpu, gpus=count, vcpus=vcpus, ram_bytes=ram, disk_bytes=disk),
        held=Held(
            vcpus=held_vcpus,
            ram_bytes=held_ram,
            disk_bytes=held_disk,
            snapshots_bytes=held_snapshots,
            gpus=gpus,
            ports=ports,
        ),
        image=image,
        access=Access(access),
        spec=_SPEC.decode(spec),
        host_id=HostId(host_id) if host_id else None,
        address=address,
        host_key=host_key,
        problem=problem,
        exit_code=exit_code,
        created_at=at_microseconds(created_at_us),
        created_by=MemberId(created_by),
        running_since=at_microseconds(running_since_us) if running_since_us is not None else None,
        gone_at=at_microseconds(gone_at_us) if gone_at_us is not None else None,
        request=_REQUEST.decode(request) if request else None,
        progress=progress,
        generation=generation,
        sequence=sequence,
        due_at=at_microseconds(due_at_us),
        settled=bool(settled),
        hold=_HOLD.decode(hold) if hold else None,
        notice=notice,
        problem_operator=problem_operator,
        labels=_LABELS.decode(labels) if labels else {},
        command_run=command_run,
        stop_at=at_microseconds(stop_at_us) if stop_at_us is not None else None,
        stop_told=bool(stop_told),
        user_data_waits=bool(user_data_waits),
        user_data_exit_code=user_data_exit_code,
        site=site,
        candidate=candidate,
    )


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels as rows and events have them: the same labels always make the same text."""
    return msgspec.json.encode(labels, order="sorted").decode()
