"""A month in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification), as CSV.

It has the contents of the month's current or future invoice: the charges of the month, and late charges of months that
were invoiced before, as corrections. Billed costs are exact to the micro-unit and add up to the invoice. List costs are
unit price times quantity, as the specification defines them, so they may differ from the rounded sum by a millionth. A
purchase has no effective cost of its own: see `amortised`.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

import msgspec

from teraflock.bill.charge.model import Charge, Covered
from teraflock.bill.charge.rules import Tariff
from teraflock.bill.charge.store import Booked
from teraflock.bill.credit.rules import month_number
from teraflock.bill.export.amortised import Amortised, Bought
from teraflock.bill.export.model import COLUMNS, OTHER, BillingAccount, Row, service_columns
from teraflock.bill.export.purchases import commitment, purchase_row, refund_row, unused_row
from teraflock.bill.export.text import KEPT, charge_period, costs_without_price, time
from teraflock.bill.export.usage import committed_row, usage_rows, uses_what_was_bought
from teraflock.bill.ledger.model import LedgerEntry
from teraflock.bill.times import month_bounds

PIECE_CHARACTERS: Final = 1 << 16
_in_order: Final = itemgetter(*COLUMNS)


class Month(msgspec.Struct, frozen=True, kw_only=True):
    """The data for the rows of a month."""

    account: BillingAccount
    month: str
    is_over: bool
    """Whether the month has ended. Unused amounts are known only then."""
    invoiced_until: str
    """The last month that was invoiced before; empty for none."""
    booked: Iterable[Booked]
    """Without charges that were reversed before they were invoiced."""
    credits: Sequence[tuple[int, LedgerEntry]]
    tax_name: str
    tax_micros: int
    tariff: Tariff
    bought: Bought
    covers: Callable[[str], Sequence[Covered]]
    """Instance id → the times that its purchases cover."""


def focus_rows(month: Month) -> Iterator[Row]:
    frame = _frame(month)
    for row in _rows(month):
        whole = {**frame, **row}
        whole["PricingCurrencyEffectiveCost"] = whole["EffectiveCost"]
        whole["PricingCurrencyContractedUnitPrice"] = whole["ContractedUnitPrice"]
        whole["PricingCurrencyListUnitPrice"] = whole["ListUnitPrice"]
        yield whole


def focus_csv(rows: Iterable[Row]) -> Iterator[str]:
    """The text in chunks of whole rows. Most rows need quotes only for tags, so joining is faster than `csv`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        *others, tags = _in_order(row)
        line = ",".join(others)
        if line.count(",") == len(others) - 1 and not ('"' in line or "\n" in line or "\r" in line):
            buffer.write(f"{line},{_quoted(tags)}\n")
        else:
            writer.writerow((*others, tags))
        if buffer.tell() >= PIECE_CHARACTERS:
            yield _drained(buffer)
    yield _drained(buffer)


def _rows(month: Month) -> Iterator[Row]:
    amortised = Amortised(month.bought, *month_bounds(month.month))
    for line in month.booked:
        is_late = line.month <= month.invoiced_until
        for row in _charge_rows(line.charge, month, amortised):
            yield {**row, "ChargeClass": "Correction"} if is_late else row
    if month.is_over:
        for unused in amortised.unused():
            yield unused_row(unused, month.bought)
    invoiced_until = month_number(month.invoiced_until) if month.invoiced_until else 0
    for number, entry in month.credits:
        yield credit_row(number, entry, invoiced_until)
    if month.tax_micros:
        yield tax_row(month.tax_name, month.tax_micros)


def _charge_rows(charge: Charge, month: Month, amortised: Amortised) -> Iterator[Row]:
    if charge.kind == "fee":
        yield purchase_row(charge, month.bought)
        return
    if charge.kind == "refund":
        yield refund_row(charge, month.bought)
        return
    covers = month.covers(charge.subject.id)
    if uses_what_was_bought(charge):
        part, sign = charge.slice, -1 if charge.kind == "reversal" else 1
        effective = amortised.used(part.purchase_id, part.from_us, part.until_us, sign)
        purchase, _ = month.bought[part.purchase_id]
        linked = commitment(purchase, "Used", sign * (part.until_us - part.from_us))
        yield {**committed_row(charge, month.tariff, covers, effective), **linked}
    yield from usage_rows(charge, month.tariff, covers)


def _frame(month: Month) -> Row:
    account, (from_us, until_us) = month.account, month_bounds(month.month)
    return {
        **dict.fromkeys(COLUMNS, ""),
        **charge_period(from_us, until_us),
        "BillingAccountId": account.organisation_id,
        "BillingAccountName": account.organisation,
        "BillingAccountType": "Organisation",
        "BillingCurrency": account.currency,
        "BillingPeriodStart": time(from_us),
        "BillingPeriodEnd": time(until_us),
        "InvoiceId": account.invoice,
        "InvoiceIssuerName": account.issuer,
        "PricingCurrency": account.currency,
        "ProviderName": account.issuer,
        "PublisherName": account.issuer,
        "SubAccountId": account.project_id,
        "SubAccountName": account.project,
        "SubAccountType": "Project",
        "Tags": "{}",
    }


@lru_cache(maxsize=KEPT)
def _quoted(text: str) -> str:
    field = io.StringIO()
    csv.writer(field, lineterminator="\n").writerow([text])
    return field.getvalue().removesuffix("\n")


def _drained(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def credit_row(number: int, entry: LedgerEntry, invoiced_until: int) -> Row:
    """A payment from a credit, or back to it. `invoiced_until` is the last invoiced month, in the form of entries."""
    micros = entry.micros if entry.kind == "returned" else -entry.micros
    return {
        **_row(micros),
        "ChargeCategory": "Credit",
        "ChargeClass": "Correction" if entry.generation <= invoiced_until else "",
        "ChargeDescription": f"credit {entry.subject}, entry {number}",
    }


def tax_row(name: str, micros: int) -> Row:
    return {**_row(micros), "ChargeCategory": "Tax", "ChargeDescription": name or "Tax"}


def _row(micros: int) -> Row:
    return {**costs_without_price(micros, micros), **service_columns(OTHER), "ChargeFrequency": "One-Time"}
