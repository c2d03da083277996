"""What can be reached from outside: published ports of hosts, and public addresses."""

from typing import Final

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.network_tabs import PROJECT, READ, WRITE, instance_names, needed, network_page
from teraflock.wire.published_port import PublishRequest

pages = Pages()
PORTS: Final = f"{PROJECT}/open-ports"
ADDRESSES: Final = f"{PROJECT}/addresses"


@pages.get(PORTS, **READ)
def list_open_ports(call: PageCall) -> Answer:
    """Published ports and public addresses."""
    return network_page(
        call,
        "open-ports",
        "networks/open_ports.html",
        ports=call.client.published_ports.list(),
        addresses=call.client.addresses.list(),
        names=instance_names(call),
    )


@pages.post(PORTS, on_error=list_open_ports, **WRITE)
def open_port(call: PageCall) -> Answer:
    """Publish a port of an instance."""
    guest_port = call.form.number("guest_port")
    if guest_port is None:
        raise BadInput("The port of the instance is missing", hint="Write a number such as 8080")
    port = call.form.number("port")
    request = PublishRequest(
        instance=needed(call, "instance", "The name of the instance"),
        guest_port=min(guest_port, 1 << 31),
        port=None if port is None else min(port, 1 << 31),
    )
    made = call.client.published_ports.publish(request)
    where = f"{made.address}:{made.port}"
    return call.done(_url(call), "{instance} can be reached at {where}", instance=made.instance, where=where)


@pages.post(f"{PORTS}/{{published}}/close", on_error=list_open_ports, **WRITE)
def close_port(call: PageCall) -> Answer:
    """Close a published port."""
    call.client.published_ports.unpublish(call.path["published"])
    return call.done(_url(call), "The port is closed")


@pages.post(ADDRESSES, on_error=list_open_ports, **WRITE)
def create_address(call: PageCall) -> Answer:
    """Take a public address from the operator's pool."""
    made = call.client.addresses.create()
    return call.done(_url(call), "The address {address} is yours until you release it", address=made.address)


@pages.post(f"{ADDRESSES}/{{address}}/attach", on_error=list_open_ports, **WRITE)
def attach_address(call: PageCall) -> Answer:
    """Let an address lead to an instance or a load balancer."""
    target = needed(call, "target", "The name of the instance or load balancer")
    made = call.client.addresses.attach(call.path["address"], target)
    return call.done(_url(call), "{address} leads to {target} now", address=made.address, target=made.target)


@pages.post(f"{ADDRESSES}/{{address}}/detach", on_error=list_open_ports, **WRITE)
def detach_address(call: PageCall) -> Answer:
    """Let an address lead nowhere."""
    made = call.client.addresses.detach(call.path["address"])
    return call.done(_url(call), "{address} leads nowhere now. You still pay for it", address=made.address)


@pages.post(f"{ADDRESSES}/{{address}}/release", on_error=list_open_ports, **WRITE)
def release_address(call: PageCall) -> Answer:
    """Give an address back."""
    call.client.addresses.release(call.path["address"])
    return call.done(_url(call), "The address is released")


def _url(call: PageCall) -> str:
    return call.url("open-ports")
