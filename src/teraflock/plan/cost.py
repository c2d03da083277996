"""Compute what a job costs on one offer: time, billing increments, whole months, interruptions, disk, several machines.

Pure. Every amount is an integer in the plan's currency, and every part of a cost explains itself. A plan computes the
cost of thousands of shapes and shows ten, so `costed` computes totals, and `itemised` adds the parts of the shown ones.
"""

from datetime import date
from functools import cache
from math import sqrt
from typing import Final, NamedTuple

from msgspec.structs import replace

from teraflock.base.clock import HOUR_US
from teraflock.base.exchange import Rates
from teraflock.base.money import HOURS_PER_MONTH, SECONDS, decimal_text, divided
from teraflock.base.quantities import significant_text
from teraflock.offer.model import Shape
from teraflock.plan.assumptions import Assumptions, billing_of, notice_of
from teraflock.plan.extras import NONE, Extras, extras_of
from teraflock.plan.model import Choice, Cost, CostPart, Hours, Misfit, Wish

INTERRUPTIBLE: Final = frozenset({"spot", "bid"})
RESERVED_MONTHS: Final = 12  # for a reservation of unknown term; the shortest that clouds sell
MONTH_SECONDS: Final = SECONDS["month"]
INFINITE: Final = float("inf")
NEVER_ENDS: Final = Misfit("never_ends", "is interrupted faster than it makes progress")


class Costing:
    """Computes the cost of shapes for one wish, with the exchange rates of one day."""

    def __init__(self, wish: Wish, assumptions: Assumptions, rates: Rates, on: date) -> None:
        self._wish = wish
        self._assumptions = assumptions
        self._rates = rates
        self._on = on
        self._per_usd: dict[str, int] = {}
        self._asks_extras = bool(wish.disk_gb or wish.egress_gb or wish.address)

    def costed(self, shape: Shape, instances: int, hours: Hours) -> Choice | Misfit:
        """Make a choice of a priced shape, with its time including interruptions and its expected cost."""
        rate = self._interruptions_per_hour(shape, instances)
        if rate and self._wish.use == "job":
            hours = self._with_interruptions(hours, rate, shape.provider)
            if hours.p90 == INFINITE:
                return NEVER_ENDS
        extras = self._extras(shape, instances, hours.p50) if self._asks_extras else NONE
        micros = self._rent(shape, instances, hours.p50) + extras.micros
        return Choice(
            shape=shape,
            instances=instances,
            hours=hours,
            cost=Cost(micros, micros, micros, self._wish.currency),
            parts=(),
            interruptions=rate * hours.p50,
            uncounted=extras.uncounted,
        )

    def itemised(self, choice: Choice, uninterrupted: Hours) -> Choice:
        """Add the interval of the cost and its parts, each with its arithmetic."""
        shape, instances, hours, cost = choice.shape, choice.instances, choice.hours, choice.cost
        extras = self._extras(shape, instances, hours.p50)
        low, high = (self._rent(shape, instances, each) + extras.micros for each in (hours.p10, hours.p90))
        return replace(
            choice,
            cost=Cost(cost.expected_micros, low, high, cost.currency),
            parts=(*self._rent_parts(choice, uninterrupted.p50), *extras.parts),
        )

    def _rent(self, shape: Shape, instances: int, hours: float) -> int:
        monthly = self._money(shape.price_micros_per_month or 0, shape.currency)
        seconds = billed_seconds(hours, terms_of(shape.provider, shape.mode, shape.term_months))
        return divided(instances * monthly * seconds, MONTH_SECONDS)

    def _interruptions_per_hour(self, shape: Shape, instances: int) -> float:
        """Return the rate for all machines together: when one is interrupted, all stop."""
        if shape.mode not in INTERRUPTIBLE:
            return 0.0
        return instances * self._assumptions.interruptions(shape.provider)

    def _with_interruptions(self, hours: Hours, rate: float, provider: str) -> Hours:
        assumed, notice = self._assumptions, notice_of(provider).seconds
        return Hours(
            with_interruptions(hours.p10, rate, assumed, notice),
            with_interruptions(hours.p50, rate, assumed, notice),
            with_interruptions(hours.p90, rate, assumed, notice),
        )

    def _extras(self, shape: Shape, instances: int, hours: float) -> Extras:
        return extras_of(self._wish, shape, instances, hours, self._converted)

    def _money(self, micros: int, currency: str) -> int:
        """Convert to the plan's currency, rounded once."""
        return micros if currency == self._wish.currency else self._converted(micros, 1, currency)

    def _converted(self, numerator: int, denominator: int, currency: str) -> int:
        """Convert the fraction of an amount to the plan's currency, rounded once."""
        wanted = self._wish.currency
        if currency != wanted:
            for each in (currency, wanted):
                if each not in self._per_usd:
                    self._per_usd[each] = self._rates.rate(each, self._on).micros_per_usd
            numerator, denominator = numerator * self._per_usd[wanted], denominator * self._per_usd[currency]
        return divided(numerator, denominator)

    def _rent_parts(self, choice: Choice, uninterrupted: float) -> list[CostPart]:
        """Split the rent into work, checkpoints, interruptions and unused time. The parts add up to the rent."""
        shape, real = choice.shape, choice.hours.p50
        monthly = choice.instances * self._money(shape.price_micros_per_month or 0, shape.currency)
        terms = terms_of(shape.provider, shape.mode, shape.term_months)
        total = self._rent(shape, choice.instances, real)
        work = min(_exact(monthly, uninterrupted), total)
        hourly = f"{decimal_text(divided(monthly, HOURS_PER_MONTH), 4)} {self._wish.currency}/hour"
        if choice.instances > 1:
            hourly += f" for {choice.instances} machines"
        parts = [CostPart("rent", work, f"{_hours(uninterrupted)} h × {hourly}")]
        if choice.interruptions and self._wish.use == "job":  # given hours are paid as they are
            parts += self._lost_parts(choice, uninterrupted, monthly, hourly, total - work)
        if unused := total - sum(part.micros for part in parts):
            seconds = billed_seconds(real, terms)
            idle = max(0.0, seconds / 3600 - real)
            why = f"{_idle(idle)} paid but not used, {_billing_text(shape, seconds)}"
            parts.append(CostPart("unused", unused, why))
        return parts

    def _lost_parts(
        self, choice: Choice, uninterrupted: float, monthly: int, hourly: str, at_most: int
    ) -> list[CostPart]:
        """Price the time for checkpoints and the time that interruptions cost."""
        real = choice.hours.p50
        every, saving = checkpoints(uninterrupted, choice.interruptions / real, self._assumptions)
        saved = min(_exact(monthly, saving), at_most)
        lost_hours = real - uninterrupted - saving
        lost = min(_exact(monthly, lost_hours), at_most - saved)
        why = f"a checkpoint of {self._assumptions.checkpoint_seconds:.0f} s every {every * 60:,.0f} min"
        parts = [CostPart("checkpoints", saved, f"{_hours(saving)} h × {hourly}: {why}")] if saving else []
        why = self._interrupted(choice)
        return [*parts, CostPart("interruptions", lost, f"{_hours(lost_hours)} h × {hourly}: {why}")]

    def _interrupted(self, choice: Choice) -> str:
        assumed, notice = self._assumptions, notice_of(choice.shape.provider)
        expected = choice.interruptions
        words = f"{_few(expected)} interruptions expected at {expected / choice.hours.p50:g} per hour, each with a"
        words += f" restart of {assumed.restart_seconds:.0f} s and "
        if notice.seconds >= assumed.checkpoint_seconds:
            return words + f"a last checkpoint of {assumed.checkpoint_seconds:.0f} s; {notice.because}"
        return words + f"half a checkpoint interval of lost work; {notice.because}"


def with_interruptions(
    hours: float, per_hour: float, assumptions: Assumptions, notice_seconds: float = 0.0
) -> float:
    """Return the expected time to finish at this rate of interruptions, with Young's checkpoint interval.

    Every interval costs one checkpoint. Every interruption costs a restart and half an interval of lost work, or a last
    checkpoint if the notice is long enough to write one. Notice is not guaranteed, so it does not change the interval.
    """
    if not per_hour or not hours:
        return hours
    interval, saving = checkpoints(hours, per_hour, assumptions)
    checkpoint = assumptions.checkpoint_seconds / 3600
    warned = notice_seconds >= assumptions.checkpoint_seconds
    # A last checkpoint is worth at most the work that would be lost without it.
    lost = min(checkpoint, interval / 2) if warned else interval / 2
    share_lost = per_hour * (lost + assumptions.restart_seconds / 3600)
    if share_lost >= 1:
        return INFINITE  # interruptions are too frequent to make progress
    return (hours + saving) / (1 - share_lost)


def checkpoints(hours: float, per_hour: float, assumptions: Assumptions) -> tuple[float, float]:
    """Return the hours between two checkpoints, by Young's formula, and the hours that all of them take."""
    checkpoint = assumptions.checkpoint_seconds / 3600
    interval = min(hours, sqrt(2 * checkpoint / per_hour))
    return interval, hours * checkpoint / interval if interval < hours else 0.0


class CostTerms(NamedTuple):
    """The billing increment and the minimum that is billed."""

    step_seconds: int
    least_seconds: int


@cache
def terms_of(provider: str, mode: str | None, term_months: int | None) -> CostTerms:
    if mode == "monthly":
        return CostTerms(MONTH_SECONDS, MONTH_SECONDS)
    if mode == "reserved":
        return CostTerms(MONTH_SECONDS, (term_months or RESERVED_MONTHS) * MONTH_SECONDS)
    if mode == "owned":
        return CostTerms(1, 0)
    billing = billing_of(provider)
    return CostTerms(billing.step_seconds, billing.minimum_seconds)


def billed_seconds(hours: float, terms: CostTerms) -> int:
    """Return the billed time. Rounds to microseconds first, so that a floating-point error starts no new increment."""
    micros = int(hours * 3.6e9 + 0.5)
    seconds = -(-micros // (terms.step_seconds * 1_000_000)) * terms.step_seconds
    return seconds if seconds > terms.least_seconds else terms.least_seconds


def _billing_text(shape: Shape, seconds: int) -> str:
    if shape.mode in ("monthly", "reserved"):
        months = seconds // MONTH_SECONDS
        return f"billed for {months} whole month{'s' if months > 1 else ''}"
    return "own host, counted per second" if shape.mode == "owned" else billing_of(shape.provider).because


def _exact(monthly: int, hours: float) -> int:
    """Return the share of a monthly price for this time, without billing increments."""
    return divided(monthly * round(hours * HOUR_US), MONTH_SECONDS * 1_000_000)


def _hours(hours: float) -> str:
    """`41.73`, and `0.0087` where two decimals would say too little."""
    return f"{hours:,.2f}" if hours >= 0.1 or not hours else significant_text(hours, 2)


def _idle(hours: float) -> str:
    """`0.25 h` or `31 s`."""
    if hours >= 0.1:
        return f"{hours:,.2f} h"
    return f"{hours * 3600:,.0f} s" if hours * 3600 >= 1 else "less than 1 s"


def _few(number: float) -> str:
    return f"{number:,.1f}" if number >= 1 else f"{number:.1g}"
