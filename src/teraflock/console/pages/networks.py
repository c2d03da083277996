"""Networks, their subnets and their peerings."""

from typing import Final

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.network_tabs import PEER, PROJECT, READ, WRITE, needed, network_page
from teraflock.wire.subnet import SubnetRequest

pages = Pages()
ALL: Final = f"{PROJECT}/networks"
ONE: Final = f"{ALL}/{{network}}"


@pages.get(ALL, **READ)
def list_networks(call: PageCall) -> Answer:
    """The networks of a project."""
    found = call.client.networks.list(instances=False)
    return network_page(call, "networks", "networks/list.html", networks=found)


@pages.post(ALL, on_error=list_networks, **WRITE)
def create_network(call: PageCall) -> Answer:
    """Create a network."""
    made = call.client.networks.create(needed(call, "name", "The name of the network"))
    return call.done(
        call.url("networks"), "The network {name} is created: {cidr}", name=made.name, cidr=made.cidr
    )


@pages.post(f"{ONE}/delete", on_error=list_networks, **WRITE)
def delete_network(call: PageCall) -> Answer:
    """Delete a network without instances."""
    call.client.networks.delete(call.path["network"])
    return call.done(call.url("networks"), "The network {name} is deleted", name=call.path["network"])


@pages.post(f"{ONE}/subnets", on_error=list_networks, **WRITE)
def create_subnet(call: PageCall) -> Answer:
    """Create a subnet with given addresses, or with a size."""
    size, name = call.form.text("addresses"), needed(call, "name", "The name of the subnet")
    is_size = size.removeprefix("/").isdigit()
    request = SubnetRequest(
        name=name,
        network=call.path["network"],
        cidr="" if is_size else size,
        prefix=_prefix(size) if is_size else None if size else 24,
    )
    made = call.client.subnets.create(request)
    return call.done(
        call.url("networks"), "The subnet {name} is created: {cidr}", name=made.name, cidr=made.cidr
    )


@pages.post(f"{ONE}/subnets/{{subnet}}/delete", on_error=list_networks, **WRITE)
def delete_subnet(call: PageCall) -> Answer:
    """Delete a subnet without instances."""
    call.client.subnets.delete(call.path["network"], call.path["subnet"])
    return call.done(call.url("networks"), "The subnet {name} is deleted", name=call.path["subnet"])


@pages.post(f"{ONE}/peerings", on_error=list_networks, **PEER)
def agree_peering(call: PageCall) -> Answer:
    """Request a peering, or accept one."""
    found = call.client.networks.peer(call.path["network"], *_peer(call))
    if found.state == "active":
        return call.done(call.url("networks"), "The networks are peered")
    return call.done(
        call.url("networks"),
        "Requested. The peering becomes active when the owner of the other network agrees",
    )


@pages.post(f"{ONE}/peerings/end", on_error=list_networks, **PEER)
def end_peering(call: PageCall) -> Answer:
    """End a peering, withdraw a request, or decline one."""
    call.client.networks.unpeer(call.path["network"], *_peer(call))
    return call.done(call.url("networks"), "The networks are not peered any more")


def _prefix(text: str) -> int:
    return min(int(text.removeprefix("/")[:4]), 1000)


def _peer(call: PageCall) -> tuple[str, str]:
    """Project and network. Without a project, both networks are in this one."""
    text = needed(call, "peer", "The other network")
    project, slash, network = text.rpartition("/")
    if not network or "/" in project or (slash and not project):
        raise BadInput(f"`{text[:80]}` is not a network", hint="Write `PROJECT/NETWORK`")
    return (project if slash else call.project.id), network
