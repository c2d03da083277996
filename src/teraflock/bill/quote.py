"""The price of an instance before it is launched.

Prices can depend on the host and its region, and the host is chosen at launch. So the quote is for the most expensive
place that is possible, and nobody pays more than was quoted.
"""

from collections.abc import Iterable, Mapping

import msgspec

from teraflock.base.clock import HOUR_US, SECOND_US
from teraflock.base.money import HOURS_PER_MONTH
from teraflock.base.size import Size
from teraflock.bill.charge.rules import Tariff, slices
from teraflock.bill.price.model import Period, PricePlace
from teraflock.bill.purchase.rules import month_micros
from teraflock.meter.model import Holding, Interval
from teraflock.tenant.model import NO_PROJECT


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts for all instances of the launch together: by the second, and by the month."""

    currency: str
    instances: int
    mode: str
    micros_per_hour: int
    micros_per_month: int
    """For 730 hours without a break, with discounts for long runs."""
    micros_stopped_per_month: int
    """For the disk, while stopped."""
    egress_micros_per_gb: int
    """For each GB that is sent to the internet."""
    snapshot_micros_per_gb: int
    """For each GB of snapshots, per month."""
    region: str
    """The place that these prices apply to. Empty: prices do not depend on the place."""
    micros_until_deadline: int | None
    minimum_micros: int
    """The minimum charge of a run."""
    monthly_micros: int
    """If a month is paid ahead."""
    reserved_micros: Mapping[int, int]
    """Per month, by the years of a reservation."""
    version: int
    """The version of the price book."""
    is_priced: bool
    """Whether the price book has a price for the GPU model."""


def most_expensive(
    held: Holding,
    places: Iterable[PricePlace],
    tariff: Tariff,
    period: Period,
    now_us: int,
    *,
    instances: int = 1,
    until_us: int | None = None,
) -> Quote:
    """The quote for the most expensive of the possible places."""
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
    units = tariff.units(tariff.priced(period), held)
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
    """Uses the rules of the biller, so the quote is what is charged unless prices change."""
    interval = Interval(
        instance_id="", sequence=0, generation=0, project_id=NO_PROJECT, from_us=from_us, until_us=until_us + 1,
        run_us=from_us if runs else None, held=held,
    )  # fmt: skip
    return sum(sum(each.amounts) for each in slices(interval, until_us, tariff))
