"""A project's network: would a connection pass, and who can reach whom."""

from teraflock.api.call import Call
from teraflock.api.convert.network import check_answer, graph_answer
from teraflock.api.query import InProject, NetworkCheckQuery
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.network import NetworkCheckAnswer, NetworkGraphAnswer

routes = Routes("network")


@routes.get(
    "/v1/network/check",
    scope=Scope.PROJECT,
    may=Permission.NETWORK_READ,
    errors=("bad_input", "refused"),
)
def check_network(call: Call, query: NetworkCheckQuery) -> NetworkCheckAnswer:
    """Say whether a connection would pass, and which rules decide. Nothing is sent."""
    return check_answer(
        call.nouns.networks.check(call.project, query.source, query.target, query.protocol, query.port)
    )


@routes.get("/v1/network/graph", scope=Scope.PROJECT, may=Permission.NETWORK_READ, errors=("refused",))
def show_network_graph(call: Call, query: InProject) -> NetworkGraphAnswer:
    """List which instances can reach each other and the internet, and with what."""
    return graph_answer(*call.nouns.networks.graph(call.project))
