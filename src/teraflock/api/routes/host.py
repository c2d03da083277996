"""Hosts, for operators."""

from teraflock.api.call import Call, cut
from teraflock.api.query import HostCostPageQuery, HostPageQuery, LostQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.clock import at_microseconds
from teraflock.base.errors import BadInput
from teraflock.base.filling import filled
from teraflock.base.limits import NUMBER_MAX
from teraflock.bill.margin.model import CostRate
from teraflock.fleet.fragmentation import CardCapacity
from teraflock.fleet.model import Gpu, Host, HostId, HostKind, HostState
from teraflock.fleet.slicing.model import SlicingView
from teraflock.fleet.slicing.rules import state_of
from teraflock.instance.join.model import HostLosses, Invited
from teraflock.tenant.model import By
from teraflock.tenant.rules import Permission
from teraflock.wire.host import (
    CardCapacityAnswer,
    HostAnswer,
    HostCapacityList,
    HostChange,
    HostCostAnswer,
    HostCostPage,
    HostCostRequest,
    HostGpuAnswer,
    HostPage,
    HostRemovedAnswer,
    HostUpgradeAnswer,
    InvitationAnswer,
    InvitationRequest,
    SlicingAnswer,
    SlicingPage,
    SlicingRequest,
)

routes = Routes("hosts", scope=Scope.INSTALLATION, read=Permission.HOST_READ, write=Permission.HOST_WRITE)


@routes.get("/v1/hosts")
def list_hosts(call: Call, query: HostPageQuery) -> HostPage:
    """List hosts with their cards and what instances hold on them. Default: own hosts."""
    kind = None if query.kind == "all" else HostKind(query.kind)
    found = call.nouns.fleet.hosts(after=query.after, limit=query.limit + 1, kind=kind)
    rows, last = cut(found, query.limit)
    return HostPage(items=tuple(map(host_answer, rows)), next=last.id if last else None)


@routes.get("/v1/host-capacity")
def show_host_capacity(call: Call) -> HostCapacityList:
    """Show how many cards are free, and how they are spread over the hosts."""
    return HostCapacityList(items=tuple(map(capacity_answer, call.nouns.fleet.capacity())))


@routes.get("/v1/hosts/{host}")
def show_host(call: Call, host: str) -> HostAnswer:
    """Show one host, by id or name."""
    return host_answer(call.nouns.fleet.host(host))


@routes.patch("/v1/hosts/{host}")
def change_host(call: Call, host: str, body: HostChange) -> HostAnswer:
    """Change a host: region, labels, private networks its instances may reach, and whether it takes new instances."""
    if body.region is not None:
        call.nouns.instances.set_region(call.actor, host, body.region)
    if body.allow_out is not None:
        call.nouns.fleet.set_allow_out(call.actor, host, body.allow_out)
    if body.labels is not None:
        call.nouns.fleet.set_labels(call.actor, host, body.labels)
    if body.state is not None:
        call.nouns.fleet.set_state(call.actor, host, HostState(body.state), drain_at=body.drain_at)
    elif body.drain_at is not None:
        raise BadInput("Only a draining host has a deadline", hint="Set `state` to `draining`")
    return host_answer(call.nouns.fleet.host(host))


@routes.get("/v1/hosts/{host}/slices")
def list_slicings(call: Call, host: str) -> SlicingPage:
    """List the cards of a host that were divided, or made whole again."""
    return SlicingPage(items=tuple(map(slicing_answer, call.nouns.slicings.of_host(host))))


@routes.put("/v1/hosts/{host}/slices/{card}", errors=("unknown_name",))
def divide_card(call: Call, host: str, card: str, body: SlicingRequest) -> SlicingPage:
    """Divide a free card into slices (MIG), or make it whole again. It takes the host a few seconds."""
    call.nouns.slicings.divide(call.actor, host, card, body.profiles)
    return SlicingPage(items=tuple(map(slicing_answer, call.nouns.slicings.of_host(host))))


@routes.post("/v1/host-invitations", status=201, creates=True, secret=True, errors=("conflict", "refused"))
def invite_host(call: Call, body: InvitationRequest) -> InvitationAnswer:
    """Create a one-time token with which a host can join within an hour."""
    invited = call.nouns.joins.invite(
        call.actor, name=body.name, address=body.address, trusted_wire=body.trusted_wire
    )
    return invitation_answer(invited)


@routes.post(
    "/v1/hosts/{host}/upgrade",
    work=RouteWork.LONG,
    errors=("refused", "bad_input", "bad_credentials", "engine_down", "engine_busy", "engine_refused"),
)
def upgrade_host(call: Call, host: str) -> HostUpgradeAnswer:
    """Install the server's version on a joined host and restart its host program. Instances keep running."""
    done = call.nouns.joins.upgrade(call.actor, host)
    return HostUpgradeAnswer(host=done.name, before=done.before, version=done.version)


@routes.delete("/v1/hosts/{host}")
def remove_host(call: Call, host: str, query: LostQuery) -> HostRemovedAnswer:
    """Remove a joined host that is drained and has no instances and no volumes, or that is lost. Its certificate is no
    longer accepted."""
    if query.lost:
        return host_removed_answer(call.nouns.joins.remove_lost(call.actor, host))
    call.nouns.joins.remove(call.actor, host)
    return host_removed_answer(HostLosses())


@routes.get("/v1/host-costs")
def list_host_costs(call: Call, query: HostCostPageQuery) -> HostCostPage:
    """List what operators recorded as the cost of own hosts, in the order it was recorded."""
    after = min(int(query.after), NUMBER_MAX) if query.after.isdigit() else 0
    found = call.nouns.bills.host_costs.history(query.host, after=after, limit=query.limit + 1)
    rows, last = cut(tuple(found), query.limit)
    names = call.nouns.fleet.names(sorted({HostId(rate.host_id) for _, rate in rows}))
    items = tuple(host_cost_answer(number, rate, names[HostId(rate.host_id)]) for number, rate in rows)
    return HostCostPage(items=items, next=str(last[0]) if last else None)


@routes.put("/v1/hosts/{host}/cost", errors=("unknown_name",))
def set_host_cost(call: Call, host: str, body: HostCostRequest) -> HostCostAnswer:
    """Record what an own host costs an hour, from now or another time on. What was recorded before stays on record."""
    found = call.nouns.fleet.own_host(host)
    number, rate = call.nouns.bills.host_costs.set(
        found, body.micros_per_hour, body.currency, start=body.starts_at, by=By(actor=call.actor)
    )
    return host_cost_answer(number, rate, found.name)


def host_answer(host: Host) -> HostAnswer:
    return filled(
        HostAnswer,
        host,
        disk_limits=host.disk_limits.value,
        gpus=tuple(_gpu(card) for card in host.gpus),
        cost_micros_per_hour=host.cost.micros_per_hour if host.cost else None,
        cost_currency=host.cost.currency if host.cost else "",
    )


def invitation_answer(invited: Invited) -> InvitationAnswer:
    return InvitationAnswer(
        token=invited.token,
        server=invited.place.server,
        fingerprint=invited.place.fingerprint,
        expires_at=invited.expires_at,
    )


def host_removed_answer(losses: HostLosses) -> HostRemovedAnswer:
    return filled(HostRemovedAnswer, losses)


def _gpu(card: Gpu) -> HostGpuAnswer:
    return filled(HostGpuAnswer, card, free=card.instance_id is None)


def slicing_answer(view: SlicingView) -> SlicingAnswer:
    slicing = view.slicing
    return filled(SlicingAnswer, slicing, card=slicing.address, state=state_of(view))


def host_cost_answer(number: int, rate: CostRate, name: str) -> HostCostAnswer:
    return filled(
        HostCostAnswer,
        rate,
        number=number,
        host=name,
        starts_at=at_microseconds(rate.from_us),
        recorded_at=at_microseconds(rate.recorded_at_us),
    )


def capacity_answer(capacity: CardCapacity) -> CardCapacityAnswer:
    return filled(CardCapacityAnswer, capacity)
