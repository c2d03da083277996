"""Load balancers: one address that spreads connections over several instances."""

from teraflock.api.call import Call
from teraflock.api.query import InProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.filling import filled
from teraflock.network.balancer.model import (
    BackendSeen,
    BackendState,
    BalancerOrder,
    BalancerSeen,
    ShownBalancer,
    Target,
)
from teraflock.network.naming import SUBDOMAIN
from teraflock.tenant.rules import Permission
from teraflock.wire.balancer import (
    BackendAnswer,
    BackendsRequest,
    BalancerAnswer,
    BalancerList,
    BalancerRequest,
)

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


def balancer_order(body: BalancerRequest) -> BalancerOrder:
    return filled(BalancerOrder, body, health_check=body.check, published=body.published_port)


def balancer_answer(shown: ShownBalancer, *, asked: bool = False) -> BalancerAnswer:
    """`asked`: its host was asked what it reports."""
    each = shown.balancer
    seen = shown.seen or BalancerSeen(id=each.id)
    is_published = each.published is not None
    return filled(
        BalancerAnswer,
        each,
        dns_name=f"{each.name}.{SUBDOMAIN}.{shown.domain}",
        protocol=each.protocol.value,
        check=each.health_check,
        label=f"{each.label_key}={each.label_value}" if each.label_key else "",
        tls=bool(each.certificate),
        published_address=shown.host_address if is_published else "",
        published_port=each.published,
        running=shown.seen is not None if asked else None,
        sessions=seen.sessions,
        sessions_total=seen.sessions_total,
        bytes_in=seen.bytes_in,
        bytes_out=seen.bytes_out,
        backends=_backends(shown.targets, seen),
    )


def _backends(targets: tuple[Target, ...], seen: BalancerSeen) -> tuple[BackendAnswer, ...]:
    found = {each.instance_id: each for each in seen.backends}
    return tuple(_backend(each, found.get(each.instance_id)) for each in targets)


def _backend(target: Target, seen: BackendSeen | None) -> BackendAnswer:
    seen = seen or BackendSeen(instance_id=target.instance_id, state=BackendState.UNKNOWN)
    return filled(
        BackendAnswer, seen, instance=target.name, address=target.address or "", state=seen.state.value
    )
