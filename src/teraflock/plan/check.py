"""Check a plan independently. Shares no code with the planner.

It computes every time and cost again from the shape and the wish, and checks that no rejected shape could have been
chosen. A plan that fails is a bug in Teraflock. It is reported as one and never shown.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache
from itertools import groupby, pairwise
from math import ceil, inf, isinf
from typing import NamedTuple

from teraflock.base.exchange import Rates
from teraflock.catalog.costs import costs_of
from teraflock.catalog.providers import all_providers
from teraflock.catalog.retired import retired_on
from teraflock.offer.model import Shape
from teraflock.offer.rules import SAME_SHARE
from teraflock.plan.assumptions import Assumptions, billing_of, notice_of
from teraflock.plan.model import Choice, Hours, Misfit, Plan, Rejection, Wish

MONTH_SECONDS = 730 * 3600
TOLERANCE = 1e-9  # relative error of floating point

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
    """List what is wrong with the plan. Empty if it is correct."""
    case = _Case(wish, estimate, assumptions, rates, on)
    yield from _coverage_faults(plan, shapes, wish)
    for number, choice in enumerate(plan.choices, start=1):
        for fault in _choice_faults(choice, case):
            yield f"choice {number} ({choice.shape.provider} {choice.shape.instance_type}): {fault}"
    yield from _order_faults(plan.choices, wish)
    yield from _pareto_faults(plan.choices)
    for rejection in plan.rejected:
        for fault in _rejection_faults(rejection, case):
            yield f"rejected {rejection.shape.provider} {rejection.shape.instance_type}: {fault}"


class Computed(NamedTuple):
    """Time and cost of a job on a shape, as the checker computes them."""

    p50: float
    p90: float
    micros: float
    tolerance: float
    """The largest difference that rounding can cause: prices, disks and the sum are each rounded once."""


class _Case:
    """The inputs of a plan."""

    def __init__(
        self, wish: Wish, estimate: Estimate, assumptions: Assumptions, rates: Rates, on: date
    ) -> None:
        self.wish = wish
        self.estimate = estimate
        self.assumptions = assumptions
        self._rates = rates
        self._on = on
        self._factors: dict[str, float] = {}

    def computed(self, shape: Shape, instances: int) -> Computed | str:
        """Return time and cost, or the reason why the work cannot run on the shape."""
        if self.wish.use != "job":
            return Computed(self.wish.hours, self.wish.hours, *self._cost(shape, instances, self.wish.hours))
        found = self.estimate(shape, instances)
        if isinstance(found, Misfit):
            return found.reason
        p50, p90 = found.p50, found.p90
        if self.interruptions_per_hour(shape, instances):
            p50, p90 = (self._with_interruptions(each, shape, instances) for each in (p50, p90))
        if isinf(p90):
            return "it never ends"
        return Computed(p50, p90, *self._cost(shape, instances, p50))

    def monthly(self, shape: Shape) -> float:
        """Return the monthly price of one machine in the plan's currency."""
        return (shape.price_micros_per_month or 0) * self._factor(shape.currency)

    def _factor(self, currency: str) -> float:
        if currency not in self._factors:
            there = self._rates.rate(currency, self._on).micros_per_usd
            here = self._rates.rate(self.wish.currency, self._on).micros_per_usd
            self._factors[currency] = here / there
        return self._factors[currency]

    def interruptions_per_hour(self, shape: Shape, instances: int) -> float:
        taken_back = shape.mode in ("spot", "bid")
        return instances * self.assumptions.interruptions(shape.provider) if taken_back else 0.0

    def _with_interruptions(self, hours: float, shape: Shape, instances: int) -> float:
        """Add the time for checkpoints and interruptions."""
        assumed = self.assumptions
        often = self.interruptions_per_hour(shape, instances)
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
        if shape.mode != "owned":
            extras = self._disk(shape, hours) + self._address(shape, hours)
            cost += instances * extras + self._egress(shape)
        return cost, months + 2 + 2 * instances

    def _disk(self, shape: Shape, hours: float) -> float:
        gb = self.wish.disk_gb
        if not gb:
            return 0.0
        price, given = costs_of(shape.provider).disk, dict(self.wish.disk_prices)
        for provider in (shape.provider, ""):
            if provider in given:
                return gb * given[provider] * (1.0 if self.wish.use == "monthly" else hours / 730)
        if price is None:
            return 0.0
        running, stopped = float(price.price), float(price.stopped or price.price)
        if self.wish.use == "monthly":
            used = min(hours / 730, 1.0)
            amount = gb * (running * used + stopped * (1 - used))
        else:
            amount = (
                gb
                * running
                * (hours / 730 if price.prorated else _steps(hours, MONTH_SECONDS) / MONTH_SECONDS)
            )
        return amount * 1e6 * self._factor(price.currency)

    def _address(self, shape: Shape, hours: float) -> float:
        price = costs_of(shape.provider).address if self.wish.address else None
        if price is None:
            return 0.0
        return float(price.price) * 1e6 * hours * self._factor(price.currency)

    def _egress(self, shape: Shape) -> float:
        if not self.wish.egress_gb:
            return 0.0
        price, given = costs_of(shape.provider).egress, self.wish.egress_micros_per_gb
        if given is not None:
            return self.wish.egress_gb * given
        if price is None:
            return 0.0
        billed = max(0.0, self.wish.egress_gb - price.free_gb)
        return billed * float(price.price) * 1e6 * self._factor(price.currency)

    def uncounted(self, shape: Shape) -> set[str]:
        """Return the requested costs whose price is not known."""
        wish = self.wish
        if not (wish.disk_gb or wish.egress_gb or wish.address):
            return set()
        known = costs_of(shape.provider)
        asked = {
            "disk": bool(wish.disk_gb)
            and known.disk is None
            and not {shape.provider, ""} & {provider for provider, _ in wish.disk_prices},
            "egress": bool(wish.egress_gb) and known.egress is None and wish.egress_micros_per_gb is None,
            "address": wish.address and known.address is None,
        }
        return {name for name, missing in asked.items() if missing and shape.mode != "owned"}


def _coverage_faults(plan: Plan, shapes: Sequence[Shape], wish: Wish) -> Iterator[str]:
    """Check that each given shape is either chosen at least once or rejected exactly once, and no other shape is."""
    # Compares by identity: hashing all shapes would take half of the time of the check.
    chosen = {id(choice.shape) for choice in plan.choices}
    rejected = {id(rejection.shape) for rejection in plan.rejected}
    if (
        chosen | rejected != {id(shape) for shape in shapes}
        or len(plan.rejected) != len(rejected)
        or chosen & rejected
    ):
        yield f"{len(shapes)} shapes were given, {len(chosen)} chosen and {len(plan.rejected)} rejected"
    if len({(id(choice.shape), choice.instances) for choice in plan.choices}) != len(plan.choices):
        yield "a shape is chosen twice with the same number of machines"
    if not all(wish.instances_min <= choice.instances <= wish.instances_max for choice in plan.choices):
        yield "the number of machines is not the requested one"


def _choice_faults(choice: Choice, case: _Case) -> Iterator[str]:
    shape, cost, wish = choice.shape, choice.cost, case.wish
    if choice.parts and sum(part.micros for part in choice.parts) != cost.expected_micros:
        yield f"its parts sum to {sum(part.micros for part in choice.parts)}, not to {cost.expected_micros}"
    if not cost.low_micros <= cost.expected_micros <= cost.high_micros:
        yield "its expected cost is outside its interval"
    if not choice.hours.p10 <= choice.hours.p50 <= choice.hours.p90:
        yield "its expected time is outside its interval"
    if shape.standing != "priced" or shape.doubtful or shape.price_micros_per_month is None:
        yield "its price is unknown or doubtful"
        return
    if wish.deadline_hours is not None and choice.hours.p90 > wish.deadline_hours:
        yield "it misses the deadline"
    if wish.budget_micros is not None and cost.expected_micros > wish.budget_micros:
        yield "it is over the budget"
    if fault := _violation(shape, choice.instances, wish):
        yield fault
    if set(choice.uncounted) != case.uncounted(shape):
        yield "its uncounted costs are not those whose price is unknown"
    if not _is_close(
        choice.interruptions, choice.hours.p50 * case.interruptions_per_hour(shape, choice.instances)
    ):
        yield "its interruptions are not those of its purchase mode and time"
    computed = case.computed(shape, choice.instances)
    if isinstance(computed, str):
        yield f"the work cannot run on it: {computed}"
        return
    if not _is_close(choice.hours.p90, computed.p90) or not _is_close(choice.hours.p50, computed.p50):
        yield f"it takes {computed.p50:.4f} h, not {choice.hours.p50:.4f}"
    elif not isinf(computed.micros) and not _is_close(
        cost.expected_micros, computed.micros, computed.tolerance
    ):
        yield f"it costs {computed.micros:.0f}, not {cost.expected_micros}"


def _steps(hours: float, step_seconds: int) -> int:
    """Return the number of billing increments, at least one. Counts microseconds."""
    return max(1, ceil(int(hours * 3.6e9 + 0.5) / (step_seconds * 1_000_000))) * step_seconds


def _is_close(one: float, other: float, tolerance: float = TOLERANCE) -> bool:
    return one == other or abs(one - other) <= tolerance + TOLERANCE * abs(other)


def _violation(shape: Shape, instances: int, wish: Wish) -> str:
    """Return which of the user's conditions the shape violates. Empty if none."""
    gpus, memory = instances * (shape.gpu_count or 0), shape.gpu_memory_bytes or 0
    if (wish.providers and shape.provider not in wish.providers) or (
        wish.modes and shape.mode not in wish.modes
    ):
        return "its provider or purchase mode was not requested"
    if wish.cards and shape.gpu not in wish.cards:
        return "its GPU was not requested"
    if shape.mode == "free" and not wish.modes:
        return "it is free and may end at any time"
    if (shape.outdated and not wish.sources) or (wish.newer_than and shape.as_of < wish.newer_than):
        return "its price is too old"
    if retired_on(shape.provider, shape.instance_type) and not wish.sources:
        return "its provider has retired it"
    if shape.gpu_share < 1 and not wish.slices:
        return "it is a part of a GPU"
    if wish.parts and not any(
        abs(shape.gpu_share - part.share) < SAME_SHARE
        and part.memory_about[0] <= memory <= part.memory_about[1]
        for part in wish.parts
    ):
        return "it is not the slice that was requested"
    if instances > 1 and shape.provider in _markets():
        return "it exists only once"
    if shape.kind == "other" and not (wish.use != "job" and shape.gpu in wish.cards):
        return "it is not a GPU and was not requested by name"
    if shape.kind == "none" or not wish.gpus_min <= gpus <= (wish.gpus_max or 10**9):
        return "its number of GPUs was not requested"
    if memory < (wish.memory_bytes_min or 0) or memory * gpus < (wish.memory_total_bytes_min or 0):
        return "it has less memory than requested"
    return ""


@cache
def _markets() -> frozenset[str]:
    return frozenset(each.id for each in all_providers() if each.kind == "market")


def _order_faults(choices: Sequence[Choice], wish: Wish) -> Iterator[str]:
    for earlier, later in pairwise(choices):
        if _rank(earlier, wish) > _rank(later, wish):
            yield f"{earlier.shape.provider} comes before {later.shape.provider}, which is better by {wish.sort}"


def _rank(choice: Choice, wish: Wish) -> tuple[float, ...]:
    """Return what a plan is sorted by. A cost that is not complete never counts as lower than one that is."""
    cost = (bool(choice.uncounted), choice.cost.expected_micros)
    if wish.sort == "cost":
        return cost
    return (choice.hours.p50 if wish.sort == "time" else choice.interruptions, *cost)


def _pareto_faults(choices: Sequence[Choice]) -> Iterator[str]:
    """Check that no other choice beats a marked one, and some choice beats each unmarked one. Takes n log n."""
    for uncounted in {choice.uncounted for choice in choices}:
        yield from _group_faults([choice for choice in choices if choice.uncounted == uncounted])


def _group_faults(choices: Sequence[Choice]) -> Iterator[str]:
    fastest_below = float("inf")  # of the strictly cheaper choices
    by_cost = sorted(choices, key=_expected)
    for _, group in groupby(by_cost, key=_expected):
        level = list(group)
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
    """Check that a rejection has a reason and that no number of machines of its shape could have been chosen."""
    shape, wish = rejection.shape, case.wish
    if not rejection.code or not rejection.reason:
        yield "no reason is given"
    if shape.standing != "priced" or shape.doubtful or shape.gpu_count is None:
        return
    asked_memory = wish.memory_bytes_min is not None or wish.memory_total_bytes_min is not None
    if shape.price_micros_per_month is None or (asked_memory and shape.gpu_memory_bytes is None):
        return
    for instances in range(wish.instances_min, wish.instances_max + 1):
        if _violation(shape, instances, wish):
            continue
        computed = case.computed(shape, instances)
        if not isinstance(computed, str) and _meets_limits(computed, wish):
            yield f"{instances} of it would meet the request, but it was rejected as `{rejection.code}`"


def _meets_limits(computed: Computed, wish: Wish) -> bool:
    """Return whether it meets deadline and budget by more than the rounding error."""
    in_time = wish.deadline_hours is None or computed.p90 < wish.deadline_hours * (1 - TOLERANCE)
    return in_time and (
        wish.budget_micros is None or computed.micros < wish.budget_micros - computed.tolerance
    )
