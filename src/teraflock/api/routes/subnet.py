"""Subnets: parts of a project's networks."""

from teraflock.api.call import Call
from teraflock.api.convert.subnet import subnet_answer
from teraflock.api.query import InProject, OfNetworkQuery
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.subnet import SubnetAnswer, SubnetList, SubnetRequest

routes = Routes("subnets", scope=Scope.PROJECT, read=Permission.NETWORK_READ, write=Permission.NETWORK_WRITE)


@routes.get("/v1/subnets")
def list_subnets(call: Call, query: OfNetworkQuery) -> SubnetList:
    """List the subnets of a project, or of one network."""
    found = call.nouns.subnets.all(call.project, network=query.network)
    return SubnetList(items=tuple(map(subnet_answer, found)))


@routes.post(
    "/v1/subnets",
    status=201,
    creates=True,
    locks=True,
    errors=("not_found", "refused", "suspended", "quota_reached"),
)
def create_subnet(call: Call, query: InProject, body: SubnetRequest) -> SubnetAnswer:
    """Create a subnet. Its addresses must not overlap another subnet or contain an instance."""
    made = call.nouns.subnets.create(
        call.actor, call.project, body.name, network=body.network, cidr=body.cidr, prefix=body.prefix
    )
    return subnet_answer(made)


@routes.get("/v1/subnets/{network}/{subnet}")
def show_subnet(call: Call, query: InProject, network: str, subnet: str) -> SubnetAnswer:
    """Show one subnet, by id or name."""
    return subnet_answer(call.nouns.subnets.show(call.project, network, subnet))


@routes.delete("/v1/subnets/{network}/{subnet}", status=204, errors=("bad_input",))
def delete_subnet(call: Call, query: InProject, network: str, subnet: str) -> None:
    """Delete a subnet that no instance and no ACL uses."""
    call.nouns.subnets.delete(call.actor, call.project, network, subnet)
