"""Make plans from the stored offers. Every plan is checked before it is returned."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from teraflock.base.clock import Clock, today
from teraflock.base.errors import TeraflockError
from teraflock.base.exchange import Rates
from teraflock.estimate.parallel import NVLINK_REACH, PCIE_REACH
from teraflock.offer import store
from teraflock.offer.model import Offer, Shape
from teraflock.offer.rules import first_day, place_of
from teraflock.offer.shape import store as shape_store
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.check import faults
from teraflock.plan.model import Choice, Misfit, Plan, Rejection, Wish
from teraflock.plan.owned import OWN_SOURCE, Server, offer_of, shape_of
from teraflock.plan.rules import OLD_PRICE_DAYS, Estimator, choose
from teraflock.storage.database import Database, Transaction


class UnsoundPlan(TeraflockError):
    """The plan failed its own check. This is a bug in Teraflock."""

    code = "unsound_plan"
    exit_code = 70
    remedy = "Report it with the command you ran."


def plan(
    database: Database,
    rates: Rates,
    clock: Clock,
    wish: Wish,
    estimate: Estimator,
    assumptions: Assumptions,
    *,
    servers: Sequence[Server] = (),
    regions: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    top: int,
) -> Plan:
    """Return the best `top` choices, each with its cheapest offer, and every rejected shape with a reason."""
    on = today(clock)
    with database.read() as tx:
        owned = [shape_of(server) for server in servers]
        asked_own = owned if not sources or OWN_SOURCE in sources else []
        shapes = [*shape_store.shapes(tx, regions, sources), *asked_own]
        whole = choose(shapes, wish, estimate, assumptions, rates, on, top=top)
        if broken := list(faults(whole, shapes, wish, estimate, assumptions, rates, on)):
            raise UnsoundPlan("The plan failed an internal check", context={"faults": broken[:10]})
        own = {server.name: server for server in servers}
        shown = tuple(_with_offer(tx, choice, regions, sources, own) for choice in whole.choices[:top])
        elsewhere = [*_elsewhere(tx, shapes, owned, regions, sources)]
        without_gpu = store.without_any_gpu(tx)
    return replace(
        whole,
        choices=shown + whole.choices[top:],
        rejected=(*whole.rejected, *elsewhere),
        warnings=tuple(_warnings(shown, assumptions, on)),
        without_gpu=without_gpu,
    )


class LeftOut(NamedTuple):
    """An offer that was not chosen, and why."""

    offer: Offer
    code: str
    reason: str


def left_out(
    database: Database,
    plan: Plan,
    *,
    servers: Sequence[Server] = (),
    regions: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
) -> Iterator[LeftOut]:
    """Yield every offer with a GPU that was not chosen, each with one reason. Reads lazily."""
    why = {
        shape_store.shape_key(each.shape): each for each in plan.rejected if each.code not in ELSEWHERE_CODES
    }
    lowest = {shape_store.shape_key(each.shape): each.shape.price_micros_per_month for each in plan.choices}
    places = tuple(region.casefold() for region in regions)
    with database.read() as tx:
        for offer in chain(map(offer_of, servers), store.with_gpu(tx)):
            key = shape_store.shape_key(offer)
            there = (
                not places or offer.source == OWN_SOURCE or any(each in place_of(offer) for each in places)
            )
            if sources and offer.source not in sources:
                yield LeftOut(offer, OTHER_SOURCE.code, OTHER_SOURCE.reason)
            elif not there:
                yield LeftOut(offer, OTHER_REGION.code, OTHER_REGION.reason)
            elif key in why:
                yield LeftOut(offer, why[key].code, why[key].reason)
            elif offer.price_micros_per_month != lowest.get(key):
                yield LeftOut(offer, "dearer", "the same machine is cheaper in another region")


OTHER_REGION: Final = Misfit("other_region", "its region was not requested")
OTHER_SOURCE: Final = Misfit("other_source", "its source was not requested")
ELSEWHERE_CODES: Final = (OTHER_REGION.code, OTHER_SOURCE.code)


def _elsewhere(
    tx: Transaction,
    here: Sequence[Shape],
    owned: Sequence[Shape],
    regions: tuple[str, ...],
    sources: tuple[str, ...],
) -> Iterator[Rejection]:
    """Reject the offers of other sources, then those of other regions, by shape."""
    known = [*shape_store.shapes(tx, ()), *owned] if regions or sources else []
    asked = known
    if sources:
        asked = [*shape_store.shapes(tx, (), sources), *(owned if OWN_SOURCE in sources else ())]
        yield from _missing(known, asked, OTHER_SOURCE)
    if regions:
        yield from _missing(asked, here, OTHER_REGION)


def _missing(among: Sequence[Shape], kept: Sequence[Shape], why: Misfit) -> Iterator[Rejection]:
    found = {shape_store.shape_key(shape): shape.offers for shape in kept}
    rest = ((shape, shape.offers - found.get(shape_store.shape_key(shape), 0)) for shape in among)
    return (
        Rejection(replace(shape, offers=offers), why.code, why.reason) for shape, offers in rest if offers
    )


def _with_offer(
    tx: Transaction,
    choice: Choice,
    regions: tuple[str, ...],
    sources: tuple[str, ...],
    own: Mapping[str, Server],
) -> Choice:
    if choice.shape.mode == "owned" and choice.shape.instance_type in own:
        return replace(choice, offer=offer_of(own[choice.shape.instance_type]))
    return replace(choice, offer=shape_store.cheapest_of(tx, choice.shape, regions, sources))


def _warnings(shown: tuple[Choice, ...], assumptions: Assumptions, on: date) -> list[str]:
    warnings = []
    old = [choice for choice in shown if _age_days(choice.shape.as_of, on) > OLD_PRICE_DAYS]
    if old:
        oldest = max(_age_days(choice.shape.as_of, on) for choice in old)
        warnings.append(
            f"{len(old)} of {len(shown)} choices have prices older than six months, the oldest {oldest // 30} months"
        )
    unclear = [choice for choice in shown if choice.offer and "unclear:host" in choice.offer.flags]
    if unclear:
        warnings.append(f"{len(unclear)} of {len(shown)} prices may cover the GPU only, without its host")
    networks = {
        assumptions.network(choice.shape.instance_type): choice.shape.instance_type
        for choice in shown
        if choice.instances > 1
    }
    for (gbps, because), instance_type in networks.items():
        example = f" such as {instance_type}" if instance_type else ""
        warnings.append(
            f"the plan uses {gbps:g} Gbit/s between machines{example} ({because});"
            " communication is computed, not measured"
        )
    if any(
        choice.shape.gpu_count and choice.gpu_count > 1
        for choice in shown
        if choice.hours.p10 != choice.hours.p90
    ):
        warnings.append(LINKS)
    return warnings


LINKS: Final = (
    "the speed of several GPUs is computed, not measured:"
    f" it assumes {NVLINK_REACH:.0%} of NVLink or {PCIE_REACH:.0%} of PCIe bandwidth"
)


def _age_days(as_of: str, on: date) -> int:
    return (on - date.fromisoformat(first_day(as_of))).days if as_of else 10**5
