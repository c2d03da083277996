"""Choosing: every shape becomes a choice or a rejection with one reason, and the choices are put in order.

Pure: shapes, a clock's day and an estimator come in as values. Nothing is pruned, so that nothing can be missed; it is
quick because a hundred thousand offers are a few thousand shapes.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Final

from msgspec.structs import replace

from teraflock.base.exchange import Rates
from teraflock.base.money import decimal_text
from teraflock.base.quantities import memory_text
from teraflock.offer.model import Shape
from teraflock.plan.assumptions import Assumptions, billing_of
from teraflock.plan.cost import costed, itemised
from teraflock.plan.model import Choice, Hours, Misfit, Plan, Rejection, Wish

Estimator = Callable[[Shape], Hours | Misfit]
"""How long the work takes on the GPUs of a shape, or why it cannot run there."""

OLD_PRICE_DAYS: Final = 180  # prices move by the month; half a year is another market


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
    """Judge every shape. The first `top` choices, or all, come with the addends of their cost."""
    choices: list[Choice] = []
    rejected: list[Rejection] = []
    for shape in shapes:
        found = _judged(shape, wish, estimate, assumptions, rates, on)
        if isinstance(found, Choice):
            choices.append(found)
        else:
            rejected.append(Rejection(shape, found.code, found.reason, found.by))
    ordered = with_pareto(sorted(choices, key=order(wish)))
    shown = tuple(
        itemised(
            choice,
            _hours(choice.shape, wish, estimate),
            wish,
            assumptions,
            billing_of(choice.shape.provider),
            rates,
            on,
        )
        for choice in ordered[:top]
    )
    ordered = shown + ordered[len(shown) :]
    return Plan(choices=ordered, rejected=tuple(rejected), warnings=())


def _judged(
    shape: Shape, wish: Wish, estimate: Estimator, assumptions: Assumptions, rates: Rates, on: date
) -> Choice | Misfit:
    misfit = unsuitable(shape, wish)
    if misfit:
        return misfit
    hours = estimate(shape) if wish.use == "job" else _hours(shape, wish, estimate)
    if isinstance(hours, Misfit):
        return hours
    if shape.standing == "refused":
        return Misfit("price_refused", "its price cannot be true")
    if shape.standing == "unknown" or shape.price_micros_per_month is None:
        return Misfit("price_unknown", f"price unknown{f' since {shape.as_of}' if shape.as_of else ''}")
    if shape.doubtful:
        return Misfit("price_doubtful", "its price is doubtful: it may not cover the whole machine")
    choice = costed(shape, hours, wish, assumptions, billing_of(shape.provider), rates, on)
    return too_late(choice, wish) or too_dear(choice, wish) or choice


def _hours(shape: Shape, wish: Wish, estimate: Estimator) -> Hours:
    hours = estimate(shape) if wish.use == "job" else Hours(wish.hours, wish.hours, wish.hours)
    assert isinstance(hours, Hours), "a choice was made where the work does not run"
    return hours


def unsuitable(shape: Shape, wish: Wish) -> Misfit | None:
    """Why the user's own conditions rule a shape out, before any estimate."""
    if wish.providers and shape.provider not in wish.providers:
        return Misfit("other_provider", "another provider than asked for")
    if wish.modes and shape.mode not in wish.modes:
        return Misfit("other_mode", f"sold {shape.mode or 'in a mode not told'}, not as asked for")
    if not wish.modes and shape.mode == "free":
        return Misfit("free", "free, but nothing promises that it runs to the end")
    if shape.kind == "none":
        return Misfit("no_gpu", "has no GPU")
    if shape.gpu_count is None:
        return Misfit("count_unknown", "how many GPUs it has is not told")
    if shape.gpu_count < wish.gpus_min:
        return Misfit("too_few_gpus", f"has {shape.gpu_count} of at least {wish.gpus_min} GPUs")
    if wish.gpus_max is not None and shape.gpu_count > wish.gpus_max:
        return Misfit("too_many_gpus", f"has {shape.gpu_count} GPUs, more than {wish.gpus_max}")
    return _too_small(shape, wish)


def _too_small(shape: Shape, wish: Wish) -> Misfit | None:
    if wish.memory_bytes_min is None and wish.memory_total_bytes_min is None:
        return None
    if shape.gpu_memory_bytes is None:
        return Misfit("memory_unknown", "its GPU memory is not told")
    missing = (wish.memory_bytes_min or 0) - shape.gpu_memory_bytes
    if missing > 0:
        return Misfit("memory_too_small", f"lacks {memory_text(missing)} on each GPU", missing)
    missing = (wish.memory_total_bytes_min or 0) - shape.gpu_memory_bytes * (shape.gpu_count or 0)
    if missing > 0:
        return Misfit("memory_total_too_small", f"lacks {memory_text(missing)} over all GPUs", missing)
    return None


def too_late(choice: Choice, wish: Wish) -> Misfit | None:
    """Nine times of ten the deadline must hold."""
    late = choice.hours.p90 - wish.deadline_hours if wish.deadline_hours is not None else 0.0
    return Misfit("too_slow", f"too slow for the deadline by {hours_text(late)}", late) if late > 0 else None


def too_dear(choice: Choice, wish: Wish) -> Misfit | None:
    above = choice.cost.expected_micros - wish.budget_micros if wish.budget_micros is not None else 0
    if above <= 0:
        return None
    return Misfit("over_budget", f"over the budget by {decimal_text(above, 2)} {wish.currency}", above)


def hours_text(hours: float) -> str:
    if hours == float("inf"):
        return "for ever"
    if hours < 1:
        return f"{max(1, round(hours * 60))} min"
    return f"{hours:,.1f} h" if hours < 72 else f"{hours / 24:,.1f} days"


# --- order ---------------------------------------------------------------------------------------------------------

Order = tuple[float, float, str, str, str, int, float]


def order(wish: Wish) -> Callable[[Choice], Order]:
    """By expected cost, ties by time; or as `sort` says. Total."""

    def key(choice: Choice) -> Order:
        cost, time, shape = choice.cost.expected_micros, choice.hours.p50, choice.shape
        first, second = {
            "cost": (float(cost), time),
            "time": (time, float(cost)),
            "risk": (choice.interruptions, float(cost)),
        }[wish.sort]
        return (
            first,
            second,
            shape.provider,
            shape.instance_type,
            shape.gpu,
            shape.gpu_count or 0,
            shape.gpu_share,
        )

    return key


def with_pareto(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Mark the choices than which no other is both cheaper and faster (nor as good in one and better in the other)."""
    best_time = float("inf")
    front: set[int] = set()
    by_cost = sorted(
        range(len(choices)), key=lambda i: (choices[i].cost.expected_micros, choices[i].hours.p50)
    )
    previous: tuple[int, float] | None = None
    for i in by_cost:
        cost, time = choices[i].cost.expected_micros, choices[i].hours.p50
        if time < best_time or previous == (cost, time):
            front.add(i)
            best_time, previous = min(best_time, time), (cost, time)
    return tuple(replace(choice, pareto=i in front) for i, choice in enumerate(choices))
