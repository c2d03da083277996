"""Instances as rows. Pure. `NAMES` has the columns in order. Cards and ports are in other tables."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.instance.model import HeldGpu, HeldPort, Instance, Operation, Progress
from teraflock.storage.database import Row
from teraflock.storage.table import Table

_INSTANCE: Final = Table(
    "instance",
    Instance,
    embed={"shape": "", "held": "held_"},
    leave_out=("held.gpus", "held.ports", "labels", "progress"),
)
_PROGRESS: Final = (
    "operation", "step", "undoing", "operation_since_us", "attempts", "tries", "try_next", "doing",
)  # fmt: skip
NAMES: Final = (*_INSTANCE.columns, "labels", *_PROGRESS)
_IDLE: Final = ("", "", 0, 0, 0, 0, 0, "")
_LABELS: Final = msgspec.json.Decoder(dict[str, str])


def values_of(instance: Instance) -> dict[str, Any]:
    row = (*_INSTANCE.row(instance), labels_text(instance.labels), *_progress_row(instance.progress))
    return dict(zip(NAMES, row, strict=True))


def instance_from(row: Row, gpus: tuple[HeldGpu, ...], ports: tuple[HeldPort, ...]) -> Instance:
    own = len(_INSTANCE.columns)
    labels = row[own]
    found = _INSTANCE.value(
        row[:own], labels=_LABELS.decode(labels) if labels else {}, progress=_progress_from(row[own + 1 :])
    )
    if not gpus and not ports:
        return found
    return msgspec.structs.replace(found, held=msgspec.structs.replace(found.held, gpus=gpus, ports=ports))


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels as text for rows and events. The same labels always give the same text."""
    return msgspec.json.encode(labels, order="sorted").decode()


def _progress_row(progress: Progress | None) -> Row:
    if progress is None:
        return _IDLE
    return (
        progress.operation.value, progress.step, int(progress.undoing), microseconds(progress.since),
        progress.attempts, progress.tries, int(progress.try_next), progress.doing,
    )  # fmt: skip


def _progress_from(row: Row) -> Progress | None:
    operation, step, undoing, since_us, attempts, tries, try_next, doing = row
    if not operation:
        return None
    return Progress(
        operation=Operation(operation), since=at_microseconds(since_us), step=step, undoing=bool(undoing),
        attempts=attempts, tries=tries, try_next=bool(try_next), doing=doing,
    )  # fmt: skip
