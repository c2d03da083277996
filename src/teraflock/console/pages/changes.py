"""Changes of one instance: its size, its snapshots, its published ports. Each says first what it costs or loses."""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.errors import BadInput, NotFound, TeraflockError
from teraflock.base.quantities import GIB
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.instances import OF_ONE, WRITE, quote_of, show_instance
from teraflock.console.pages.launch import money_of
from teraflock.console.request import Form
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.instance import ChangeRequest, InstanceAnswer, ResizeRequest
from teraflock.wire.published_port import PublishRequest
from teraflock.wire.shape import ShapeRequest
from teraflock.wire.snapshot import RestoreRequest, SnapshotRequest

pages = Pages()
ONE_SNAPSHOT: Final = f"{OF_ONE}/snapshots/{{snapshot}}"
BID_MAX: Final = 10**12
PUBLISH: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.NETWORK_WRITE}


@pages.get(f"{OF_ONE}/resize-quote", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def quote_resize(call: PageCall) -> Answer:
    """What the instance would cost with the size in the form."""
    instance = call.client.instances.get(call.path["instance"])
    after = None
    try:
        wished = _size(call.request.query)
        if wished != ShapeRequest():
            after = quote_of(call, instance, _wished(wished, instance))
    except TeraflockError as error:
        call.error = error
    before = quote_of(call, instance)
    return call.part("instances/resize_quote.html", before=before, after=after)


@pages.post(f"{OF_ONE}/resize", on_error=show_instance, **WRITE)
def resize_instance(call: PageCall) -> Answer:
    """Change its size."""
    found = call.client.instances.resize(call.path["instance"], ResizeRequest(shape=_size(call.form)))
    return call.done(_url(call), "Resizing {name}", name=found.name)


@pages.post(f"{OF_ONE}/bid", on_error=show_instance, **WRITE)
def change_bid(call: PageCall) -> Answer:
    """Offer another price for its GPUs."""
    micros = money_of(call.form, "bid")
    if micros is None:
        raise BadInput("The bid is missing", hint="Write a number such as 1.20")
    found = call.client.instances.change(
        call.path["instance"], ChangeRequest(bid_micros_per_hour=min(micros, BID_MAX))
    )
    return call.done(_url(call), "The bid of {name} is changed", name=found.name)


@pages.post(f"{OF_ONE}/snapshots", on_error=show_instance, **WRITE)
def make_snapshot(call: PageCall) -> Answer:
    """Keep its disk as it is now."""
    name = call.form.text("name")
    if not name:
        raise BadInput("A snapshot needs a name", hint="Such as `before-upgrade`")
    made = call.client.snapshots.create(call.path["instance"], SnapshotRequest(name=name))
    return call.done(_url(call), "Creating the snapshot {name}", name=made.name)


@pages.get(f"{ONE_SNAPSHOT}/restore", **WRITE)
def confirm_restore(call: PageCall) -> Answer:
    """Say what is lost, before the disk goes back."""
    return _confirm(call, "restore")


@pages.post(f"{ONE_SNAPSHOT}/restore", on_error=show_instance, **WRITE)
def restore_snapshot(call: PageCall) -> Answer:
    """Bring its disk back to a snapshot."""
    found = call.client.snapshots.restore(
        call.path["instance"], RestoreRequest(snapshot=call.path["snapshot"])
    )
    return call.done(_url(call), "Restoring the disk of {name}", name=found.name)


@pages.get(f"{ONE_SNAPSHOT}/delete", **WRITE)
def confirm_delete_snapshot(call: PageCall) -> Answer:
    """Say what is lost, before a snapshot is deleted."""
    return _confirm(call, "delete")


@pages.post(f"{ONE_SNAPSHOT}/delete", on_error=show_instance, **WRITE)
def delete_snapshot(call: PageCall) -> Answer:
    """Delete a snapshot."""
    call.client.snapshots.delete(call.path["instance"], call.path["snapshot"])
    return call.done(_url(call), "The snapshot is deleted")


@pages.post(f"{OF_ONE}/ports", on_error=show_instance, **PUBLISH)
def publish_port(call: PageCall) -> Answer:
    """Publish a port on the host."""
    port = call.form.number("guest_port")
    if port is None:
        raise BadInput("Enter the port of the instance", hint="Such as 8080")
    request = PublishRequest(instance=call.path["instance"], guest_port=port, port=call.form.number("port"))
    made = call.client.published_ports.publish(request)
    return call.done(
        _url(call), "Port {port} is published at {place}", port=port, place=f"{made.address}:{made.port}"
    )


@pages.post(f"{OF_ONE}/ports/{{port}}/close", on_error=show_instance, **PUBLISH)
def unpublish_port(call: PageCall) -> Answer:
    """Close a published port."""
    call.client.published_ports.unpublish(call.path["port"])
    return call.done(_url(call), "The port is closed, and its connections are cut")


def _confirm(call: PageCall, act: str) -> Answer:
    ref, client = call.path["instance"], call.client
    instance = client.instances.get(ref)
    snapshots = client.snapshots.list(ref)
    found = next((each for each in snapshots if call.path["snapshot"] in (each.name, each.id)), None)
    if found is None:
        raise NotFound("There is no such snapshot", hint="Open the instance to see its snapshots")
    return call.page(
        "instances/snapshot.html",
        section="instances",
        act=act,
        instance=instance,
        snapshot=found,
        quote=quote_of(call, instance),
        gib=GIB,
    )


def _size(form: Form) -> ShapeRequest:
    """The fields that are filled in. Empty ones stay as they are."""
    ram, disk = form.number("ram_gb"), form.number("disk_gb")
    return ShapeRequest(
        gpus=form.number("gpus"),
        vcpus=form.number("vcpus"),
        ram_bytes=None if ram is None else ram * GIB,
        disk_bytes=None if disk is None else disk * GIB,
    )


def _wished(new: ShapeRequest, instance: InstanceAnswer) -> ShapeRequest:
    """The whole size after the change."""
    own = instance.shape
    gpus = own.gpus if new.gpus is None else new.gpus
    return ShapeRequest(
        gpu=own.gpu if gpus else "",
        gpus=gpus or None,
        vcpus=new.vcpus or own.vcpus,
        ram_bytes=new.ram_bytes or own.ram_bytes,
        disk_bytes=new.disk_bytes or own.disk_bytes,
    )


def _url(call: PageCall) -> str:
    return call.url("instances", call.path["instance"])
