"""The checker: proves of a plan, whoever made it, that it keeps its promises. Shares no code with the planner.

It works out every sum again from the shape and the wish, and looks through all that was left out. A plan
that fails is a fault of ours: it is reported as such and never shown.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import groupby, pairwise

from teraflock.base.exchange import Rates
from teraflock.offer.model import Shape
from teraflock.plan.model import Choice, Hours, Misfit, Plan, Rejection, Wish

HOURS_PER_MONTH = 730


def faults(
    plan: Plan,
    shapes: Sequence[Shape],
    wish: Wish,
    estimate: Callable[[Shape], Hours | Misfit],
    rates: Rates,
    on: date,
) -> Iterator[str]:
    """Every promise that is broken, in words. Nothing if the plan is sound."""
    yield from _each_once(plan, shapes)
    for number, choice in enumerate(plan.choices, start=1):
        for fault in _choice_faults(choice, wish, estimate, rates, on):
            yield f"choice {number} ({choice.shape.provider} {choice.shape.instance_type}): {fault}"
    yield from _order_faults(plan.choices, wish)
    yield from _pareto_faults(plan.choices)
    for rejection in plan.rejected:
        for fault in _rejection_faults(rejection, wish):
            yield f"rejected {rejection.shape.provider} {rejection.shape.instance_type}: {fault}"


def _each_once(plan: Plan, shapes: Sequence[Shape]) -> Iterator[str]:
    told = [choice.shape for choice in plan.choices] + [rejection.shape for rejection in plan.rejected]
    if len(told) != len(shapes) or set(told) != set(shapes):
        yield f"{len(shapes)} shapes were offered, {len(told)} were judged"


def _choice_faults(
    choice: Choice, wish: Wish, estimate: Callable[[Shape], Hours | Misfit], rates: Rates, on: date
) -> Iterator[str]:
    shape, cost = choice.shape, choice.cost
    if choice.parts and sum(part.micros for part in choice.parts) != cost.expected_micros:
        yield f"its parts sum to {sum(part.micros for part in choice.parts)}, not to {cost.expected_micros}"
    if not cost.low_micros <= cost.expected_micros <= cost.high_micros:
        yield "its expected cost lies outside its interval"
    if not choice.hours.p10 <= choice.hours.p50 <= choice.hours.p90:
        yield "its expected time lies outside its interval"
    if shape.standing != "priced" or shape.doubtful or shape.price_micros_per_month is None:
        yield "its price is not known well enough to be chosen"
        return
    if wish.deadline_hours is not None and choice.hours.p90 > wish.deadline_hours:
        yield "it misses the deadline"
    if wish.budget_micros is not None and cost.expected_micros > wish.budget_micros:
        yield "it is over the budget"
    if not wish.gpus_min <= (shape.gpu_count or 0) <= (wish.gpus_max or 10**9):
        yield "it has another number of GPUs than asked for"
    memory = shape.gpu_memory_bytes or 0
    if memory < (wish.memory_bytes_min or 0) or memory * (shape.gpu_count or 0) < (
        wish.memory_total_bytes_min or 0
    ):
        yield "it has less memory than asked for"
    undisturbed = Hours(wish.hours, wish.hours, wish.hours) if wish.use != "job" else estimate(shape)
    if isinstance(undisturbed, Misfit):
        yield f"the work does not run there: {undisturbed.reason}"
        return
    if choice.hours.p50 < undisturbed.p50:
        yield "it claims to finish faster than the work takes undisturbed"
    there, here = rates.rate(shape.currency, on).micros_per_usd, rates.rate(wish.currency, on).micros_per_usd
    monthly = shape.price_micros_per_month * here / there
    least = monthly / HOURS_PER_MONTH * choice.hours.p50
    if cost.expected_micros + 1 < least * (1 - 1e-9):
        yield f"it costs less than its hours at its price: {cost.expected_micros} for {least:.0f}"
    if shape.mode in ("monthly", "reserved") and choice.parts:
        rent = sum(part.micros for part in choice.parts if part.what != "disk")
        months = rent / monthly if monthly else 0.0
        if abs(months - round(months)) > 1e-3:
            yield "it is billed by the month, but not for whole months"


def _order_faults(choices: Sequence[Choice], wish: Wish) -> Iterator[str]:
    for earlier, later in pairwise(choices):
        first = {
            "cost": (earlier.cost.expected_micros > later.cost.expected_micros),
            "time": (earlier.hours.p50 > later.hours.p50),
            "risk": (earlier.interruptions > later.interruptions),
        }[wish.sort]
        if first:
            yield f"{earlier.shape.provider} stands before {later.shape.provider}, which is better by {wish.sort}"


def _pareto_faults(choices: Sequence[Choice]) -> Iterator[str]:
    """A marked choice is beaten by none; an unmarked one by some. By steps in cost, so in n log n."""
    fastest_below = float("inf")  # among the strictly cheaper
    by_cost = sorted(choices, key=_expected)
    for _, alike in groupby(by_cost, key=_expected):
        level = list(alike)
        fastest_here = min(choice.hours.p50 for choice in level)
        for choice in level:
            beaten = choice.hours.p50 > fastest_here or fastest_below <= choice.hours.p50
            if beaten == choice.pareto:
                marked = "" if choice.pareto else "not "
                yield f"{choice.shape.provider} {choice.shape.instance_type} is {marked}marked as best"
        fastest_below = min(fastest_below, fastest_here)


def _expected(choice: Choice) -> int:
    return choice.cost.expected_micros


def _rejection_faults(rejection: Rejection, wish: Wish) -> Iterator[str]:
    """A rejection has a reason, and one that names a number is right about it."""
    shape = rejection.shape
    if not rejection.code or not rejection.reason:
        yield "no reason is given"
    wrong = {
        "price_unknown": shape.standing == "priced",
        "price_refused": shape.standing != "refused",
        "too_few_gpus": (shape.gpu_count or 0) >= wish.gpus_min,
        "too_many_gpus": (shape.gpu_count or 0) <= (wish.gpus_max or 0),
        "other_provider": not wish.providers or shape.provider in wish.providers,
        "other_mode": not wish.modes or shape.mode in wish.modes,
        "too_slow": wish.deadline_hours is None,
        "over_budget": wish.budget_micros is None,
        "no_gpu": shape.kind != "none",
    }.get(rejection.code, False)
    if wrong:
        yield f"the reason `{rejection.code}` does not hold"
