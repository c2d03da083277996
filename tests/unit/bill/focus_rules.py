"""The rules of FOCUS 1.2 for a dataset of cost and usage, as far as they could be had.

Eleven columns were written from texts of the specification's repository that are of about 1.2 and not all of its final
state: CommitmentDiscountQuantity and -Status, PricingQuantity, PricingCategory, ContractedUnitPrice, EffectiveCost,
PricingCurrencyEffectiveCost, ConsumedQuantity (whose draft asks for it only where a commitment is used; we ask for it
of all usage), SkuId, SkuMeter, ChargeClass. The others, and the names of subcategories, were written from knowledge and
want to be compared with the published text.

It knows nothing of the exporter: it is given the text of a CSV file, as any reader of it would be, and says what is
wrong with it. A rule that the specification makes depend on what a provider supports is asked as far as we support it.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal

Row = dict[str, str]

MANDATORY = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost",
    "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ServiceCategory", "ServiceName",
)  # fmt: skip
SUPPORTED = (
    "BillingAccountType", "ChargeFrequency", "CommitmentDiscountCategory", "CommitmentDiscountId",
    "CommitmentDiscountName", "CommitmentDiscountQuantity", "CommitmentDiscountStatus", "CommitmentDiscountType",
    "CommitmentDiscountUnit", "ConsumedQuantity", "ConsumedUnit", "ContractedUnitPrice", "InvoiceId", "ListUnitPrice",
    "PricingCategory", "PricingCurrency", "PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType",
    "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName",
    "SubAccountType", "Tags",
)  # fmt: skip
"""Conditional or recommended: present where the provider has what they tell of, and we do."""
OPTIONAL = ("AvailabilityZone", "CapacityReservationId", "CapacityReservationStatus")
NEVER_NULL = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart",
    "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingCurrency",
    "PricingCurrencyEffectiveCost", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
    "ServiceSubcategory",
)  # fmt: skip
DECIMALS = (
    "BilledCost", "CommitmentDiscountQuantity", "ConsumedQuantity", "ContractedCost", "ContractedUnitPrice",
    "EffectiveCost", "ListCost", "ListUnitPrice", "PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice", "PricingQuantity",
)  # fmt: skip
NOT_NEGATIVE = (
    "ContractedUnitPrice", "ListUnitPrice", "PricingCurrencyContractedUnitPrice", "PricingCurrencyListUnitPrice",
)  # fmt: skip
TIMES = ("BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart")
ALLOWED = {
    "CapacityReservationStatus": {"Used", "Unused"},
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "CommitmentDiscountCategory": {"Spend", "Usage"},
    "CommitmentDiscountStatus": {"Used", "Unused"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
}
SUBCATEGORIES = {
    "AI and Machine Learning": {
        "AI Platforms", "Bots", "Generative AI", "Machine Learning", "Natural Language Processing",
        "Other (AI and Machine Learning)",
    },
    "Compute": {
        "Containers", "End User Computing", "Quantum Compute", "Serverless Compute", "Virtual Machines",
        "Other (Compute)",
    },
    "Networking": {
        "Application Networking", "Content Delivery", "Network Connectivity", "Network Infrastructure",
        "Network Routing", "Network Security", "Other (Networking)",
    },
    "Storage": {
        "Backup Storage", "Block Storage", "File Storage", "Object Storage", "Storage Platforms", "Other (Storage)",
    },
    "Other": {"Other (Other)"},
}  # fmt: skip
"""Of those categories that a cloud of machines may sell."""
PRICED = ("ContractedUnitPrice", "ListUnitPrice", "PricingCategory", "PricingQuantity", "SkuId", "SkuPriceId")
"""Of usage and purchases never null, of tax always."""
TOGETHER = (
    ("PricingQuantity", "PricingUnit"), ("ConsumedQuantity", "ConsumedUnit"),
    ("CommitmentDiscountQuantity", "CommitmentDiscountUnit"), ("RegionId", "RegionName"),
    ("CommitmentDiscountId", "CommitmentDiscountCategory"), ("CommitmentDiscountId", "CommitmentDiscountType"),
    ("BillingAccountId", "BillingAccountType"), ("SubAccountId", "SubAccountType"), ("SubAccountId", "SubAccountName"),
    ("ResourceId", "ResourceType"), ("SkuId", "SkuMeter"),
)  # fmt: skip
"""Both are null, or neither is."""
ONLY_WITH = (
    ("CommitmentDiscountName", "CommitmentDiscountId"), ("CommitmentDiscountStatus", "CommitmentDiscountId"),
    ("CommitmentDiscountQuantity", "CommitmentDiscountId"), ("ResourceName", "ResourceId"),
    ("SkuPriceDetails", "SkuPriceId"), ("CapacityReservationStatus", "CapacityReservationId"),
)  # fmt: skip
"""The first is null where the second is."""
SMALLEST = Decimal("0.000001")


def faults(text: str) -> list[str]:
    """What is wrong, each with the row it is wrong in; the first row is 1."""
    reader = csv.DictReader(io.StringIO(text))
    rows = list(reader)
    found = [f"header: {fault}" for fault in _header(reader.fieldnames or ())]
    if found:
        return found
    for number, row in enumerate(rows, start=1):
        wrong = [fault for rule in (_nulls, _types, _allowed) for fault in rule(row)]
        if not wrong:  # what is no number can be compared with nothing
            wrong = [
                fault
                for rule in (_periods, _prices, _consumption, _commitments, _currencies)
                for fault in rule(row)
            ]
        found += [f"row {number}: {fault}" for fault in wrong]
    return found + _services(rows)


def _header(names: object) -> Iterator[str]:
    names = list(names) if isinstance(names, list | tuple) else []
    for name in (*MANDATORY, *SUPPORTED):
        if name not in names:
            yield f"{name} is missing"
    for name in names:
        known = name in MANDATORY or name in SUPPORTED or name in OPTIONAL
        if not known and not name.startswith("x_"):
            yield f"{name} is no column of FOCUS, and has no x_ before it"
    if len(set(names)) != len(names):
        yield "a column is there twice"


def _nulls(row: Row) -> Iterator[str]:
    yield from (f"{name} is null" for name in NEVER_NULL if not row[name])
    yield from (f"{a} and {b}: only one is null" for a, b in TOGETHER if bool(row[a]) != bool(row[b]))
    yield from (f"{a} without {b}" for a, b in ONLY_WITH if row[a] and not row[b])


def _types(row: Row) -> Iterator[str]:
    for name in DECIMALS:
        if row[name] and not re.fullmatch(r"-?\d+(\.\d+)?", row[name]):
            yield f"{name} is no decimal: {row[name]}"
    for name in NOT_NEGATIVE:
        if row[name].startswith("-"):
            yield f"{name} is below zero"
    for name in TIMES:
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[name]):
            yield f"{name} is no time: {row[name]}"
    for name in ("BillingCurrency", "PricingCurrency"):
        if not re.fullmatch(r"[A-Z]{3}", row[name]):
            yield f"{name} is no currency: {row[name]}"
    for name in ("Tags", "SkuPriceDetails"):
        if row[name] and not _is_key_values(row[name]):
            yield f"{name} is no object of JSON with plain values"


def _is_key_values(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and not any(isinstance(each, dict | list) for each in value.values())


def _allowed(row: Row) -> Iterator[str]:
    for name, words in ALLOWED.items():
        if row.get(name) and row[name] not in words:
            yield f"{name} may not be {row[name]}"
    if row["ServiceSubcategory"] not in SUBCATEGORIES.get(row["ServiceCategory"], ()):
        yield f"{row['ServiceCategory']} has no {row['ServiceSubcategory']}"


def _periods(row: Row) -> Iterator[str]:
    for name in ("BillingPeriod", "ChargePeriod"):
        if row[f"{name}Start"] >= row[f"{name}End"]:
            yield f"{name} ends before it begins"
    if not row["ChargeClass"] and row["ChargePeriodStart"] >= row["BillingPeriodEnd"]:
        yield "it is charged before it is used"


def _prices(row: Row) -> Iterator[str]:
    sold = row["ChargeCategory"] in ("Usage", "Purchase") and not row["ChargeClass"]
    for name in PRICED:
        if sold and not row[name]:
            yield f"{name} is null"
        if row["ChargeCategory"] == "Tax" and row[name]:
            yield f"{name} of a tax"
    if row["ChargeClass"] or not row["PricingQuantity"]:
        return
    for kind in ("List", "Contracted"):
        if row[f"{kind}UnitPrice"]:
            product = Decimal(row[f"{kind}UnitPrice"]) * Decimal(row["PricingQuantity"])
            if abs(product - Decimal(row[f"{kind}Cost"])) >= SMALLEST:
                yield f"{kind}Cost is {row[f'{kind}Cost']}, not {product}"


def _consumption(row: Row) -> Iterator[str]:
    consumes = row["ChargeCategory"] == "Usage" and row["CommitmentDiscountStatus"] != "Unused"
    if not consumes and row["ConsumedQuantity"]:
        yield "ConsumedQuantity where nothing was consumed"
    if consumes and not row["ChargeClass"]:
        if not row["ConsumedQuantity"]:
            yield "ConsumedQuantity is null"
        elif Decimal(row["ConsumedQuantity"]) <= 0:
            yield "ConsumedQuantity is not above zero"
    if row["ChargeCategory"] == "Purchase" and row["ChargeFrequency"] == "Usage-Based":
        yield "a purchase by usage"


def _commitments(row: Row) -> Iterator[str]:
    if not row["CommitmentDiscountId"]:
        if row["PricingCategory"] == "Committed":
            yield "Committed to nothing"
        return
    counted = row["ChargeCategory"] in ("Usage", "Purchase")
    if row["ChargeCategory"] == "Usage":
        if not row["CommitmentDiscountStatus"]:
            yield "CommitmentDiscountStatus is null"
        if row["PricingCategory"] != "Committed":
            yield "usage under a commitment that is not Committed"
        if Decimal(row["BilledCost"]) and not row["ChargeClass"]:
            yield "usage under a commitment is billed again"
    if row["ChargeCategory"] == "Purchase":
        if row["PricingCategory"] == "Committed":
            yield "the purchase of a commitment is not Committed itself"
        if Decimal(row["EffectiveCost"]):
            yield "EffectiveCost of a purchase for what is to come"
    if not row["ChargeClass"]:
        quantity = row["CommitmentDiscountQuantity"]
        if counted and not (quantity and Decimal(quantity) > 0):
            yield "CommitmentDiscountQuantity is not above zero"
        if not counted and quantity:
            yield "CommitmentDiscountQuantity of what is neither usage nor purchase"


def _currencies(row: Row) -> Iterator[str]:
    if row["BillingCurrency"] != row["PricingCurrency"]:
        return
    for name in ("EffectiveCost", "ListUnitPrice", "ContractedUnitPrice"):
        if row[name] != row[f"PricingCurrency{name}"]:
            yield f"PricingCurrency{name} differs in the same currency"


def _services(rows: list[Row]) -> list[str]:
    """Each service has one category; each commitment one type, and each bill one account and currency."""
    found: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for row in rows:
        found.setdefault(("ServiceName", row["ServiceName"]), set()).add(
            (row["ServiceCategory"], row["ServiceSubcategory"])
        )
        found.setdefault(("SkuId", row["SkuId"]), set()).add((row["SkuMeter"],))
        found.setdefault(("CommitmentDiscountId", row["CommitmentDiscountId"]), set()).add(
            (row["CommitmentDiscountType"], row["CommitmentDiscountCategory"])
        )
        period = (
            row["BillingPeriodStart"],
            row["BillingPeriodEnd"],
            row["BillingCurrency"],
            row["InvoiceIssuerName"],
        )
        found.setdefault(("InvoiceId", row["InvoiceId"]), set()).add(period)
    return [f"{name} {value}: {sorted(kinds)}" for (name, value), kinds in found.items() if len(kinds) > 1]
