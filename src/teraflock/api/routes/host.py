"""Hosts, for operators."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.host import host_answer
from teraflock.api.query import HostPageQuery
from teraflock.api.route import Routes, Scope
from teraflock.fleet.model import HostKind, HostState
from teraflock.tenant.rules import Permission
from teraflock.wire.host import HostAnswer, HostChange, HostPage

routes = Routes("hosts")


@routes.get("/v1/hosts", scope=Scope.INSTALLATION, may=Permission.HOST_READ)
def list_hosts(call: Call, query: HostPageQuery) -> HostPage:
    """List hosts with their cards and what instances hold on them. Default: own hosts."""
    kind = None if query.kind == "all" else HostKind(query.kind)
    found = call.nouns.fleet.hosts(after=query.after, limit=query.limit + 1, kind=kind)
    rows, last = cut(found, query.limit)
    return HostPage(items=tuple(map(host_answer, rows)), next=last.id if last else None)


@routes.get("/v1/hosts/{host}", scope=Scope.INSTALLATION, may=Permission.HOST_READ)
def show_host(call: Call, host: str) -> HostAnswer:
    """Show one host, by id or name."""
    return host_answer(call.nouns.fleet.host(host))


@routes.patch("/v1/hosts/{host}", scope=Scope.INSTALLATION, may=Permission.HOST_WRITE)
def change_host(call: Call, host: str, body: HostChange) -> HostAnswer:
    """Set the region of a host, the private networks its instances may reach, and whether it takes new instances."""
    if body.region is not None:
        call.nouns.instances.set_region(call.actor, host, body.region)
    if body.allow_out is not None:
        call.nouns.fleet.set_allow_out(call.actor, host, body.allow_out)
    if body.state is not None:
        call.nouns.fleet.set_state(call.actor, host, HostState(body.state))
    return host_answer(call.nouns.fleet.host(host))
