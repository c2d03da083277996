"""Rows for usage: one for each priced part, and one for everything that a purchase paid for."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final

from teraflock.base.money import HOURS_PER_MONTH
from teraflock.base.quantities import GIB
from teraflock.bill.charge.model import Charge, Covered
from teraflock.bill.charge.rules import Tariff, beyond_cover, cover_at
from teraflock.bill.export.model import INSTANCES, PARTS, ChargePart, Row, Service, service_columns
from teraflock.bill.export.text import KEPT, charge_period, costs, hours, number, tags
from teraflock.bill.price.model import ADDRESS, IMAGE, PricePlace, Units, list_mode

_RESOURCE_TYPES: Final = {IMAGE: "Image", ADDRESS: "Address"}


def usage_rows(charge: Charge, tariff: Tariff, covers: Sequence[Covered]) -> Iterator[Row]:
    """Usage that was not prepaid, by priced part."""
    units, hours_used = _list_prices(charge, tariff), _hours(charge)
    beyond, resource = beyond_cover(charge.subject.held, _cover(charge, covers)), resource_columns(charge)
    dynamic = _on_spot(charge, tariff)
    for part, held, micros in zip(PARTS, (*beyond, 0, 0), charge.slice.amounts[: len(PARTS)], strict=True):
        if not held and not micros and part.name != "egress":
            continue
        quantity = _quantity(part, charge, held, hours_used, micros)
        if quantity or micros:
            price = Decimal(abs(micros)) if part.name == "minimum" else _per_unit(part, units)
            paid = costs(micros, micros, price, quantity, part.unit)
            yield {
                **resource,
                "PricingCategory": "Dynamic" if part.service in dynamic else "Standard",
                **_OF_PART[part.name],
                **paid,
                "ConsumedQuantity": paid["PricingQuantity"],
                **_sku(part, charge),
                "ChargeDescription": _words(part, charge),
            }


def committed_row(charge: Charge, tariff: Tariff, covers: Sequence[Covered], effective: int) -> Row:
    """Prepaid usage as one row: hours of the instance, at the list prices of all its parts."""
    held = charge.subject.held
    beyond = beyond_cover(held, _cover(charge, covers))
    units = _list_prices(charge, tariff)
    covered = (held.size.gpus, held.size.vcpus, held.size.ram_bytes, held.size.disk_bytes)
    prices = [
        _per_unit(part, units) * (all_of_it - more) / (GIB if part.in_bytes else 1)
        for part, all_of_it, more in zip(PARTS[:4], covered, beyond[:4], strict=True)
    ]
    quantity = _hours(charge)
    return {
        **resource_columns(charge),
        **_used("Hours"),
        **costs(0, effective, sum(prices, Decimal(0)), quantity, "Hours"),
        **service_columns(INSTANCES),
        "ConsumedQuantity": number(quantity),
        "ChargeDescription": f"{held.name or charge.subject.id}, prepaid",
        "PricingCategory": "Committed",
        "SkuId": "committed",
        "SkuMeter": "Instance time",
        "SkuPriceId": f"{charge.slice.version}/committed",
    }


def uses_what_was_bought(charge: Charge) -> bool:
    """A stopped instance does not, although it may keep its disk."""
    held = charge.subject.held
    is_running = bool(held.size.gpus or held.size.vcpus)
    return bool(charge.slice.purchase_id) and is_running and charge.slice.until_us > charge.slice.from_us


def resource_columns(charge: Charge) -> Row:
    held = charge.subject.held
    return {
        **charge_period(charge.slice.from_us, charge.slice.until_us),
        "RegionId": held.region,
        "RegionName": held.region,
        "ResourceId": charge.subject.id,
        "ResourceName": held.name,
        "ResourceType": _RESOURCE_TYPES.get(held.mode, "Instance"),
        "Tags": tags(held.labels, held.member),
    }


def _used(unit: str) -> Row:
    return {"ChargeCategory": "Usage", "ChargeFrequency": "Usage-Based", "ConsumedUnit": unit}


_OF_PART: Final = {
    part.name: {**_used(part.unit), **service_columns(part.service), "SkuMeter": part.meter} for part in PARTS
}


def _cover(charge: Charge, covers: Sequence[Covered]) -> Covered | None:
    return cover_at(covers, charge.slice.from_us) if charge.slice.purchase_id else None


def _list_prices(charge: Charge, tariff: Tariff) -> Units:
    part, held = charge.slice, charge.subject.held
    priced = tariff.at(min(part.from_us, part.until_us - 1)) if part.version else None
    if priced is None:
        return Units()
    return priced.units(held.size.gpu, list_mode(held.mode), PricePlace(held.host, held.region))


def _on_spot(charge: Charge, tariff: Tariff) -> tuple[Service, ...]:
    """The parts of a charge at spot prices: compute only; everything in books from before that rule."""
    if charge.subject.held.mode not in ("spot", "bid"):
        return ()
    priced = tariff.at(min(charge.slice.from_us, charge.slice.until_us - 1)) if charge.slice.version else None
    every = tuple({part.service for part in PARTS})
    return every if priced is None or not priced.period.prices.spot_for_compute else (INSTANCES,)


def _quantity(part: ChargePart, charge: Charge, held: int, hours_used: Decimal, micros: int) -> Decimal:
    if part.name == "minimum":
        return Decimal((micros > 0) - (micros < 0))
    if part.name == "egress":
        return Decimal(charge.slice.egress_bytes) / GIB
    return (_gb(held) if part.in_bytes else Decimal(held)) * hours_used


@lru_cache(maxsize=KEPT)
def _gb(held_bytes: int) -> Decimal:
    return Decimal(held_bytes) / GIB


def _per_unit(part: ChargePart, units: Units) -> Decimal:
    """Micro-units per hour of one unit, or per GB sent."""
    price: int = getattr(units, part.name)
    return Decimal(price) if part.name == "egress" else _hourly(price)


@lru_cache(maxsize=KEPT)
def _hourly(micros_per_month: int) -> Decimal:
    return Decimal(micros_per_month) / HOURS_PER_MONTH


def _sku(part: ChargePart, charge: Charge) -> Row:
    sku = f"gpu/{charge.subject.held.size.gpu}" if part.name == "gpu" else part.name
    return {"SkuId": sku, "SkuPriceId": f"{charge.slice.version}/{sku}"}


def _words(part: ChargePart, charge: Charge) -> str:
    held = charge.subject.held
    named = held.size.gpu if part.name == "gpu" else {"minimum": "minimum charge"}.get(part.name, part.name)
    return f"{named} of {held.name or charge.subject.id}"


def _hours(charge: Charge) -> Decimal:
    """The duration in hours; negative for a reversal."""
    lasted = hours(charge.slice.until_us - charge.slice.from_us)
    return -lasted if charge.kind == "reversal" else lasted
