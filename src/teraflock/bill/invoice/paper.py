"""The text of an invoice, independent of the output format. Rounds each amount separately."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from teraflock.base.money import MICROS, decimal_text, divided
from teraflock.bill.invoice.model import Document, Invoice, InvoiceLine
from teraflock.bill.invoice.rules import number_text
from teraflock.bill.times import moment, month_bounds

DECIMALS: Final = {
    "JPY": 0,
    "KRW": 0,
    "VND": 0,
    "CLP": 0,
    "ISK": 0,
    "KWD": 3,
    "BHD": 3,
    "OMR": 3,
    "TND": 3,
    "JOD": 3,
}
"""Decimals of a printed amount by currency. Default: two."""
_NBSP: Final = "\u00a0"


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    details: str
    quantity: str
    unit_price: str = ""
    amount: str


class InvoicePart(msgspec.Struct, frozen=True, kw_only=True):
    """A group of lines. The lines of the invoiced month have no heading."""

    heading: str
    lines: tuple[Printed, ...]


class InvoiceSum(msgspec.Struct, frozen=True, kw_only=True):
    words: str
    amount: str


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    number: str
    issuer: str
    issuer_address: str
    facts: tuple[tuple[str, str], ...]
    """Customer, period and dates: for each a heading and lines of text."""
    parts: tuple[InvoicePart, ...]
    sums: tuple[InvoiceSum, ...]
    due: InvoiceSum
    note: str
    annex: tuple[InvoicePart, ...] = ()
    """The details of the lines, at the end of the invoice."""


def paper(invoice: Invoice, *, issuer: str) -> Paper:
    """`issuer` is the provider's name and address, one part per line."""
    document = invoice.document
    name, _, address = issuer.strip().partition("\n")
    total = invoice.usage_micros - invoice.credit_micros + invoice.tax_micros
    return Paper(
        title="Invoice preview" if not invoice.number else "Credit note" if total < 0 else "Invoice",
        number=number_text(invoice),
        issuer=name,
        issuer_address=address,
        facts=(
            ("For", _customer(document)),
            ("Project", document.project),
            ("Period", f"{_period(invoice.month)}\ntimes in UTC"),
            ("Issued", _issued(invoice)),
        ),
        parts=_parts(document.lines, invoice.currency),
        sums=tuple(_sums(invoice)),
        due=_due(invoice),
        note=_note(invoice),
        annex=_parts(document.annex, invoice.currency, folded=False),
    )


def _customer(document: Document) -> str:
    """The customer from the billing profile, else the organisation, else the project."""
    name = document.customer.strip() or document.organisation or document.project
    return f"{name}\nTax number {document.tax_number}" if document.tax_number else name


def _issued(invoice: Invoice) -> str:
    if not invoice.number:
        return f"not issued\nas of {_short_date(moment(invoice.issued_at_us))}"
    issued = _date(moment(invoice.issued_at_us))
    due_us = invoice.document.due_at_us
    return f"{issued}\ndue {_short_date(moment(due_us))}" if due_us and invoice.due_micros > 0 else issued


def _note(invoice: Invoice) -> str:
    words = (
        f"Usage is charged by the second. {invoice.currency} amounts are exact to the millionth and rounded for print."
        " Totals are the sums of the exact amounts."
    )
    if invoice.number:
        return words
    return f"PREVIEW: this is not an invoice. It has no number, and its amounts change until the month ends. {words}"


def _folded(lines: Sequence[InvoiceLine], currency: str) -> list[InvoiceLine]:
    """Combine lines that would be printed as 0 into one line, or drop them if their sum is printed as 0 too."""
    least = divided(MICROS, 10 ** DECIMALS.get(currency, 2))
    small = [line for line in lines if abs(line.micros) * 2 < least]
    if len(small) < 2:
        return list(lines)
    kept = [line for line in lines if line not in small]
    total = sum(line.micros for line in small)
    what = f"{len(small)} more, each below {amount_text(least, currency)}"
    rest = InvoiceLine(what=what, details="", quantity="", micros=total, month=small[0].month)
    return kept + ([rest] if abs(total) * 2 >= least else [])


def _parts(lines: tuple[InvoiceLine, ...], currency: str, *, folded: bool = True) -> tuple[InvoicePart, ...]:
    months = sorted({line.month for line in lines})
    return tuple(
        InvoicePart(
            heading=f"Corrections for {moment(month_bounds(month)[0]):%B %Y}" if month else "",
            lines=tuple(_printed(line, currency) for line in _of_month(lines, month, currency, folded)),
        )
        for month in months
    )


def _of_month(lines: Sequence[InvoiceLine], month: str, currency: str, folded: bool) -> list[InvoiceLine]:
    own = [line for line in lines if line.month == month]
    return _folded(own, currency) if folded else own


def _printed(line: InvoiceLine, currency: str) -> Printed:
    amount = amount_text(line.micros, currency)
    quantity = line.quantity.replace("-", "−")
    unit_price = line.unit_price.replace(" ", _NBSP)
    return Printed(
        what=line.what, details=line.details, quantity=quantity, unit_price=unit_price, amount=amount
    )


def _sums(invoice: Invoice) -> list[InvoiceSum]:
    document = invoice.document
    found = [("Subtotal", invoice.usage_micros)]
    if invoice.credit_micros:
        found.append(("Credits", -invoice.credit_micros))
    if document.tax_bp:
        rate = decimal_text(document.tax_bp * 10_000, 2).rstrip("0").rstrip(".")
        found.append((f"{document.tax_name or 'Tax'} {rate}{_NBSP}%", invoice.tax_micros))
    if invoice.paid_micros:
        total = invoice.usage_micros - invoice.credit_micros + invoice.tax_micros
        found += [("Total", total)] if len(found) > 1 else []
        found.append(
            (
                "Paid in advance" if invoice.paid_micros > 0 else "Returned to your balance",
                -invoice.paid_micros,
            )
        )
    return [InvoiceSum(words=words, amount=amount_text(micros, invoice.currency)) for words, micros in found]


def _due(invoice: Invoice) -> InvoiceSum:
    words = "In your favour" if invoice.due_micros < 0 else "Due"
    return InvoiceSum(words=words, amount=amount_text(abs(invoice.due_micros), invoice.currency))


def amount_text(micros: int, currency: str) -> str:
    digits = decimal_text(micros, DECIMALS.get(currency, 2))
    return f"{digits.replace('-', '−')}{_NBSP}{currency}"


def _period(month: str) -> str:
    from_us, until_us = month_bounds(month)
    return f"{moment(from_us):%-d} – {_date(moment(until_us - 1))}"


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%-d %B %Y")


def _short_date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%-d %b %Y")
