"""What finishing costs on one offer: time, billing steps, whole months, interruptions, disk, several machines.

Pure. Every amount is an integer in the plan's currency, and every addend says how it came about. A plan costs thousands
of shapes and shows ten: sums come first (`costed`), their addends in words only for what is shown (`itemised`).
"""

from datetime import date
from functools import cache
from math import sqrt
from typing import Final, NamedTuple

from msgspec.structs import replace

from teraflock.base.exchange import Rates
from teraflock.base.money import HOURS_PER_MONTH, SECONDS, decimal_text, divided
from teraflock.offer.model import Shape
from teraflock.plan.assumptions import Assumptions, billing_of, notice_of
from teraflock.plan.model import Choice, Cost, Hours, Part, Wish

INTERRUPTIBLE: Final = frozenset({"spot", "bid"})
RESERVED_MONTHS: Final = 12  # of a reservation whose term is not told: the shortest that clouds sell
NEVER_MICROS: Final = 1 << 62  # never finished: dearer than anything
MONTH_SECONDS: Final = SECONDS["month"]
INFINITE: Final = float("inf")


class Costing:
    """What shapes cost for one wish, on one day."""

    def __init__(self, wish: Wish, assumptions: Assumptions, rates: Rates, on: date) -> None:
        self._wish = wish
        self._assumptions = assumptions
        self._rates = rates
        self._on = on
        self._per_usd: dict[str, int] = {}
        self._extra = bool(wish.disk_gb or wish.egress_gb)

    def costed(self, shape: Shape, instances: int, hours: Hours) -> Choice:
        """One priced shape as a choice: how long it really takes, and what that is expected to cost."""
        rate = self._interruptions_per_hour(shape, instances)
        if rate:
            hours = self._disturbed(hours, rate, shape.provider)
        micros = self._rent(shape, instances, hours.p50)
        if self._extra:
            micros += sum(part.micros for part in self._extras(shape, instances, hours.p50))
        return Choice(
            shape=shape,
            instances=instances,
            hours=hours,
            cost=Cost(micros, micros, micros, self._wish.currency),
            parts=(),
            interruptions=rate * hours.p50,
        )

    def itemised(self, choice: Choice, undisturbed: Hours) -> Choice:
        """The choice with the interval of its cost, every addend of it, and the arithmetic behind it."""
        shape, instances, hours, cost = choice.shape, choice.instances, choice.hours, choice.cost
        extras = self._extras(shape, instances, hours.p50)
        extra = sum(part.micros for part in extras)
        low, high = (self._rent(shape, instances, each) + extra for each in (hours.p10, hours.p90))
        return replace(
            choice,
            cost=Cost(cost.expected_micros, low, high, cost.currency),
            parts=(*self._rent_parts(choice, undisturbed.p50), *extras),
        )

    def _rent(self, shape: Shape, instances: int, hours: float) -> int:
        if hours == INFINITE:
            return NEVER_MICROS
        monthly = self._money(shape.price_micros_per_month or 0, shape.currency)
        seconds = billed_seconds(hours, terms_of(shape.provider, shape.mode, shape.term_months))
        return divided(instances * monthly * seconds, MONTH_SECONDS)

    def _interruptions_per_hour(self, shape: Shape, instances: int) -> float:
        """Several machines work in step: where one is taken away, all stop."""
        if shape.mode not in INTERRUPTIBLE or self._wish.use != "job":
            return 0.0
        return instances * self._assumptions.interruptions(shape.provider)

    def _disturbed(self, hours: Hours, rate: float, provider: str) -> Hours:
        assumed, notice = self._assumptions, notice_of(provider).seconds
        return Hours(
            with_interruptions(hours.p10, rate, assumed, notice),
            with_interruptions(hours.p50, rate, assumed, notice),
            with_interruptions(hours.p90, rate, assumed, notice),
        )

    def _money(self, micros: int, currency: str) -> int:
        """In the plan's currency, rounded once."""
        wanted = self._wish.currency
        if currency == wanted:
            return micros
        for each in (currency, wanted):
            if each not in self._per_usd:
                self._per_usd[each] = self._rates.rate(each, self._on).micros_per_usd
        return divided(micros * self._per_usd[wanted], self._per_usd[currency])

    def _rent_parts(self, choice: Choice, undisturbed: float) -> list[Part]:
        """The rent cut into work, interruptions and what is paid for without being used. The parts sum to the rent."""
        shape, real = choice.shape, choice.hours.p50
        if real == INFINITE:
            return [Part("rent", NEVER_MICROS, "interrupted faster than it gets on")]
        monthly = choice.instances * self._money(shape.price_micros_per_month or 0, shape.currency)
        terms = terms_of(shape.provider, shape.mode, shape.term_months)
        total = self._rent(shape, choice.instances, real)
        work = min(_exact(monthly, undisturbed), total)
        hourly = f"{decimal_text(divided(monthly, HOURS_PER_MONTH), 4)} {self._wish.currency}/hour"
        if choice.instances > 1:
            hourly += f" for {choice.instances} machines"
        parts = [Part("rent", work, f"{undisturbed:,.2f} h × {hourly}")]
        lost = 0
        if choice.interruptions:
            lost = min(_exact(monthly, real - undisturbed), total - work)
            why = self._interrupted(choice)
            parts.append(Part("interruptions", lost, f"{real - undisturbed:,.2f} h × {hourly}: {why}"))
        if unused := total - work - lost:
            seconds = billed_seconds(real, terms)
            idle = max(0.0, seconds / 3600 - real)
            why = f"{idle:,.2f} h paid for and not used: {_billing_text(shape, seconds)}"
            parts.append(Part("unused", unused, why))
        return parts

    def _interrupted(self, choice: Choice) -> str:
        assumed, notice = self._assumptions, notice_of(choice.shape.provider)
        expected = choice.interruptions
        words = f"{expected:.1f} interruptions expected at {expected / choice.hours.p50:g} an hour, each a restart of"
        words += f" {assumed.restart_seconds:.0f} s and "
        if notice.seconds >= assumed.checkpoint_seconds:
            return (
                words + f"a last checkpoint of {assumed.checkpoint_seconds:.0f} s, for which {notice.because}"
            )
        return words + f"half of what is done between checkpoints, since {notice.because}"

    def _extras(self, shape: Shape, instances: int, hours: float) -> list[Part]:
        """What comes on top of the rent: the disks, and what leaves the cloud; own servers pay for neither."""
        wish = self._wish
        extras = []
        if wish.disk_gb and (disk := self._disk(shape, instances, hours)):
            extras.append(disk)
        if wish.egress_gb and wish.egress_micros_per_gb and shape.mode != "owned":
            price = f"{decimal_text(wish.egress_micros_per_gb, 4)} {wish.currency}"
            micros = round(wish.egress_gb * wish.egress_micros_per_gb)
            extras.append(Part("egress", micros, f"{wish.egress_gb:g} GB × {price}, as you said"))
        return extras

    def _disk(self, shape: Shape, instances: int, hours: float) -> Part | None:
        """A disk is kept for whole months: as long as the job runs, or every month of light use."""
        price = self._assumptions.disks.get(shape.provider)
        if price is None or hours == INFINITE:
            return None
        months = 1 if self._wish.use == "monthly" else _whole_months(hours)
        per_gb = self._money(price.micros_per_gb_month, price.currency)
        micros = round(per_gb * self._wish.disk_gb) * months * instances
        each = f"{instances} machines × " if instances > 1 else ""
        size = f"{self._wish.disk_gb:g} GB × {months} month{'s' if months > 1 else ''}"
        return Part("disk", micros, f"{each}{size}: {price.because}")


def with_interruptions(
    hours: float, per_hour: float, assumptions: Assumptions, notice_seconds: float = 0.0
) -> float:
    """The expected time to finish when the machine is taken away so often (Young's interval between checkpoints).

    Every interval costs one checkpoint; every interruption costs a restart and half an interval of lost work, or, where
    the notice leaves time to write one, a last checkpoint. A notice is no promise: the interval stays as it is.
    """
    if not per_hour or not hours:
        return hours
    checkpoint = assumptions.checkpoint_seconds / 3600
    interval = min(hours, sqrt(2 * checkpoint / per_hour))
    working = hours * (1 + checkpoint / interval if interval < hours else 1)
    warned = notice_seconds >= assumptions.checkpoint_seconds
    # a checkpoint saves no more than there was to lose
    lost = min(checkpoint, interval / 2) if warned else interval / 2
    share_lost = per_hour * (lost + assumptions.restart_seconds / 3600)
    if share_lost >= 1:
        return INFINITE  # it is taken away faster than it gets on
    return working / (1 - share_lost)


class Terms(NamedTuple):
    """In which steps one pays, and for how long at the least."""

    step_seconds: int
    least_seconds: int


@cache
def terms_of(provider: str, mode: str | None, term_months: int | None) -> Terms:
    if mode == "monthly":
        return Terms(MONTH_SECONDS, MONTH_SECONDS)
    if mode == "reserved":
        return Terms(MONTH_SECONDS, (term_months or RESERVED_MONTHS) * MONTH_SECONDS)
    if mode == "owned":
        return Terms(1, 0)
    billing = billing_of(provider)
    return Terms(billing.step_seconds, billing.minimum_seconds)


def billed_seconds(hours: float, terms: Terms) -> int:
    """For how long one pays. In whole microseconds: what floating point adds begins no new step."""
    micros = int(hours * 3.6e9 + 0.5)
    seconds = -(-micros // (terms.step_seconds * 1_000_000)) * terms.step_seconds
    return seconds if seconds > terms.least_seconds else terms.least_seconds


def _billing_text(shape: Shape, seconds: int) -> str:
    if shape.mode in ("monthly", "reserved"):
        months = seconds // MONTH_SECONDS
        return f"{months} whole month{'s' if months > 1 else ''}"
    return "own server, by the second" if shape.mode == "owned" else billing_of(shape.provider).because


def _whole_months(hours: float) -> int:
    return billed_seconds(hours, Terms(MONTH_SECONDS, MONTH_SECONDS)) // MONTH_SECONDS


def _exact(monthly: int, hours: float) -> int:
    """A price by the month for a time of any length."""
    return divided(monthly * round(hours * 3_600_000_000), MONTH_SECONDS * 1_000_000)
