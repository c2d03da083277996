"""Rows for credits and tax."""

from teraflock.bill.export.model import OTHER, Row, service_columns
from teraflock.bill.export.text import costs_without_price
from teraflock.bill.ledger.model import LedgerEntry


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
