"""The checker: proves of a plan, whoever made it, that it keeps its promises. Shares no code with the planner.

It works out every time and sum again, in plain fractions of money, from the shape and the wish; and for all that was
left out, that it could not have been chosen. A plan that fails is a fault of ours: it is reported as such and never
shown.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import groupby, pairwise
from math import ceil, inf, isinf
from typing import NamedTuple

from teraflock.base.exchange import Rates
from teraflock.offer.model import Shape
from teraflock.plan.assumptions import Assumptions, billing_of, notice_of
from teraflock.plan.model import Choice, Hours, Misfit, Plan, Rejection, Wish

MONTH_SECONDS = 730 * 3600
TOLERANCE = 1e-9  # of floating point

Estimate = Callable[[Shape, int], Hours | Misfit]


def faults(
    plan: Plan,
    shapes: Sequence[Shape],
    wish: Wish,
    estimate: Estimate,
    assumptions: Assumptions,
    rates: Rates,
    on: date,
) -> Iterator[str]:
    """Every promise that is broken, in words. Nothing if the plan is sound."""
    case = _Case(wish, estimate, assumptions, rates, on)
    yield from _each_once(plan, shapes, wish)
    for number, choice in enumerate(plan.choices, start=1):
        for fault in _choice_faults(choice, case):
            yield f"choice {number} ({choice.shape.provider} {choice.shape.instance_type}): {fault}"
    yield from _order_faults(plan.choices, wish)
    yield from _pareto_faults(plan.choices)
    for rejection in plan.rejected:
        for fault in _rejection_faults(rejection, case):
            yield f"rejected {rejection.shape.provider} {rejection.shape.instance_type}: {fault}"


class Worth(NamedTuple):
    """What a shape takes and costs, worked out by the checker alone."""

    p50: float
    p90: float
    micros: float
    apart: float
    """How far rounding may take a sum from it: prices, disks and the sum are rounded, each once."""


class _Case:
    """All that a plan was made for."""

    def __init__(
        self, wish: Wish, estimate: Estimate, assumptions: Assumptions, rates: Rates, on: date
    ) -> None:
        self.wish = wish
        self.estimate = estimate
        self.assumptions = assumptions
        self._rates = rates
        self._on = on
        self._factors: dict[str, float] = {}

    def worth(self, shape: Shape, instances: int) -> Worth | str:
        """Or why the work does not run there."""
        if self.wish.use != "job":
            return Worth(self.wish.hours, self.wish.hours, *self._cost(shape, instances, self.wish.hours))
        found = self.estimate(shape, instances)
        if isinstance(found, Misfit):
            return found.reason
        p50, p90 = found.p50, found.p90
        if shape.mode in ("spot", "bid"):
            p50, p90 = self._late(p50, shape, instances), self._late(p90, shape, instances)
        return Worth(p50, p90, *self._cost(shape, instances, p50))

    def monthly(self, shape: Shape) -> float:
        """The price of one machine for a month, in the plan's currency."""
        if shape.currency not in self._factors:
            there = self._rates.rate(shape.currency, self._on).micros_per_usd
            here = self._rates.rate(self.wish.currency, self._on).micros_per_usd
            self._factors[shape.currency] = here / there
        return (shape.price_micros_per_month or 0) * self._factors[shape.currency]

    def _late(self, hours: float, shape: Shape, instances: int) -> float:
        """With the checkpoints in it, and what every interruption costs."""
        assumed = self.assumptions
        often = instances * assumed.interruptions(shape.provider)
        if not often or not hours:
            return hours
        saving, starting = assumed.checkpoint_seconds / 3600, assumed.restart_seconds / 3600
        between = (2 * saving / often) ** 0.5
        if between < hours:
            hours += hours / between * saving
        else:
            between = hours
        lost = between / 2
        if notice_of(shape.provider).seconds >= assumed.checkpoint_seconds:
            lost = min(lost, saving)
        left = 1 - often * (lost + starting)
        return hours / left if left > 0 else inf

    def _cost(self, shape: Shape, instances: int, hours: float) -> tuple[float, float]:
        if isinf(hours):
            return inf, 0.0
        if shape.mode == "monthly":
            paid = _steps(hours, MONTH_SECONDS)
        elif shape.mode == "reserved":
            paid = max((shape.term_months or 12) * MONTH_SECONDS, _steps(hours, MONTH_SECONDS))
        elif shape.mode == "owned":
            paid = _steps(hours, 1)
        else:
            billing = billing_of(shape.provider)
            paid = max(billing.minimum_seconds, _steps(hours, billing.step_seconds))
        months = paid / MONTH_SECONDS * instances
        cost = self.monthly(shape) * months
        if self.wish.disk_gb:
            cost += instances * self._disk(shape, _steps(hours, MONTH_SECONDS) // MONTH_SECONDS)
        return cost + self._egress(shape), months + 2

    def _disk(self, shape: Shape, months: int) -> float:
        price = self.assumptions.disks.get(shape.provider)
        if price is None:
            return 0.0
        there = self._rates.rate(price.currency, self._on).micros_per_usd
        here = self._rates.rate(self.wish.currency, self._on).micros_per_usd
        per_gb = round(price.micros_per_gb_month * here / there)
        return round(per_gb * self.wish.disk_gb) * (1 if self.wish.use == "monthly" else months)

    def _egress(self, shape: Shape) -> float:
        return 0.0 if shape.mode == "owned" else self.wish.egress_gb * self.wish.egress_micros_per_gb


def _each_once(plan: Plan, shapes: Sequence[Shape], wish: Wish) -> Iterator[str]:
    """Every shape, and no other, is judged: chosen in one number of machines or more, or rejected once."""
    # by identity: a plan is about the very shapes that were offered, and hashing them all takes half the check's time
    chosen = {id(choice.shape) for choice in plan.choices}
    rejected = {id(rejection.shape) for rejection in plan.rejected}
    if (
        chosen | rejected != {id(shape) for shape in shapes}
        or len(plan.rejected) != len(rejected)
        or chosen & rejected
    ):
        yield f"{len(shapes)} shapes were offered, {len(chosen)} chosen and {len(plan.rejected)} rejected"
    if len({(id(choice.shape), choice.instances) for choice in plan.choices}) != len(plan.choices):
        yield "the same is chosen twice"
    if not all(wish.instances_min <= choice.instances <= wish.instances_max for choice in plan.choices):
        yield "another number of machines is chosen than asked for"


def _choice_faults(choice: Choice, case: _Case) -> Iterator[str]:
    shape, cost, wish = choice.shape, choice.cost, case.wish
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
    if fault := _unwanted(shape, choice.instances, wish):
        yield fault
    worth = case.worth(shape, choice.instances)
    if isinstance(worth, str):
        yield f"the work does not run there: {worth}"
        return
    if not _alike(choice.hours.p90, worth.p90) or not _alike(choice.hours.p50, worth.p50):
        yield f"it takes {worth.p50:.4f} h, not {choice.hours.p50:.4f}"
    elif not isinf(worth.micros) and not _alike(cost.expected_micros, worth.micros, worth.apart):
        yield f"it costs {worth.micros:.0f}, not {cost.expected_micros}"


def _steps(hours: float, step_seconds: int) -> int:
    """The time in whole steps, at least one, counted to the microsecond."""
    return max(1, ceil(int(hours * 3.6e9 + 0.5) / (step_seconds * 1_000_000))) * step_seconds


def _alike(one: float, other: float, apart: float = TOLERANCE) -> bool:
    return one == other or abs(one - other) <= apart + TOLERANCE * abs(other)


def _unwanted(shape: Shape, instances: int, wish: Wish) -> str:
    """Which of the user's conditions it breaks, as a word of the user's; empty if none."""
    gpus, memory = instances * (shape.gpu_count or 0), shape.gpu_memory_bytes or 0
    if (wish.providers and shape.provider not in wish.providers) or (
        wish.modes and shape.mode not in wish.modes
    ):
        return "it is of another provider or mode than asked for"
    if shape.mode == "free" and not wish.modes:
        return "it is free, which promises nothing"
    if shape.kind in ("none", "other") or not wish.gpus_min <= gpus <= (wish.gpus_max or 10**9):
        return "it has another number of GPUs than asked for"
    if memory < (wish.memory_bytes_min or 0) or memory * gpus < (wish.memory_total_bytes_min or 0):
        return "it has less memory than asked for"
    return ""


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


def _rejection_faults(rejection: Rejection, case: _Case) -> Iterator[str]:
    """A rejection has a reason, and in no number of machines could its shape have been chosen."""
    shape, wish = rejection.shape, case.wish
    if not rejection.code or not rejection.reason:
        yield "no reason is given"
    if shape.standing != "priced" or shape.doubtful or shape.gpu_count is None:
        return
    asked_memory = wish.memory_bytes_min is not None or wish.memory_total_bytes_min is not None
    if shape.price_micros_per_month is None or (asked_memory and shape.gpu_memory_bytes is None):
        return
    for instances in range(wish.instances_min, wish.instances_max + 1):
        if _unwanted(shape, instances, wish):
            continue
        worth = case.worth(shape, instances)
        if not isinstance(worth, str) and _would_do(worth, wish):
            yield f"{instances} of it would do what is asked, and it was rejected as `{rejection.code}`"


def _would_do(worth: Worth, wish: Wish) -> bool:
    """Clearly within deadline and budget: by more than rounding can decide."""
    in_time = wish.deadline_hours is None or worth.p90 < wish.deadline_hours * (1 - TOLERANCE)
    return in_time and (wish.budget_micros is None or worth.micros < wish.budget_micros - worth.apart)
