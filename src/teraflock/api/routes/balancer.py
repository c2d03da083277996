"""Load balancers: one address that spreads connections over several instances."""

from teraflock.api.call import Call
from teraflock.api.convert.balancer import balancer_answer, balancer_order
from teraflock.api.query import InProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.balancer import BackendsRequest, BalancerAnswer, BalancerList, BalancerRequest

routes = Routes(
    "balancers", scope=Scope.PROJECT, read=Permission.NETWORK_READ, write=Permission.NETWORK_WRITE
)


@routes.get("/v1/balancers")
def list_balancers(call: Call, query: InProject) -> BalancerList:
    """List the load balancers of a project, without what they report."""
    found = call.nouns.balancers.all(call.project)
    return BalancerList(items=tuple(map(balancer_answer, found)))


@routes.post(
    "/v1/balancers",
    status=201,
    creates=True,
    locks=True,
    errors=("refused", "suspended", "quota_reached", "unknown_name"),
)
def create_balancer(call: Call, query: InProject, body: BalancerRequest) -> BalancerAnswer:
    """Create a load balancer. It runs within a few seconds."""
    made = call.nouns.balancers.create(call.actor, call.project, balancer_order(body))
    return balancer_answer(made)


@routes.get("/v1/balancers/{balancer}", work=RouteWork.LONG)
def show_balancer(call: Call, query: InProject, balancer: str) -> BalancerAnswer:
    """Show one load balancer by id or name, with the state of its backends and its counters."""
    return balancer_answer(call.nouns.balancers.show(call.project, balancer), asked=True)


@routes.delete("/v1/balancers/{balancer}", status=204, locks=True)
def delete_balancer(call: Call, query: InProject, balancer: str) -> None:
    """Delete a load balancer. Its connections are cut."""
    call.nouns.balancers.delete(call.actor, call.project, balancer)


@routes.post("/v1/balancers/{balancer}/backends", locks=True, errors=("refused",))
def add_backends(call: Call, query: InProject, balancer: str, body: BackendsRequest) -> BalancerAnswer:
    """Add backends to a load balancer. Open connections go on."""
    return balancer_answer(call.nouns.balancers.add(call.actor, call.project, balancer, body.instances))


@routes.post("/v1/balancers/{balancer}/backends/remove", locks=True)
def remove_backends(call: Call, query: InProject, balancer: str, body: BackendsRequest) -> BalancerAnswer:
    """Remove backends from a load balancer. Their open connections go on until they end."""
    return balancer_answer(call.nouns.balancers.remove(call.actor, call.project, balancer, body.instances))
