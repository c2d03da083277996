"""Make plans from the stored offers. Every plan is checked before it is returned."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from teraflock.base.clock import Clock, today
from teraflock.base.errors import TeraflockError
from teraflock.base.exchange import Rates
from teraflock.catalog.places import located
from teraflock.offer import store
from teraflock.offer.model import Offer, Shape
from teraflock.offer.place.store import PlacesFound, places
from teraflock.offer.shape import store as shape_store
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.check import faults
from teraflock.plan.check_offer import offer_faults
from teraflock.plan.model import Choice, Misfit, Plan, Rejection, Wish
from teraflock.plan.owned import OWN_SOURCE, Server, offer_of, shape_of
from teraflock.plan.rules import Estimator, choose
from teraflock.plan.warnings import plan_warnings
from teraflock.storage.database import Database, Transaction

OTHER_REGION: Final = Misfit("other_region", "its region was not requested")
OTHER_SOURCE: Final = Misfit("other_source", "its source was not requested")
REGION_UNKNOWN: Final = Misfit("region_unknown", "its country is unknown")


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
    top: int,
) -> Plan:
    """Return the best `top` choices, each with its cheapest offer, and every rejected shape with a reason."""
    on = today(clock)
    with database.read() as tx:
        found = places(tx, wish.places) if wish.places else None
        inside = found.inside if found else None
        owned = [shape_of(server) for server in servers]
        shapes = [*shape_store.shapes(tx, inside, wish.sources), *(owned if _takes_own(wish) else ())]
        whole = choose(shapes, wish, estimate, assumptions, rates, on, top=top)
        if broken := list(faults(whole, shapes, wish, estimate, assumptions, rates, on)):
            raise UnsoundPlan("The plan failed an internal check", context={"faults": broken[:10]})
        own = {server.name: server for server in servers}
        shown = tuple(_with_offer(tx, choice, inside, wish.sources, own) for choice in whole.choices[:top])
        if broken := [fault for choice in shown for fault in offer_faults(choice, wish)]:
            raise UnsoundPlan("The plan failed an internal check", context={"faults": broken[:10]})
        elsewhere = _of_other_sources(tx, owned, wish)
        elsewhere += _elsewhere(tx, shapes, found, wish.sources) if found else []
        without_gpu = store.without_any_gpu(tx)
    return replace(
        whole,
        choices=shown + whole.choices[top:],
        rejected=(*whole.rejected, *elsewhere),
        warnings=tuple(plan_warnings(shown, whole.choices, wish, assumptions, on)),
        without_gpu=without_gpu,
    )


class LeftOut(NamedTuple):
    """An offer that was not chosen, and why."""

    offer: Offer
    code: str
    reason: str


def left_out(
    database: Database, plan: Plan, wish: Wish, *, servers: Sequence[Server] = ()
) -> Iterator[LeftOut]:
    """Yield every offer with a GPU that was not chosen, each with one reason. Reads lazily."""
    elsewhere = {OTHER_SOURCE.code, OTHER_REGION.code, REGION_UNKNOWN.code}
    why = {shape_store.shape_key(each.shape): each for each in plan.rejected if each.code not in elsewhere}
    lowest = {shape_store.shape_key(each.shape): each.shape.price_micros_per_month for each in plan.choices}
    with database.read() as tx:
        for offer in chain(map(offer_of, servers), store.with_gpu(tx)):
            key = shape_store.shape_key(offer)
            misplaced = _misplaced(offer, wish)
            if misplaced:
                yield LeftOut(offer, misplaced.code, misplaced.reason)
            elif key in why:
                yield LeftOut(offer, why[key].code, why[key].reason)
            elif offer.price_micros_per_month != lowest.get(key):
                yield LeftOut(offer, "dearer", "the same machine is cheaper in another region")


def _misplaced(offer: Offer, wish: Wish) -> Misfit | None:
    """Return why the source or the place of an offer rules it out. Own hosts are where the user wants them."""
    if wish.sources and offer.source not in wish.sources:
        return OTHER_SOURCE
    if not wish.places or offer.source == OWN_SOURCE:
        return None
    verdict = located(offer.provider, offer.region, offer.zone, wish.places)
    return {"in": None, "out": OTHER_REGION, "unknown": REGION_UNKNOWN}[verdict]


def _takes_own(wish: Wish) -> bool:
    return not wish.sources or OWN_SOURCE in wish.sources


def _of_other_sources(tx: Transaction, owned: Sequence[Shape], wish: Wish) -> list[Rejection]:
    """Reject the offers of sources that were not requested, by shape."""
    if not wish.sources:
        return []
    kept = [*shape_store.shapes(tx, sources=wish.sources), *(owned if _takes_own(wish) else ())]
    return _missing([*shape_store.shapes(tx), *owned], kept, OTHER_SOURCE)


def _elsewhere(
    tx: Transaction, here: Sequence[Shape], found: PlacesFound, sources: tuple[str, ...]
) -> list[Rejection]:
    """Reject the offers at other places, and those whose country is unknown, by shape."""
    unplaced = shape_store.shapes(tx, found.unknown, sources)
    rejected = [Rejection(shape, REGION_UNKNOWN.code, REGION_UNKNOWN.reason) for shape in unplaced]
    return rejected + _missing(shape_store.shapes(tx, sources=sources), (*here, *unplaced), OTHER_REGION)


def _missing(among: Sequence[Shape], judged: Sequence[Shape], why: Misfit) -> list[Rejection]:
    """Reject the offers of shapes that are not among the judged ones."""
    offers: dict[tuple[object, ...], int] = {}
    for shape in judged:
        key = shape_store.shape_key(shape)
        offers[key] = offers.get(key, 0) + shape.offers
    rest = ((shape, shape.offers - offers.get(shape_store.shape_key(shape), 0)) for shape in among)
    return [Rejection(replace(shape, offers=left), why.code, why.reason) for shape, left in rest if left]


def _with_offer(
    tx: Transaction,
    choice: Choice,
    at: Sequence[str] | None,
    sources: tuple[str, ...],
    own: Mapping[str, Server],
) -> Choice:
    if choice.shape.mode == "owned" and choice.shape.instance_type in own:
        return replace(choice, offer=offer_of(own[choice.shape.instance_type]))
    return replace(choice, offer=shape_store.cheapest_of(tx, choice.shape, at, sources))
