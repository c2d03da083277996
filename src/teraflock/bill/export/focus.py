"""The charges of a month in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification), as CSV.

A charge of ours becomes a row for each thing that is priced: cards, processors, memory, disk … Costs that were billed
are ours to the micro-unit; list costs are unit price times quantity, as the specification defines them, and so may
differ from the floored sum by a millionth. What is paid by the month is a purchase with no effective cost of its own:
that lies on the usage it covers, by time, and on a row for what was not used.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from teraflock.base.quantities import GIB
from teraflock.bill.charge.store import Booked
from teraflock.bill.credit.rules import month_number
from teraflock.bill.export.amortised import Amortised
from teraflock.bill.ledger.model import Entry
from teraflock.bill.price.model import Place, PriceBook, PricedPeriod, Units
from teraflock.bill.times import moment, month_bounds

COLUMNS: Final = (
    "AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency",
    "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId", "CapacityReservationStatus", "ChargeCategory",
    "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountQuantity",
    "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountUnit", "ConsumedQuantity", "ConsumedUnit",
    "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceId", "InvoiceIssuerName", "ListCost",
    "ListUnitPrice", "PricingCategory", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice", "PricingQuantity", "PricingUnit", "ProviderName",
    "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory",
    "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId",
    "SubAccountName", "SubAccountType", "Tags",
)  # fmt: skip

Row = dict[str, str]
HOUR_US: Final = 3600 * 1_000_000
HOURS: Final = Decimal(730)


class Part(NamedTuple):
    """One thing that is priced, and how the specification classes it."""

    name: str
    quantity: str
    unit: str
    category: str
    subcategory: str
    in_bytes: bool = False


PARTS: Final = (
    Part("gpu", "gpus", "GPU-Hours", "AI and Machine Learning", "AI Platforms"),
    Part("vcpu", "vcpus", "vCPU-Hours", "Compute", "Virtual Machines"),
    Part("ram", "ram_bytes", "GiB-Hours", "Compute", "Virtual Machines", in_bytes=True),
    Part("disk", "disk_bytes", "GiB-Hours", "Storage", "Block Storage", in_bytes=True),
    Part("snapshot", "snapshots_bytes", "GiB-Hours", "Storage", "Backup Storage", in_bytes=True),
    Part("address", "addresses", "Hours", "Networking", "Network Infrastructure"),
    Part("egress", "egress_bytes", "GiB", "Networking", "Network Connectivity", in_bytes=True),
    Part("minimum", "", "Runs", "Compute", "Virtual Machines"),
)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Whose bill it is, and who sends it."""

    issuer: str = "Teraflock"
    organisation_id: str
    organisation: str
    project_id: str
    project: str
    invoice: str = ""


def focus_rows(
    account: Account,
    month: str,
    booked: Iterable[Booked],
    book: PriceBook,
    amortised: Amortised,
    paid: Sequence[tuple[int, Entry]] = (),
) -> Iterator[Row]:
    frame = _frame(account, month)
    for line in booked:
        if line.charge.kind in ("fee", "refund"):
            yield _purchase_row(frame, line)
        else:
            yield from _usage_rows(frame, line, book, amortised)
    for number, entry in paid:
        yield from _paid_rows(frame, number, entry, month)
    yield from _unused_rows(frame, amortised)


def _usage_rows(frame: Row, line: Booked, book: PriceBook, amortised: Amortised) -> Iterator[Row]:
    charge, held, part = line.charge, line.charge.subject.held, line.charge.slice
    sign = -1 if charge.kind == "reversal" else 1
    hours = Decimal(sign * (part.until_us - part.from_us)) / HOUR_US
    period = book.at(part.from_us) if part.version else None
    units = Units()
    if period is not None:
        priced = PricedPeriod(period, part.currency)
        units = priced.units(held.gpu, "on-demand", Place(held.host, held.region))
    covering = part.purchase_id
    for index, (each, micros) in enumerate(zip(PARTS, part.amounts[:8], strict=True)):
        amount = _amount(each, held, part.egress_bytes, hours)
        if not (amount or micros):
            continue
        unit_price = _unit_price(each, units, micros)
        quantity = amount if each.name != "minimum" else Decimal(1 if micros > 0 else -1)
        effective = micros
        if covering and index == (0 if held.gpus else 1):
            effective += sign * amortised.used(covering, part.from_us, part.until_us)
        row = {
            **frame,
            **_costs(micros, effective, unit_price, quantity, each.unit),
            **_resource(line),
            "ChargeCategory": "Usage",
            "ChargeClass": "Correction" if charge.kind == "reversal" else "",
            "ChargeDescription": _words(each, line),
            "ChargeFrequency": "Usage-Based",
            "ConsumedQuantity": _number(quantity),
            "ConsumedUnit": each.unit,
            "PricingCategory": "Committed"
            if covering and not micros
            else "Dynamic"
            if held.mode == "spot"
            else "Standard",
            "ServiceCategory": each.category,
            "ServiceSubcategory": each.subcategory,
            "SkuId": f"{each.name}/{held.gpu}" if each.name == "gpu" else each.name,
            "SkuMeter": each.unit,
            "SkuPriceId": f"{part.version}/{each.name}/{held.gpu if each.name == 'gpu' else ''}",
            **(_commitment(covering, "Used") if covering and not micros else {}),
        }
        yield row


def _purchase_row(frame: Row, line: Booked) -> Row:
    charge, fee = line.charge, line.charge.slice.amounts.fee
    yearly = charge.subject.held.mode == "reserved"
    return {
        **frame,
        **_costs(fee, 0, Decimal(fee), Decimal(1), "Months"),
        **_resource(line),
        "ResourceId": charge.subject.id,
        "ResourceType": "Commitment",
        "ChargeCategory": "Purchase",
        "ChargeDescription": f"{charge.subject.held.mode} of {charge.subject.held.name or charge.subject.id}",
        "ChargeFrequency": "Recurring",
        "PricingCategory": "Standard",
        "ServiceCategory": "Compute",
        "ServiceSubcategory": "Virtual Machines",
        "SkuId": charge.subject.held.mode,
        "SkuMeter": "Months",
        "SkuPriceId": f"{charge.subject.held.mode}/{charge.subject.id}",
        **_commitment(charge.subject.id, "", "Reserved" if yearly else "Monthly"),
    }


def _unused_rows(frame: Row, amortised: Amortised) -> Iterator[Row]:
    for purchase_id, from_us, until_us, micros in amortised.unused():
        yield {
            **frame,
            **_costs(0, micros, Decimal(0), Decimal(1), "Months"),
            "ChargeCategory": "Usage",
            "ChargeDescription": "bought and not used",
            "ChargeFrequency": "Recurring",
            "ChargePeriodStart": _time(from_us),
            "ChargePeriodEnd": _time(until_us),
            "ConsumedQuantity": "",
            "PricingCategory": "Committed",
            "ResourceId": purchase_id,
            "ResourceType": "Commitment",
            "ServiceCategory": "Compute",
            "ServiceSubcategory": "Virtual Machines",
            "SkuId": "unused",
            "SkuMeter": "Months",
            "SkuPriceId": "unused",
            **_commitment(purchase_id, "Unused"),
        }


def _paid_rows(frame: Row, number: int, entry: Entry, month: str) -> Iterator[Row]:
    """Credits that were drawn, and the tax."""
    kinds = {"drawn": ("Credit", -1), "returned": ("Credit", 1), "tax": ("Tax", 1)}
    if entry.kind not in kinds or (entry.kind != "tax" and entry.generation != month_number(month)):
        return
    if entry.kind == "returned" and entry.subject.startswith("balance/"):
        return
    category, sign = kinds[entry.kind]
    micros = sign * entry.micros
    yield {
        **frame,
        **_costs(micros, micros, None, None, ""),
        "ListCost": _money(micros),
        "ContractedCost": _money(micros),
        "ChargeCategory": category,
        "ChargeDescription": f"{category.lower()} {entry.subject}, entry {number}",
        "ChargeFrequency": "One-Time",
        "ServiceCategory": "Other",
        "ServiceSubcategory": "Other (Other)",
    }


def _frame(account: Account, month: str) -> Row:
    from_us, until_us = month_bounds(month)
    return {
        **dict.fromkeys(COLUMNS, ""),
        "BillingAccountId": account.organisation_id,
        "BillingAccountName": account.organisation,
        "BillingAccountType": "Organisation",
        "BillingPeriodStart": _time(from_us),
        "BillingPeriodEnd": _time(until_us),
        "ChargePeriodStart": _time(from_us),
        "ChargePeriodEnd": _time(until_us),
        "InvoiceId": account.invoice,
        "InvoiceIssuerName": account.issuer,
        "ProviderName": account.issuer,
        "PublisherName": account.issuer,
        "ServiceName": "Instances",
        "SubAccountId": account.project_id,
        "SubAccountName": account.project,
        "SubAccountType": "Project",
        "Tags": "{}",
    }


def _costs(billed: int, effective: int, unit: Decimal | None, quantity: Decimal | None, per: str) -> Row:
    listed = "" if unit is None or quantity is None else _number(unit * quantity / 1_000_000)
    price = "" if unit is None else _number(unit / 1_000_000)
    return {
        "BilledCost": _money(billed),
        "EffectiveCost": _money(effective),
        "ListCost": listed,
        "ContractedCost": listed,
        "ListUnitPrice": price,
        "ContractedUnitPrice": price,
        "PricingQuantity": "" if quantity is None else _number(quantity),
        "PricingUnit": per,
    }


def _resource(line: Booked) -> Row:
    charge, held = line.charge, line.charge.subject.held
    return {
        "BillingCurrency": charge.slice.currency,
        "ChargePeriodStart": _time(charge.slice.from_us),
        "ChargePeriodEnd": _time(charge.slice.until_us),
        "PricingCurrency": charge.slice.currency,
        "RegionId": held.region,
        "RegionName": held.region,
        "ResourceId": charge.subject.id,
        "ResourceName": held.name,
        "ResourceType": "Instance",
        "Tags": _tags(held.labels, held.member),
    }


def _commitment(purchase_id: str, status: str, kind: str = "") -> Row:
    return {
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountId": purchase_id,
        "CommitmentDiscountName": purchase_id,
        "CommitmentDiscountStatus": status,
        "CommitmentDiscountType": kind or "Instance",
    }


def _amount(part: Part, held: object, egress_bytes: int, hours: Decimal) -> Decimal:
    if part.name == "minimum":
        return Decimal(0)
    if part.name == "egress":
        return Decimal(egress_bytes) / GIB
    amount = Decimal(getattr(held, part.quantity))
    return (amount / GIB if part.in_bytes else amount) * hours


def _unit_price(part: Part, units: Units, micros: int) -> Decimal:
    if part.name == "minimum":
        return Decimal(abs(micros))
    price = Decimal(getattr(units, part.name))
    return price if part.name == "egress" else price / HOURS


def _words(part: Part, line: Booked) -> str:
    held = line.charge.subject.held
    named = held.gpu if part.name == "gpu" else {"minimum": "the least a run costs"}.get(part.name, part.name)
    return f"{named} of {held.name or line.charge.subject.id}"


def _tags(labels: str, member: str) -> str:
    tags: Mapping[str, str] = msgspec.json.decode(labels or "{}", type=dict[str, str])
    return msgspec.json.encode({**tags, "teraflock/member": member}).decode()


def _money(micros: int) -> str:
    return _number(Decimal(micros) / 1_000_000)


def _number(value: Decimal) -> str:
    """Plain digits, no exponent, as many as are needed up to twelve behind the point."""
    text = f"{value:.12f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _time(us: int) -> str:
    return moment(us).strftime("%Y-%m-%dT%H:%M:%SZ")


def focus_csv(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of the file, one after the other."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        yield _drained(buffer)
        writer.writerow(row)
    yield _drained(buffer)


def _drained(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
