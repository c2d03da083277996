"""Compute what is paid besides the machine: disks, outgoing traffic and public addresses.

Pure. A price that is not known is never counted as zero: its name is in the list of uncounted costs, and a plan ranks
such a choice after those whose cost is complete.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from teraflock.base.clock import HOUR_US
from teraflock.base.money import HOURS_PER_MONTH, SECONDS, decimal_text, divided
from teraflock.catalog.costs import Extra, ExtraPrice, costs_of
from teraflock.offer.model import Shape
from teraflock.plan.model import CostPart, Wish

Money = Callable[[int, int, str], int]
"""Converts the fraction `numerator / denominator` of a currency to the plan's currency, rounded once."""

MONTH_US: Final = SECONDS["month"] * 1_000_000
GB_PARTS: Final = 1_000_000  # sizes are counted in millionths of a GB, so that amounts are exact


class Extras(NamedTuple):
    parts: tuple[CostPart, ...] = ()
    uncounted: tuple[Extra, ...] = ()
    """Requested costs whose price is not known."""

    @property
    def micros(self) -> int:
        return sum(part.micros for part in self.parts)


NONE: Final = Extras()


def extras_of(wish: Wish, shape: Shape, instances: int, hours: float, money: Money) -> Extras:
    """Return the costs besides rent. Own hosts have none."""
    if shape.mode == "owned":
        return NONE
    known = costs_of(shape.provider)
    parts: list[CostPart] = []
    uncounted: list[Extra] = []
    if wish.disk_gb:
        own = wish.disk_micros_per_gb(shape.provider)
        if own is not None:
            parts.append(_own_disk(own, wish, instances, hours))
        elif known.disk:
            parts.append(_disk(known.disk, wish, instances, hours, money))
        else:
            uncounted.append("disk")
    if wish.egress_gb:
        if wish.egress_micros_per_gb is not None or known.egress:
            parts.append(_egress(known.egress, wish, money))
        else:
            uncounted.append("egress")
    if wish.address:
        if known.address:
            parts.append(_address(known.address, instances, hours, money))
        else:
            uncounted.append("address")
    return Extras(tuple(parts), tuple(uncounted))


def _disk(price: ExtraPrice, wish: Wish, instances: int, hours: float, money: Money) -> CostPart:
    """Price a disk that is kept for a month of use, or for the time of a job."""
    size = round(wish.disk_gb * GB_PARTS)
    used = min(_microseconds(hours), MONTH_US)
    if wish.use == "monthly":
        amount = size * (price.micros * used + price.stopped_micros * (MONTH_US - used))
        each, how = money(amount, GB_PARTS * MONTH_US, price.currency), "1 month"
        if price.stopped is not None:
            stopped = f"{HOURS_PER_MONTH - hours:,.0f} h"
            how += f", {stopped} of it stopped at {price.stopped} {price.currency} per GB"
    elif price.prorated:
        amount = size * price.micros * _microseconds(hours)
        each, how = money(amount, GB_PARTS * MONTH_US, price.currency), f"{hours:,.2f} h of {HOURS_PER_MONTH}"
    else:
        months = max(1, -(-_microseconds(hours) // MONTH_US))
        each = money(size * price.micros * months, GB_PARTS, price.currency)
        how = f"{months} month{'s' if months > 1 else ''}"
    machines = f"{instances} machines × " if instances > 1 else ""
    per_gb = f"{price.price} {price.currency} per GB and month"
    return CostPart(
        "disk", each * instances, f"{machines}{wish.disk_gb:g} GB × {how}, {per_gb}: {price.because}"
    )


def _own_disk(micros: int, wish: Wish, instances: int, hours: float) -> CostPart:
    """Price a disk with the user's own price, for a month of use or for the time of a job."""
    time = MONTH_US if wish.use == "monthly" else _microseconds(hours)
    each = divided(round(wish.disk_gb * GB_PARTS) * micros * time, GB_PARTS * MONTH_US)
    how = "1 month" if wish.use == "monthly" else f"{hours:,.2f} h of {HOURS_PER_MONTH}"
    machines = f"{instances} machines × " if instances > 1 else ""
    per_gb = f"{decimal_text(micros, 4)} {wish.currency} per GB and month"
    return CostPart(
        "disk", each * instances, f"{machines}{wish.disk_gb:g} GB × {how}, {per_gb}, from `--disk-price`"
    )


def _egress(price: ExtraPrice | None, wish: Wish, money: Money) -> CostPart:
    if wish.egress_micros_per_gb is not None or price is None:
        given = wish.egress_micros_per_gb or 0
        text = f"{decimal_text(given, 4)} {wish.currency}"
        micros = round(wish.egress_gb * given)
        return CostPart("egress", micros, f"{wish.egress_gb:g} GB × {text}, from `--egress-price`")
    billed = max(0.0, wish.egress_gb - price.free_gb)
    micros = money(round(billed * GB_PARTS) * price.micros, GB_PARTS, price.currency)
    free = f", {price.free_gb:g} GB per month are free" if price.free_gb else ""
    return CostPart(
        "egress", micros, f"{billed:g} GB × {price.price} {price.currency}{free}: {price.because}"
    )


def _address(price: ExtraPrice, instances: int, hours: float, money: Money) -> CostPart:
    micros = money(price.micros * _microseconds(hours), HOUR_US, price.currency) * instances
    each = f"{instances} × " if instances > 1 else ""
    because = f"{each}{hours:,.2f} h × {price.price} {price.currency}: {price.because}"
    return CostPart("address", micros, because)


def _microseconds(hours: float) -> int:
    return int(hours * HOUR_US + 0.5)
