"""What finishing costs on one offer: time, billing steps, whole months, interruptions, disk.

Pure. Every amount is an integer in the plan's currency, and every addend says how it came about.
"""

from datetime import date
from math import ceil, sqrt
from typing import Final

import msgspec

from teraflock.base.exchange import Rates
from teraflock.base.money import HOURS_PER_MONTH, SECONDS, decimal_text, divided
from teraflock.offer.model import Shape
from teraflock.offer.rules import in_currency
from teraflock.plan.assumptions import Assumptions, Billing
from teraflock.plan.model import Choice, Cost, Hours, Part, Wish

INTERRUPTIBLE: Final = frozenset({"spot", "bid"})
RESERVED_MONTHS: Final = 12  # of a reservation whose term is not told: the shortest that clouds sell


class Billed(msgspec.Struct, frozen=True):
    """For how long one pays, and the time that is paid for without being used."""

    seconds: int
    unused_hours: float
    because: str


def costed(
    shape: Shape, hours: Hours, wish: Wish, assumptions: Assumptions, billing: Billing, rates: Rates, on: date
) -> Choice:
    """One priced shape as a choice: how long it really takes, and what that costs at the least, likely and most."""
    rate = (
        assumptions.interruptions(shape.provider)
        if shape.mode in INTERRUPTIBLE and wish.use == "job"
        else 0.0
    )
    real = Hours(*(with_interruptions(each, rate, assumptions) for each in (hours.p10, hours.p50, hours.p90)))
    monthly = in_currency(shape.price_micros_per_month or 0, shape.currency, wish.currency, rates, on)
    amounts = [_rent(shape, each, monthly, billing) for each in (real.p10, real.p50, real.p90)]
    disk = _disk(shape, real.p50, wish, assumptions, rates, on)
    extra = disk.micros if disk else 0
    return Choice(
        shape=shape,
        hours=real,
        cost=Cost(amounts[1] + extra, amounts[0] + extra, amounts[2] + extra, wish.currency),
        parts=(),
        interruptions=rate * real.p50,
    )


def itemised(
    choice: Choice,
    hours: Hours,
    wish: Wish,
    assumptions: Assumptions,
    billing: Billing,
    rates: Rates,
    on: date,
) -> Choice:
    """The choice with every addend of its expected cost, and the arithmetic behind it."""
    shape = choice.shape
    rate = choice.interruptions / choice.hours.p50 if choice.interruptions else 0.0
    monthly = in_currency(shape.price_micros_per_month or 0, shape.currency, wish.currency, rates, on)
    parts = _rent_parts(shape, choice.hours.p50, hours.p50, monthly, billing, wish, rate, assumptions)
    disk = _disk(shape, choice.hours.p50, wish, assumptions, rates, on)
    return msgspec.structs.replace(choice, parts=(*parts, disk) if disk else parts)


def with_interruptions(hours: float, per_hour: float, assumptions: Assumptions) -> float:
    """The expected time to finish when the machine is taken away so often (Young's interval between checkpoints).

    Every interval costs one checkpoint; every interruption costs half an interval of lost work and a restart.
    """
    if not per_hour or not hours:
        return hours
    checkpoint = assumptions.checkpoint_seconds / 3600
    restart = assumptions.restart_seconds / 3600
    interval = min(hours, sqrt(2 * checkpoint / per_hour))
    working = hours * (1 + checkpoint / interval if interval < hours else 1)
    lost_per_interruption = interval / 2 + restart
    share_lost = per_hour * lost_per_interruption
    if share_lost >= 1:
        return float("inf")  # it is taken away faster than it gets on
    return working / (1 - share_lost)


def billed(shape: Shape, hours: float, billing: Billing) -> Billed:
    if shape.mode in ("monthly", "reserved"):
        least = (shape.term_months or RESERVED_MONTHS) if shape.mode == "reserved" else 1
        months = max(least, ceil(hours / HOURS_PER_MONTH - 1e-9))
        return Billed(months * SECONDS["month"], months * HOURS_PER_MONTH - hours, f"{months} whole months")
    if shape.mode == "owned":
        return Billed(ceil(hours * 3600), 0.0, "own server, by the second")
    steps = ceil(round(hours * 3600, 6) / billing.step_seconds)
    seconds = max(billing.minimum_seconds, steps * billing.step_seconds)
    return Billed(seconds, seconds / 3600 - hours, billing.because)


def _rent(shape: Shape, hours: float, monthly: int, billing: Billing) -> int:
    if hours == float("inf"):
        return 1 << 62  # never finished: dearer than anything
    return divided(monthly * billed(shape, hours, billing).seconds, SECONDS["month"])


def _rent_parts(
    shape: Shape, real: float, undisturbed: float, monthly: int, billing: Billing, wish: Wish, rate: float,
    assumptions: Assumptions,
) -> tuple[Part, ...]:  # fmt: skip
    """The rent cut into work, interruptions and what is paid for without being used. The parts sum to the rent."""
    if real == float("inf"):
        return (Part("rent", 1 << 62, "interrupted faster than it gets on"),)
    paid = billed(shape, real, billing)
    total = _rent(shape, real, monthly, billing)
    work = divided(monthly * round(undisturbed * 3_600_000_000), SECONDS["month"] * 1_000_000)
    work = min(work, total)
    lost = min(
        divided(monthly * round((real - undisturbed) * 3_600_000_000), SECONDS["month"] * 1_000_000),
        total - work,
    )
    hourly = f"{decimal_text(divided(monthly, HOURS_PER_MONTH), 4)} {wish.currency}/hour"
    parts = [Part("rent", work, f"{undisturbed:,.2f} h × {hourly}")]
    if rate:
        why = (
            f"{rate * real:.1f} interruptions expected at {rate:g} an hour, each a restart of"
            f" {assumptions.restart_seconds:.0f} s and half of what is done between checkpoints"
        )
        parts.append(Part("interruptions", lost, f"{real - undisturbed:,.2f} h × {hourly}: {why}"))
    unused = total - work - (lost if rate else 0)
    if unused:
        parts.append(
            Part(
                "unused",
                unused,
                f"{max(0.0, paid.unused_hours):,.2f} h paid for and not used: {paid.because}",
            )
        )
    return tuple(parts)


def _disk(
    shape: Shape, hours: float, wish: Wish, assumptions: Assumptions, rates: Rates, on: date
) -> Part | None:
    """A disk is kept for whole months: as long as the job runs, or every month of light use."""
    price = assumptions.disks.get(shape.provider)
    if not wish.disk_gb or price is None or hours == float("inf"):
        return None
    months = 1 if wish.use == "monthly" else max(1, ceil(hours / HOURS_PER_MONTH - 1e-9))
    per_gb = in_currency(price.micros_per_gb_month, price.currency, wish.currency, rates, on)
    micros = round(per_gb * wish.disk_gb) * months
    return Part(
        "disk", micros, f"{wish.disk_gb:g} GB × {months} month{'s' if months > 1 else ''}: {price.because}"
    )
