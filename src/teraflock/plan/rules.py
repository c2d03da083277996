"""Choose: turn every shape into a choice or a rejection with one reason, and sort the choices.

Pure. Shapes, the day and an estimator are arguments. Every shape is examined, so none can be missed. This is fast,
because a hundred thousand offers have only a few thousand shapes.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Final

from msgspec.structs import replace

from teraflock.base.exchange import Rates
from teraflock.base.money import decimal_text
from teraflock.base.quantities import memory_text
from teraflock.catalog.providers import is_market
from teraflock.catalog.retired import retired_on
from teraflock.offer.model import Shape
from teraflock.offer.rules import is_part
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.cost import Costing
from teraflock.plan.model import Choice, Hours, Misfit, Plan, Rejection, Wish

Estimator = Callable[[Shape, int], Hours | Misfit]
"""Returns how long the work takes on a number of machines of a shape, or why it cannot run there."""

OLD_PRICE_DAYS: Final = 180  # prices change monthly, so older ones are often wrong
LAST_REASONS: Final = frozenset({"too_slow", "over_budget"})
"""Reasons to reject a shape that can run the work and has a price."""


def choose(
    shapes: Iterable[Shape],
    wish: Wish,
    estimate: Estimator,
    assumptions: Assumptions,
    rates: Rates,
    on: date,
    *,
    top: int | None = None,
) -> Plan:
    """Judge every shape. Itemise the cost of the first `top` choices, or of all.

    A shape may be chosen several times, with different numbers of machines. It is rejected if no number is suitable.
    """
    costing = Costing(wish, assumptions, rates, on)
    machines = range(wish.instances_min, wish.instances_max + 1)
    choices: list[Choice] = []
    rejected: list[Rejection] = []
    for shape in shapes:
        misfits: list[Misfit] = []
        for instances in machines:
            found = _judged(shape, instances, wish, estimate, costing)
            if isinstance(found, Choice):
                choices.append(found)
            else:
                misfits.append(found)
        if len(misfits) == len(machines):
            nearest = _nearest(misfits)
            rejected.append(Rejection(shape, nearest.code, nearest.reason, nearest.by))
    ordered = with_pareto(sorted(choices, key=order(wish)))
    shown = tuple(
        costing.itemised(choice, _hours(choice.shape, choice.instances, wish, estimate))
        for choice in ordered[:top]
    )
    return Plan(choices=shown + ordered[len(shown) :], rejected=tuple(rejected), warnings=())


def _judged(
    shape: Shape, instances: int, wish: Wish, estimate: Estimator, costing: Costing
) -> Choice | Misfit:
    misfit = unsuitable(shape, wish, instances)
    if misfit:
        return misfit
    hours = estimate(shape, instances) if wish.use == "job" else _hours(shape, instances, wish, estimate)
    if isinstance(hours, Misfit):
        return hours
    if unpriced := _unpriced(shape, wish):
        return too_late(hours, wish) or unpriced
    choice = costing.costed(shape, instances, hours)
    if isinstance(choice, Misfit):
        return choice
    return too_late(choice.hours, wish) or over_budget(choice, wish) or choice


def _unpriced(shape: Shape, wish: Wish) -> Misfit | None:
    """Return why a shape that can run the work has no price to plan with."""
    if not wish.modes and shape.mode == "free":
        return Misfit("free", "free, but may end at any time")
    if shape.standing == "refused":
        return Misfit("price_refused", "its price is implausible")
    if shape.standing == "unknown" or shape.price_micros_per_month is None:
        return Misfit("price_unknown", f"price unknown{f' since {shape.as_of}' if shape.as_of else ''}")
    if shape.doubtful:
        return Misfit("price_doubtful", "its price is uncertain: it may not be that of the whole machine")
    return None


def _nearest(misfits: Sequence[Misfit]) -> Misfit:
    """Choose the most useful reason: of the misfits that passed the most checks, the smallest miss."""
    furthest = max(misfits, key=lambda misfit: misfit.code in LAST_REASONS)
    return min((each for each in misfits if each.code == furthest.code), key=lambda misfit: misfit.by)


def _hours(shape: Shape, instances: int, wish: Wish, estimate: Estimator) -> Hours:
    hours = estimate(shape, instances) if wish.use == "job" else Hours(wish.hours, wish.hours, wish.hours)
    assert isinstance(hours, Hours), "a chosen shape can run the work"
    return hours


def unsuitable(shape: Shape, wish: Wish, instances: int = 1) -> Misfit | None:
    """Return which of the user's conditions rules out the shape, before any estimate."""
    if wish.providers and shape.provider not in wish.providers:
        return Misfit("other_provider", "its provider was not requested")
    if wish.cards and shape.gpu not in wish.cards:
        return Misfit("other_gpu", f"its GPU was not requested: {shape.gpu or shape.gpu_name or 'none'}")
    if wish.modes and shape.mode not in wish.modes:
        return Misfit("other_mode", f"its purchase mode was not requested: {shape.mode or 'unknown'}")
    if shape.kind == "none":
        return Misfit("no_gpu", "has no GPU")
    if shape.kind == "other" and (wish.use == "job" or shape.gpu not in wish.cards):
        return Misfit("not_a_gpu", f"has {shape.gpu or shape.gpu_name}, which is not a GPU")
    if shape.outdated and not wish.sources:
        return Misfit("outdated", "a newer price of the same machine is stored")
    if not wish.sources and (day := retired_on(shape.provider, shape.instance_type)):
        return Misfit("retired", f"its provider retired this type of machine on {day}")
    if wish.newer_than and shape.as_of < wish.newer_than:
        return Misfit("too_old", f"its price is from {shape.as_of or 'an unknown date'}, too long ago")
    if shape.gpu_share < 1 and not wish.slices:
        return Misfit("slice", "is a part of a GPU")
    if wish.parts and not is_part(shape.gpu_share, shape.gpu_memory_bytes, wish.parts):
        return Misfit("other_gpu", "is not the slice of a GPU that was requested")
    if instances > 1 and is_market(shape.provider):
        return Misfit("one_machine", "is one machine of a marketplace, so there is no second one")
    if shape.gpu_count is None:
        return Misfit("count_unknown", "its number of GPUs is unknown")
    gpus = instances * shape.gpu_count
    if gpus < wish.gpus_min:
        return Misfit("too_few_gpus", f"has {gpus} GPUs, fewer than {wish.gpus_min}", wish.gpus_min - gpus)
    if wish.gpus_max is not None and gpus > wish.gpus_max:
        return Misfit("too_many_gpus", f"has {gpus} GPUs, more than {wish.gpus_max}", gpus - wish.gpus_max)
    return _too_small(shape, wish, gpus)


def _too_small(shape: Shape, wish: Wish, gpus: int) -> Misfit | None:
    if wish.memory_bytes_min is None and wish.memory_total_bytes_min is None:
        return None
    if shape.gpu_memory_bytes is None:
        return Misfit("memory_unknown", "its GPU memory is unknown")
    missing = (wish.memory_bytes_min or 0) - shape.gpu_memory_bytes
    if missing > 0:
        return Misfit("memory_too_small", f"each GPU has {memory_text(missing)} too little memory", missing)
    missing = (wish.memory_total_bytes_min or 0) - shape.gpu_memory_bytes * gpus
    if missing > 0:
        return Misfit(
            "memory_total_too_small",
            f"all GPUs together have {memory_text(missing)} too little memory",
            missing,
        )
    return None


def too_late(hours: Hours, wish: Wish) -> Misfit | None:
    """Return a misfit unless the job meets the deadline in nine of ten cases."""
    late = hours.p90 - wish.deadline_hours if wish.deadline_hours is not None else 0.0
    return Misfit("too_slow", f"misses the deadline by {hours_text(late)}", late) if late > 0 else None


def over_budget(choice: Choice, wish: Wish) -> Misfit | None:
    above = choice.cost.expected_micros - wish.budget_micros if wish.budget_micros is not None else 0
    if above <= 0:
        return None
    return Misfit("over_budget", f"over the budget by {decimal_text(above, 2)} {wish.currency}", above)


def hours_text(hours: float) -> str:
    if hours == float("inf"):
        return "never ends"
    if hours < 1:
        return f"{max(1, round(hours * 60))} min"
    return f"{hours:,.1f} h" if hours < 72 else f"{hours / 24:,.1f} days"


# --- order ---------------------------------------------------------------------------------------------------------

Order = tuple[float, float, float, str, str, str, int, tuple[object, ...]]


def order(wish: Wish) -> Callable[[Choice], Order]:
    """Return the sort key: expected cost, then time, or as `sort` says. The order is total, so plans are repeatable.

    Where costs are compared, choices with an uncounted cost come last: their real cost is higher by an unknown amount.
    """

    def key(choice: Choice) -> Order:
        cost, time, shape = float(choice.cost.expected_micros), choice.hours.p50, choice.shape
        incomplete = float(bool(choice.uncounted))
        first, second, third = {
            "cost": (incomplete, cost, time),
            "time": (time, incomplete, cost),
            "risk": (choice.interruptions, incomplete, cost),
        }[wish.sort]
        last = (
            shape.gpu_share, shape.mode or "", shape.term_months or 0, shape.currency, shape.gpu_name,
            shape.gpu_memory_bytes or 0, shape.vcpus or 0.0, shape.ram_bytes or 0,
        )  # fmt: skip
        return (
            first,
            second,
            third,
            shape.provider,
            shape.instance_type,
            shape.gpu,
            choice.gpu_count,
            last,
        )

    return key


def with_pareto(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Mark the Pareto-optimal choices: no other is at least as cheap and as fast, and better in one of them.

    Choices with different uncounted costs are not compared.
    """
    marked = list(choices)
    groups: dict[tuple[str, ...], list[tuple[int, float, int]]] = {}
    for at, choice in enumerate(choices):
        groups.setdefault(choice.uncounted, []).append((choice.cost.expected_micros, choice.hours.p50, at))
    for group in groups.values():
        best_time, previous = float("inf"), (-1, 0.0)
        for cost, time, at in sorted(group):
            if time < best_time or (cost, time) == previous:
                marked[at] = replace(choices[at], pareto=True)
                best_time, previous = min(best_time, time), (cost, time)
    return tuple(marked)
