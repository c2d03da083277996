"""How FOCUS has things written down: plain decimals, times by the second, tags as JSON."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from teraflock.base.money import MICROS
from teraflock.bill.export.model import Row
from teraflock.bill.times import moment

SECOND_US: Final = 1_000_000
HOUR_US: Final = 3600 * SECOND_US


def money(micros: int) -> str:
    return number(Decimal(micros) / MICROS)


def number(value: Decimal) -> str:
    """Plain digits, no exponent, as many as are needed up to twelve behind the point."""
    text = f"{value:.12f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def hours(us: int) -> Decimal:
    return Decimal(us) / HOUR_US


def time(us: int) -> str:
    return moment(us).strftime("%Y-%m-%dT%H:%M:%SZ")


def charge_period(from_us: int, until_us: int) -> Row:
    """By the second, as FOCUS has it; what lasted less still has an end behind its beginning."""
    end_us = max(until_us, from_us // SECOND_US * SECOND_US + SECOND_US)
    return {"ChargePeriodStart": time(from_us), "ChargePeriodEnd": time(end_us)}


def tags(labels: str, member: str) -> str:
    own: Mapping[str, str] = msgspec.json.decode(labels or "{}", type=dict[str, str])
    return msgspec.json.encode({**own, "teraflock/member": member}).decode()


def costs(billed: int, effective: int, unit: Decimal, quantity: Decimal, per: str) -> Row:
    """`unit` is the list price in micro-units. There are no negotiated prices: what is contracted is the list."""
    listed, price = number(unit * quantity / MICROS), number(unit / MICROS)
    return {
        "BilledCost": money(billed),
        "EffectiveCost": money(effective),
        "ListCost": listed,
        "ContractedCost": listed,
        "ListUnitPrice": price,
        "ContractedUnitPrice": price,
        "PricingQuantity": number(quantity),
        "PricingUnit": per,
    }


def costs_without_price(billed: int, effective: int) -> Row:
    """Of what no unit is sold: credits, tax, what is given back."""
    return {
        "BilledCost": money(billed),
        "EffectiveCost": money(effective),
        "ListCost": money(billed),
        "ContractedCost": money(billed),
    }
