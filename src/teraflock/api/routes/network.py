"""Networks and peerings of a project; would a connection pass, and who can reach whom."""

from teraflock.api.call import Call
from teraflock.api.convert.network import check_answer, graph_answer, network_answer, peering_answer
from teraflock.api.query import InProject, NetworkCheckQuery, NetworkListQuery
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.network import (
    NetworkAnswer,
    NetworkCheckAnswer,
    NetworkGraphAnswer,
    NetworkList,
    NetworkRequest,
    PeeringAnswer,
)

routes = Routes("networks", scope=Scope.PROJECT, read=Permission.NETWORK_READ, write=Permission.NETWORK_WRITE)


@routes.get("/v1/network/check", errors=("bad_input", "refused"))
def check_network(call: Call, query: NetworkCheckQuery) -> NetworkCheckAnswer:
    """Say whether a connection would pass, and which rules decide. Nothing is sent."""
    ends = (query.source, query.target)
    return check_answer(
        call.nouns.network_checks.check(call.project, *ends, query.protocol, query.port, ipv6=query.ipv6)
    )


@routes.get("/v1/network/graph", errors=("refused",))
def show_network_graph(call: Call, query: InProject) -> NetworkGraphAnswer:
    """List which instances can reach each other and the internet, and with what."""
    return graph_answer(*call.nouns.network_checks.graph(call.project))


@routes.get("/v1/networks")
def list_networks(call: Call, query: NetworkListQuery) -> NetworkList:
    """List the networks of a project, with their subnets, instances and peerings."""
    found = call.nouns.networks.all(call.project, with_instances=query.instances)
    return NetworkList(items=tuple(map(network_answer, found)))


@routes.post(
    "/v1/networks", status=201, creates=True, locks=True, errors=("refused", "suspended", "quota_reached")
)
def create_network(call: Call, query: InProject, body: NetworkRequest) -> NetworkAnswer:
    """Create a network. It gets a part of the private address range that no other network has."""
    return network_answer(call.nouns.networks.create(call.actor, call.project, body.name))


@routes.get("/v1/networks/{network}")
def show_network(call: Call, query: InProject, network: str) -> NetworkAnswer:
    """Show one network, by id or name."""
    return network_answer(call.nouns.networks.show(call.project, network))


@routes.delete("/v1/networks/{network}", status=204)
def delete_network(call: Call, query: InProject, network: str) -> None:
    """Delete a network that no instance and no ACL uses. Its peerings end."""
    call.nouns.networks.delete(call.actor, call.project, network)


@routes.put(
    "/v1/networks/{network}/peerings/{peer_project}/{peer_network}",
    may=Permission.NETWORK_PEER,
    errors=("bad_input", "refused", "suspended"),
)
def peer_network(
    call: Call, query: InProject, network: str, peer_project: str, peer_network: str
) -> PeeringAnswer:
    """Request a peering with a network of another project, or accept its request.

    The answer does not say whether the other network exists, unless the key can access its project.
    """
    peer = f"{peer_project}/{peer_network}"
    return peering_answer(call.nouns.peerings.agree(call.actor, call.project, network, peer))


@routes.delete(
    "/v1/networks/{network}/peerings/{peer_project}/{peer_network}",
    may=Permission.NETWORK_PEER,
    status=204,
    errors=("bad_input", "suspended"),
)
def unpeer_network(call: Call, query: InProject, network: str, peer_project: str, peer_network: str) -> None:
    """End a peering, withdraw a request, or decline one. Connections between the networks are cut."""
    call.nouns.peerings.end(call.actor, call.project, network, f"{peer_project}/{peer_network}")
