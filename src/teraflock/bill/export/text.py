"""Formats values for FOCUS: plain decimals, times in seconds, tags as JSON."""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final

import msgspec

from teraflock.base.clock import HOUR_US, SECOND_US
from teraflock.base.money import MICROS
from teraflock.bill.export.model import Row
from teraflock.bill.times import moment

DAY_SECONDS: Final = 86_400
KEPT: Final = 4096  # cached texts of each kind: the rows of a month have few prices, days and tags


def money(micros: int) -> str:
    whole, rest = divmod(abs(micros), MICROS)
    text = f"{whole}.{rest:06}".rstrip("0") if rest else str(whole)
    return f"-{text}" if micros < 0 else text


def number(value: Decimal) -> str:
    """Plain digits without an exponent, with as many decimals as needed, up to twelve."""
    text = f"{value:.12f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def hours(us: int) -> Decimal:
    return Decimal(us) / HOUR_US


def time(us: int) -> str:
    day, seconds = divmod(us // SECOND_US, DAY_SECONDS)
    return f"{_day(day)}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


def charge_period(from_us: int, until_us: int) -> Row:
    """In whole seconds, as FOCUS requires. A shorter period still ends after it starts."""
    end_us = max(until_us, from_us // SECOND_US * SECOND_US + SECOND_US)
    return {"ChargePeriodStart": time(from_us), "ChargePeriodEnd": time(end_us)}


@lru_cache(maxsize=KEPT)
def tags(labels: str, member: str) -> str:
    own: Mapping[str, str] = msgspec.json.decode(labels or "{}", type=dict[str, str])
    return msgspec.json.encode({**own, "teraflock/member": member}).decode()


def costs(billed: int, effective: int, unit: Decimal, quantity: Decimal, per: str) -> Row:
    """`unit` is the list price in micro-units. Without negotiated prices, it is also the contracted price."""
    listed, price, cost = number(unit * quantity / MICROS), _price(unit), money(billed)
    return {
        "BilledCost": cost,
        "EffectiveCost": cost if effective == billed else money(effective),
        "ListCost": listed,
        "ContractedCost": listed,
        "ListUnitPrice": price,
        "ContractedUnitPrice": price,
        "PricingQuantity": number(quantity),
        "PricingUnit": per,
    }


def costs_without_price(billed: int, effective: int) -> Row:
    """Costs without a unit price: credits, tax, refunds."""
    cost = money(billed)
    return {
        "BilledCost": cost,
        "EffectiveCost": money(effective),
        "ListCost": cost,
        "ContractedCost": cost,
    }


@lru_cache(maxsize=KEPT)
def _price(micros: Decimal) -> str:
    return number(micros / MICROS)


@lru_cache(maxsize=KEPT)
def _day(day: int) -> str:
    return moment(day * DAY_SECONDS * SECOND_US).strftime("%Y-%m-%d")
