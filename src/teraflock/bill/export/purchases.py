"""Rows for purchases: the fee, the unused part, the refund, and the columns that link them."""

from decimal import Decimal
from typing import Final

from teraflock.bill.charge.model import Charge
from teraflock.bill.export.amortised import Bought, Unused
from teraflock.bill.export.model import INSTANCES, Row, service_columns
from teraflock.bill.export.text import charge_period, costs, costs_without_price, hours, number
from teraflock.bill.export.usage import resource_columns
from teraflock.bill.purchase.model import Purchase

UNIT: Final = "Hours"
"""Purchases are counted in hours of instance time."""


def purchase_row(charge: Charge, bought: Bought) -> Row:
    """A fee. Its effective cost is 0, because the cost is on the rows of the time that it pays for."""
    purchase, _ = bought[charge.subject.id]
    fee, part = charge.slice.amounts.fee, charge.slice
    return {
        **resource_columns(charge),
        **_resource(purchase),
        **costs(fee, 0, Decimal(fee), Decimal(1), "Terms"),
        **service_columns(INSTANCES),
        **commitment(purchase, us=part.until_us - part.from_us),
        "ChargeCategory": "Purchase",
        "ChargeDescription": f"{_words(purchase)} of {charge.subject.held.name or purchase.instance_id}",
        "ChargeFrequency": "One-Time" if purchase.upfront else "Recurring",
        "PricingCategory": "Standard",
        "SkuId": purchase.mode,
        "SkuMeter": "Prepaid instance time",
        "SkuPriceId": f"{purchase.mode}/{purchase.id}",
    }


def refund_row(charge: Charge, bought: Bought) -> Row:
    """The refund for a month that ended early. The remaining time is in the unused rows."""
    purchase, _ = bought[charge.subject.id]
    micros = charge.slice.amounts.fee
    return {
        **resource_columns(charge),
        **_resource(purchase),
        **costs_without_price(micros, micros),
        **service_columns(INSTANCES),
        **commitment(purchase),
        "ChargeCategory": "Adjustment",
        "ChargeDescription": f"{charge.subject.held.name or purchase.instance_id}, ended early: refund",
        "ChargeFrequency": "One-Time",
    }


def unused_row(unused: Unused, bought: Bought) -> Row:
    purchase, _ = bought[unused.purchase_id]
    return {
        **charge_period(unused.from_us, unused.until_us),
        **_resource(purchase),
        **costs(0, unused.micros, Decimal(0), hours(unused.us), UNIT),
        **service_columns(INSTANCES),
        **commitment(purchase, "Unused", unused.us),
        "ChargeCategory": "Usage",
        "ChargeClass": "Correction" if unused.is_late else "",
        "ChargeDescription": f"{_words(purchase)}, prepaid but not used",
        "ChargeFrequency": "Usage-Based",
        "PricingCategory": "Committed",
        "SkuId": "committed",
        "SkuMeter": "Instance time",
        "SkuPriceId": f"{purchase.mode}/{purchase.id}",
    }


def commitment(purchase: Purchase, status: str = "", us: int = 0) -> Row:
    return {
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountId": purchase.id,
        "CommitmentDiscountName": f"{_words(purchase)} of {purchase.instance_id}",
        "CommitmentDiscountQuantity": number(hours(us)) if us else "",
        "CommitmentDiscountStatus": status,
        "CommitmentDiscountType": "Reservation" if purchase.mode == "reserved" else "Month",
        "CommitmentDiscountUnit": UNIT if us else "",
    }


def _resource(purchase: Purchase) -> Row:
    return {"ResourceId": purchase.id, "ResourceName": _words(purchase), "ResourceType": "Commitment"}


def _words(purchase: Purchase) -> str:
    if purchase.mode == "monthly":
        return "a month"
    return f"{purchase.years} year{'s' if purchase.years > 1 else ''}"
