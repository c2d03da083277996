"""Volumes: the list, and one with its instance and its snapshots."""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.errors import BadInput, NotFound, TeraflockError
from teraflock.base.quantities import GIB
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.network_tabs import NAMES_MAX, needed
from teraflock.console.paging import Sliced, sliced
from teraflock.console.request import Form
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.quote import QuoteAnswer, QuoteRequest
from teraflock.wire.shape import ShapeRequest
from teraflock.wire.volume import VolumeAnswer, VolumeCopyAnswer

pages = Pages()
ALL: Final = "/projects/{project}/volumes"
ONE: Final = f"{ALL}/{{volume}}"
READ: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_READ}
WRITE: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_WRITE}
TABS: Final = (("volumes", "Volumes"), ("datasets", "Datasets"))
GB_MAX: Final = 1 << 20


@pages.get(ALL, **READ)
def list_volumes(call: PageCall) -> Answer:
    """The volumes of a project."""
    return storage_page(call, "volumes", "storage/volumes.html", volumes=_listed(call))


@pages.get(f"{ALL}-rows", **READ)
def list_volume_rows(call: PageCall) -> Answer:
    """The rows of the list, requested again when something happens."""
    return call.part("storage/volume_rows.html", volumes=_listed(call))


@pages.get(f"{ALL}-quote", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def quote_volume(call: PageCall) -> Answer:
    """What a volume of the size in the form costs."""
    quote = None
    try:
        if size := call.request.query.number("size_gb"):
            quote = disk_quote(call, min(size, GB_MAX))
    except TeraflockError as error:
        call.error = error
    return call.part("storage/volume_quote.html", quote=quote)


@pages.post(ALL, on_error=list_volumes, **WRITE)
def create_volume(call: PageCall) -> Answer:
    """Create a volume."""
    name, copied = needed(call, "name", "The name of the volume"), bool(call.form.text("copied"))
    made = call.client.volumes.create(name, size_of(call.form), copied=copied)
    return call.done(call.url("volumes", made.name), "The volume {name} is created", name=made.name)


@pages.get(ONE, **READ)
def show_volume(call: PageCall) -> Answer:
    """One volume."""
    return storage_page(call, "volumes", "storage/volume.html", **_shown(call))


@pages.get(f"{ONE}/facts", **READ)
def show_volume_facts(call: PageCall) -> Answer:
    """What changes on the page of a volume."""
    return call.part("storage/volume_facts.html", **_shown(call))


@pages.post(f"{ONE}/resize", on_error=show_volume, **WRITE)
def resize_volume(call: PageCall) -> Answer:
    """Let it grow."""
    found = call.client.volumes.resize(call.path["volume"], size_of(call.form))
    return call.done(_url(call), "The volume {name} grows", name=found.name)


@pages.post(f"{ONE}/attach", on_error=show_volume, **WRITE)
def attach_volume(call: PageCall) -> Answer:
    """Give it to an instance."""
    instance = needed(call, "instance", "The name of the instance")
    found = call.client.volumes.attach(call.path["volume"], instance, call.form.text("path"))
    return call.done(_url(call), "{instance} has the volume at {path}", instance=instance, path=found.path)


@pages.post(f"{ONE}/detach", on_error=show_volume, **WRITE)
def detach_volume(call: PageCall) -> Answer:
    """Take it away from its instance."""
    call.client.volumes.detach(call.path["volume"])
    return call.done(_url(call), "The volume is taken away from its instance")


@pages.post(f"{ONE}/copies", on_error=show_volume, **WRITE)
def copy_volume(call: PageCall) -> Answer:
    """Copy it to another host on a schedule, or no longer."""
    stop = bool(call.form.text("stop"))
    found = call.client.volumes.copy(call.path["volume"], not stop)
    if stop:
        return call.done(_url(call), "The volume {name} is not copied any more", name=found.name)
    return call.done(_url(call), "The volume {name} is copied to another host from now on", name=found.name)


@pages.get(f"{ONE}/recover", **WRITE)
def confirm_volume_recovery(call: PageCall) -> Answer:
    """Say what is lost, before the last copy takes its place."""
    return _confirm(call, "recover")


@pages.post(f"{ONE}/recover", on_error=confirm_volume_recovery, **WRITE)
def recover_volume(call: PageCall) -> Answer:
    """Let the last copy take its place, when its host is lost."""
    found = call.client.volumes.recover(call.path["volume"])
    return call.done(_url(call), "The volume {name} is back, from its last copy", name=found.name)


@pages.post(f"{ONE}/snapshots", on_error=show_volume, **WRITE)
def snapshot_volume(call: PageCall) -> Answer:
    """Keep its content as it is now."""
    name = needed(call, "name", "The name of the snapshot")
    call.client.volumes.snapshot(call.path["volume"], name)
    return call.done(_url(call), "Creating the snapshot {name}", name=name)


@pages.get(f"{ONE}/snapshots/{{snapshot}}/restore", **WRITE)
def confirm_volume_restore(call: PageCall) -> Answer:
    """Say what is lost, before its content is replaced."""
    return _confirm(call, "restore")


@pages.post(f"{ONE}/snapshots/{{snapshot}}/restore", on_error=confirm_volume_restore, **WRITE)
def restore_volume(call: PageCall) -> Answer:
    """Replace its content with that of a snapshot."""
    found = call.client.volumes.restore(call.path["volume"], call.path["snapshot"])
    return call.done(_url(call), "Restoring the volume {name}", name=found.name)


@pages.get(f"{ONE}/snapshots/{{snapshot}}/delete", **WRITE)
def confirm_volume_snapshot_delete(call: PageCall) -> Answer:
    """Say what is lost, before a snapshot is deleted."""
    return _confirm(call, "forget")


@pages.post(f"{ONE}/snapshots/{{snapshot}}/delete", on_error=show_volume, **WRITE)
def delete_volume_snapshot(call: PageCall) -> Answer:
    """Delete a snapshot."""
    call.client.volumes.delete_snapshot(call.path["volume"], call.path["snapshot"])
    return call.done(_url(call), "The snapshot is deleted")


@pages.get(f"{ONE}/delete", **WRITE)
def confirm_volume_delete(call: PageCall) -> Answer:
    """Say what is lost, before a volume is deleted."""
    return _confirm(call, "delete")


@pages.post(f"{ONE}/delete", on_error=confirm_volume_delete, **WRITE)
def delete_volume(call: PageCall) -> Answer:
    """Delete a volume with its snapshots."""
    call.client.volumes.delete(call.path["volume"])
    return call.done(call.url("volumes"), "Deleting the volume {name}", name=call.path["volume"])


def storage_page(call: PageCall, tab: str, template: str, **values: Any) -> Answer:
    return call.page(template, section="storage", tabs=TABS, tab=tab, form=call.form, gib=GIB, **values)


def disk_quote(call: PageCall, size_gb: int) -> QuoteAnswer | None:
    """A volume costs as much as a disk of its size, which is all that a stopped instance pays for."""
    shape = ShapeRequest(vcpus=1, disk_bytes=size_gb * GIB)
    quote = call.client.quotes.get(QuoteRequest(shape=shape))
    return quote if quote.is_priced else None


def size_of(form: Form) -> int:
    size = form.number("size_gb")
    if not size:
        raise BadInput("The size is missing", hint="Write a number of GB, such as 100")
    return min(size, GB_MAX) * GIB


def _listed(call: PageCall) -> Sliced[VolumeAnswer]:
    return sliced(call.client.volumes.list(), call.request.query)


def _shown(call: PageCall) -> dict[str, Any]:
    volume = call.client.volumes.get(call.path["volume"])
    choose = volume.state == "free" and call.may(Permission.INSTANCE_WRITE)
    names = [each.name for each in call.client.instances.page(limit=NAMES_MAX).items] if choose else []
    return {"volume": volume, "names": names, "copy": _last_copy(volume)}


def _confirm(call: PageCall, act: str) -> Answer:
    volume = call.client.volumes.get(call.path["volume"])
    name = call.path.get("snapshot", "")
    snapshot = next((each for each in volume.snapshots if each.name == name), None)
    if name and snapshot is None:
        raise NotFound("There is no such snapshot", hint="Open the volume to see its snapshots")
    if act == "recover" and _last_copy(volume) is None:
        raise NotFound(
            "This volume has no copy yet",
            hint="Only a volume that is copied to another host can be recovered",
        )
    return call.page(
        "storage/confirm.html",
        section="storage",
        act=act,
        volume=volume,
        snapshot=snapshot,
        copy=_last_copy(volume),
    )


def _last_copy(volume: VolumeAnswer) -> VolumeCopyAnswer | None:
    """The newest complete copy."""
    ready = [each for each in volume.copies if each.state == "ready"]
    return max(ready, key=lambda each: each.made_at, default=None)


def _url(call: PageCall) -> str:
    return call.url("volumes", call.path["volume"])
