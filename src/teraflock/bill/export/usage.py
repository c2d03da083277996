"""Rows of what was used: one for each thing that is priced, and one for all that a purchase paid for."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from teraflock.base.money import HOURS_PER_MONTH
from teraflock.base.quantities import GIB
from teraflock.bill.charge.model import Charge, Covered
from teraflock.bill.charge.rules import Tariff, beyond_cover, cover_at
from teraflock.bill.export.model import INSTANCES, PARTS, Part, Row, service_columns
from teraflock.bill.export.text import charge_period, costs, hours, number, tags
from teraflock.bill.price.model import Place, Units


def usage_rows(charge: Charge, tariff: Tariff, covers: Sequence[Covered]) -> Iterator[Row]:
    """What was used and not bought ahead, by what is priced."""
    units = _list_prices(charge, tariff)
    beyond, resource = beyond_cover(charge.subject.held, _cover(charge, covers)), resource_columns(charge)
    for index, (part, micros) in enumerate(zip(PARTS, charge.slice.amounts[:8], strict=True)):
        quantity = _quantity(part, charge, beyond[index] if index < len(beyond) else 0, micros)
        if quantity or micros:
            price = Decimal(abs(micros)) if part.name == "minimum" else _per_unit(part, units)
            yield {
                **resource,
                **_used(quantity, part.unit),
                **costs(micros, micros, price, quantity, part.unit),
                **service_columns(part.service),
                **_sku(part, charge),
                "ChargeDescription": _words(part, charge),
                "PricingCategory": "Dynamic" if charge.subject.held.mode == "spot" else "Standard",
            }


def committed_row(charge: Charge, tariff: Tariff, covers: Sequence[Covered], effective: int) -> Row:
    """What was used of what was bought ahead, as one: hours of the instance, at the list prices of all in it."""
    held = charge.subject.held
    beyond = beyond_cover(held, _cover(charge, covers))
    units = _list_prices(charge, tariff)
    covered = (held.gpus, held.vcpus, held.ram_bytes, held.disk_bytes)
    prices = [
        _per_unit(part, units) * (all_of_it - more) / (GIB if part.in_bytes else 1)
        for part, all_of_it, more in zip(PARTS[:4], covered, beyond[:4], strict=True)
    ]
    quantity = _sign(charge) * hours(charge.slice.until_us - charge.slice.from_us)
    return {
        **resource_columns(charge),
        **_used(quantity, "Hours"),
        **costs(0, effective, sum(prices, Decimal(0)), quantity, "Hours"),
        **service_columns(INSTANCES),
        "ChargeDescription": f"{held.name or charge.subject.id}, bought ahead",
        "PricingCategory": "Committed",
        "SkuId": "committed",
        "SkuMeter": "Instance time",
        "SkuPriceId": f"{charge.slice.version}/committed",
    }


def uses_what_was_bought(charge: Charge) -> bool:
    """A stopped instance does not, though it may hold its disk."""
    held = charge.subject.held
    is_running = bool(held.gpus or held.vcpus)
    return bool(charge.slice.purchase_id) and is_running and charge.slice.until_us > charge.slice.from_us


def resource_columns(charge: Charge) -> Row:
    held = charge.subject.held
    return {
        **charge_period(charge.slice.from_us, charge.slice.until_us),
        "RegionId": held.region,
        "RegionName": held.region,
        "ResourceId": charge.subject.id,
        "ResourceName": held.name,
        "ResourceType": "Instance",
        "Tags": tags(held.labels, held.member),
    }


def _used(quantity: Decimal, unit: str) -> Row:
    return {
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ConsumedQuantity": number(quantity),
        "ConsumedUnit": unit,
    }


def _cover(charge: Charge, covers: Sequence[Covered]) -> Covered | None:
    return cover_at(covers, charge.slice.from_us) if charge.slice.purchase_id else None


def _list_prices(charge: Charge, tariff: Tariff) -> Units:
    part, held = charge.slice, charge.subject.held
    period = tariff.book.at(min(part.from_us, part.until_us - 1)) if part.version else None
    if period is None:
        return Units()
    return tariff.priced(period).units(held.gpu, "on-demand", Place(held.host, held.region))


def _quantity(part: Part, charge: Charge, held: int, micros: int) -> Decimal:
    if part.name == "minimum":
        return Decimal((micros > 0) - (micros < 0))
    if part.name == "egress":
        return Decimal(charge.slice.egress_bytes) / GIB
    amount = Decimal(held) / GIB if part.in_bytes else Decimal(held)
    return amount * _sign(charge) * hours(charge.slice.until_us - charge.slice.from_us)


def _per_unit(part: Part, units: Units) -> Decimal:
    """Micro-units for an hour of one, or for a GB that was sent."""
    price = Decimal(getattr(units, part.name))
    return price if part.name == "egress" else price / HOURS_PER_MONTH


def _sku(part: Part, charge: Charge) -> Row:
    sku = f"gpu/{charge.subject.held.gpu}" if part.name == "gpu" else part.name
    return {"SkuId": sku, "SkuMeter": part.meter, "SkuPriceId": f"{charge.slice.version}/{sku}"}


def _words(part: Part, charge: Charge) -> str:
    held = charge.subject.held
    named = held.gpu if part.name == "gpu" else {"minimum": "the least a run costs"}.get(part.name, part.name)
    return f"{named} of {held.name or charge.subject.id}"


def _sign(charge: Charge) -> int:
    return -1 if charge.kind == "reversal" else 1
