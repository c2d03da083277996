"""What the edges ask for: a plan over the stored offers, checked before it is handed out."""

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
    top: int,
) -> Plan:
    """The best `top` choices, each with the offer to take, and every other shape with the reason why not."""
    on = today(clock)
    with database.read() as tx:
        shapes = [*shape_store.shapes(tx, regions), *map(shape_of, servers)]
        whole = choose(shapes, wish, estimate, assumptions, rates, on, top=top)
        if broken := list(faults(whole, shapes, wish, estimate, assumptions, rates, on)):
            raise UnsoundPlan("The plan did not pass its own check", context={"faults": broken[:10]})
        own = {server.name: server for server in servers}
        shown = tuple(_with_offer(tx, choice, regions, own) for choice in whole.choices[:top])
        elsewhere = _elsewhere(shape_store.shapes(tx, ()), shapes) if regions else []
        without_gpu = store.without_any_gpu(tx)
    return replace(
        whole,
        choices=shown + whole.choices[top:],
        rejected=(*whole.rejected, *elsewhere),
        warnings=tuple(_warnings(shown, assumptions, on)),
        without_gpu=without_gpu,
    )


class LeftOut(NamedTuple):
    """One offer that was not chosen."""

    offer: Offer
    code: str
    reason: str


def left_out(
    database: Database, plan: Plan, *, servers: Sequence[Server] = (), regions: tuple[str, ...] = ()
) -> Iterator[LeftOut]:
    """Every offer with a GPU that was not chosen, one by one, each with its one reason. Read lazily."""
    why = {
        shape_store.shape_key(each.shape): each for each in plan.rejected if each.code != OTHER_REGION.code
    }
    lowest = {shape_store.shape_key(each.shape): each.shape.price_micros_per_month for each in plan.choices}
    places = tuple(region.casefold() for region in regions)
    with database.read() as tx:
        for offer in chain(map(offer_of, servers), store.with_gpu(tx)):
            key = shape_store.shape_key(offer)
            there = (
                not places or offer.source == OWN_SOURCE or any(each in place_of(offer) for each in places)
            )
            if not there:
                yield LeftOut(offer, OTHER_REGION.code, OTHER_REGION.reason)
            elif key in why:
                yield LeftOut(offer, why[key].code, why[key].reason)
            elif offer.price_micros_per_month != lowest.get(key):
                yield LeftOut(offer, "dearer", "the same machine costs less in another place")


OTHER_REGION: Final = Misfit("other_region", "in another region than asked for")


def _elsewhere(everywhere: Sequence[Shape], here: Sequence[Shape]) -> list[Rejection]:
    """What stands in other regions than those asked for, by shape."""
    found = {shape_store.shape_key(shape): shape.offers for shape in here}
    rest = ((shape, shape.offers - found.get(shape_store.shape_key(shape), 0)) for shape in everywhere)
    code, reason = OTHER_REGION.code, OTHER_REGION.reason
    return [Rejection(replace(shape, offers=offers), code, reason) for shape, offers in rest if offers]


def _with_offer(
    tx: Transaction, choice: Choice, regions: tuple[str, ...], own: Mapping[str, Server]
) -> Choice:
    if choice.shape.mode == "owned" and choice.shape.instance_type in own:
        return replace(choice, offer=offer_of(own[choice.shape.instance_type]))
    return replace(choice, offer=shape_store.cheapest_of(tx, choice.shape, regions))


def _warnings(shown: tuple[Choice, ...], assumptions: Assumptions, on: date) -> list[str]:
    warnings = []
    old = [choice for choice in shown if _age_days(choice.shape.as_of, on) > OLD_PRICE_DAYS]
    if old:
        oldest = max(_age_days(choice.shape.as_of, on) for choice in old)
        warnings.append(
            f"{len(old)} of {len(shown)} choices have prices over half a year old, up to {oldest // 30} months"
        )
    unclear = [choice for choice in shown if choice.offer and "unclear:host" in choice.offer.flags]
    if unclear:
        warnings.append(f"{len(unclear)} prices may not cover the host beside the GPU")
    networks = {
        assumptions.network(choice.shape.instance_type): choice.shape.instance_type
        for choice in shown
        if choice.instances > 1
    }
    for (gbps, because), instance_type in networks.items():
        warnings.append(
            f"machines such as {instance_type} are joined by a network of {gbps:g} Gbit/s ({because});"
            " what they tell each other was never measured"
        )
    if any(
        choice.shape.gpu_count and choice.gpu_count > 1
        for choice in shown
        if choice.hours.p10 != choice.hours.p90
    ):
        warnings.append(LINKS)
    return warnings


LINKS: Final = (
    f"GPUs of one machine are taken to reach {NVLINK_REACH:.0%} of NVLink, else {PCIE_REACH:.0%} of PCIe; computed, not"
    " measured"
)


def _age_days(as_of: str, on: date) -> int:
    return (on - date.fromisoformat(first_day(as_of))).days if as_of else 10**5
