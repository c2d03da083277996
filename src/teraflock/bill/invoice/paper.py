"""What stands on an invoice, in words, whatever it is printed on. Amounts are rounded here, each for itself."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from teraflock.base.money import decimal_text
from teraflock.bill.invoice.model import Invoice, Line
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
"""Of what is printed in a currency; two unless it is named here."""
_NBSP: Final = "\u00a0"


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    details: str
    quantity: str
    amount: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that belong together; those of the month itself have no heading."""

    heading: str
    lines: tuple[Printed, ...]


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    words: str
    amount: str


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    number: str
    issuer: str
    issuer_address: str
    facts: tuple[tuple[str, str], ...]
    """Whom it is for, what, and when: a heading and lines of text each."""
    parts: tuple[Part, ...]
    sums: tuple[Sum, ...]
    due: Sum
    note: str


def paper(invoice: Invoice, *, issuer: str) -> Paper:
    """`issuer` is the name and address of the house, line by line."""
    document = invoice.document
    name, _, address = issuer.strip().partition("\n")
    total = invoice.usage_micros - invoice.credit_micros + invoice.tax_micros
    return Paper(
        title="Credit note" if total < 0 else "Invoice",
        number=number_text(invoice),
        issuer=name,
        issuer_address=address,
        facts=(
            ("For", document.customer.strip() or document.project),
            ("Project", document.project),
            ("Period", f"{_period(invoice.month)}\ntimes in UTC"),
            ("Issued", _date(moment(invoice.issued_at_us))),
        ),
        parts=_parts(document.lines, invoice.currency),
        sums=tuple(_sums(invoice)),
        due=_due(invoice),
        note=f"Charged by the second at the prices of the day. {invoice.currency} amounts are kept to the millionth and"
        " rounded here for print: the sums are those of the exact amounts.",
    )


def _parts(lines: tuple[Line, ...], currency: str) -> tuple[Part, ...]:
    months = sorted({line.month for line in lines})
    return tuple(
        Part(
            heading=f"Corrections for {moment(month_bounds(month)[0]):%B %Y}" if month else "",
            lines=tuple(_printed(line, currency) for line in lines if line.month == month),
        )
        for month in months
    )


def _printed(line: Line, currency: str) -> Printed:
    amount = amount_text(line.micros, currency)
    quantity = line.quantity.replace("-", "−")
    return Printed(what=line.what, details=line.details, quantity=quantity, amount=amount)


def _sums(invoice: Invoice) -> list[Sum]:
    document = invoice.document
    found = [("Sum", invoice.usage_micros)]
    if invoice.credit_micros:
        found.append(("Credits", -invoice.credit_micros))
    if document.tax_bp:
        rate = decimal_text(document.tax_bp * 10_000, 2).rstrip("0").rstrip(".")
        found.append((f"{document.tax_name or 'Tax'} {rate}{_NBSP}%", invoice.tax_micros))
    if invoice.paid_micros:
        total = invoice.usage_micros - invoice.credit_micros + invoice.tax_micros
        found += [("Total", total)] if len(found) > 1 else []
        found.append(
            ("Paid in advance" if invoice.paid_micros > 0 else "Back to the balance", -invoice.paid_micros)
        )
    return [Sum(words=words, amount=amount_text(micros, invoice.currency)) for words, micros in found]


def _due(invoice: Invoice) -> Sum:
    words = "In your favour" if invoice.due_micros < 0 else "Due"
    return Sum(words=words, amount=amount_text(abs(invoice.due_micros), invoice.currency))


def amount_text(micros: int, currency: str) -> str:
    digits = decimal_text(micros, DECIMALS.get(currency, 2))
    return f"{digits.replace('-', '−')}{_NBSP}{currency}"


def _period(month: str) -> str:
    from_us, until_us = month_bounds(month)
    return f"{moment(from_us):%-d} – {_date(moment(until_us - 1))}"


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%-d %B %Y")
