"""What a launch will cost, before it starts.

Prices may depend on the host and its region, and the host is chosen at the launch: the dearest place it may come to is
quoted, so that nobody pays more than was said.
"""

from collections.abc import Iterable, Mapping

import msgspec

from teraflock.base.money import HOURS_PER_MONTH
from teraflock.base.size import Size
from teraflock.bill.charge.rules import SECOND_US, Tariff, slices
from teraflock.bill.price.model import Period, PricePlace
from teraflock.bill.purchase.rules import month_micros
from teraflock.meter.model import Holding, Interval

HOUR_US = 3600 * SECOND_US


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts for all instances of the launch together. What it costs by the second, and what it would by the month."""

    currency: str
    instances: int
    mode: str
    micros_per_hour: int
    micros_per_month: int
    """730 hours on end, discounts for a long run included."""
    micros_stopped_per_month: int
    """While stopped: its disk."""
    egress_micros_per_gb: int
    """Each GB that leaves the house."""
    snapshot_micros_per_gb: int
    """Each GB that snapshots keep, a month."""
    region: str
    """Of the place these prices are of; empty: they are the same wherever it comes to."""
    micros_until_deadline: int | None
    minimum_micros: int
    """The least a run costs, however short."""
    monthly_micros: int
    """A month of it, bought ahead."""
    reserved_micros: Mapping[int, int]
    """A month of it where so many years are reserved."""
    version: int
    """Of the price book."""
    is_priced: bool
    """Whether the book has a price for the card."""


def dearest(
    held: Holding,
    places: Iterable[PricePlace],
    tariff: Tariff,
    period: Period,
    now_us: int,
    *,
    instances: int = 1,
    until_us: int | None = None,
) -> Quote:
    """The quote for the dearest of the places it may come to."""
    prices = period.prices
    told = {
        PricePlace(
            each.host * (each.host in prices.hosts), each.region * (each.region in prices.regions)
        ): each
        for each in places
    }  # most places have no price of their own
    quotes = [
        quote(
            msgspec.structs.replace(held, host=key.host, region=key.region), tariff, period, now_us,
            instances=instances, until_us=until_us, region=place.region if len(told) > 1 else "",
        )
        for key, place in sorted(told.items() or [(PricePlace(), PricePlace())])
    ]  # fmt: skip
    most = max(quotes, key=lambda each: (each.micros_per_hour, each.micros_per_month))
    return msgspec.structs.replace(
        most,
        egress_micros_per_gb=max(each.egress_micros_per_gb for each in quotes),
        snapshot_micros_per_gb=max(each.snapshot_micros_per_gb for each in quotes),
    )


def quote(
    held: Holding,
    tariff: Tariff,
    period: Period,
    now_us: int,
    *,
    instances: int = 1,
    until_us: int | None = None,
    region: str = "",
) -> Quote:
    stopped = msgspec.structs.replace(held, size=Size(disk_bytes=held.size.disk_bytes))
    place = PricePlace(held.host, held.region)
    years = sorted(period.prices.reserved_bp)
    minimum_us = period.prices.minimum_seconds * SECOND_US
    units = tariff.priced(period).units(held.size.gpu, held.mode, place)
    return Quote(
        currency=tariff.currency,
        instances=instances,
        mode=held.mode,
        micros_per_hour=instances * _cost(held, tariff, now_us, now_us + HOUR_US),
        micros_per_month=instances * _cost(held, tariff, now_us, now_us + HOURS_PER_MONTH * HOUR_US),
        micros_stopped_per_month=instances
        * _cost(stopped, tariff, now_us, now_us + HOURS_PER_MONTH * HOUR_US, runs=False),
        egress_micros_per_gb=units.egress,
        snapshot_micros_per_gb=units.snapshot,
        region=region,
        micros_until_deadline=None
        if until_us is None
        else instances * _cost(held, tariff, now_us, max(now_us, until_us)),
        minimum_micros=instances * _cost(held, tariff, now_us, now_us + minimum_us),
        monthly_micros=instances * month_micros(held.size, period, tariff.currency, place),
        reserved_micros={
            each: instances * month_micros(held.size, period, tariff.currency, place, years=each)
            for each in years
        },
        version=period.version,
        is_priced=not held.size.gpus or units.gpu > 0,
    )


def _cost(held: Holding, tariff: Tariff, from_us: int, until_us: int, *, runs: bool = True) -> int:
    """By the biller's own rules, so that what is quoted is what is charged, if prices stay as they are published."""
    interval = Interval(
        instance_id="", sequence=0, generation=0, project_id="", from_us=from_us, until_us=until_us + 1,
        run_us=from_us if runs else None, held=held,
    )  # fmt: skip
    return sum(sum(each.amounts) for each in slices(interval, until_us, tariff))
