"""Rows of what is neither used nor bought: credits that paid, and the tax."""

from teraflock.bill.export.model import OTHER, Row, service_columns
from teraflock.bill.export.text import costs_without_price
from teraflock.bill.ledger.model import Entry


def credit_row(number: int, entry: Entry, invoiced_until: int) -> Row:
    """What a credit paid, or got back; `invoiced_until` is the last month invoiced before, as entries write it."""
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
