"""Invoices as text. Amounts are whole cents."""

from typing import TYPE_CHECKING, Final

from teraflock.base.money import amount_text
from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.invoice import InvoiceAnswer


def _amount(invoice: "InvoiceAnswer", micros: int, *, nothing: str = "") -> str:
    return amount_text(micros, invoice.currency, 2) if micros else nothing


FIELDS: "Final[Fields[InvoiceAnswer]]" = (
    Field("NUMBER", lambda each: each.number),
    Field("USAGE", lambda each: _amount(each, each.usage_micros), right=True, worth=6),
    Field("CREDITS", lambda each: _amount(each, each.credit_micros), right=True, worth=4),
    Field("TAX", lambda each: _amount(each, each.tax_micros), right=True, worth=5),
    Field("PAID", lambda each: _amount(each, each.paid_micros), right=True, worth=4),
    Field("DUE", lambda each: amount_text(each.due_micros, each.currency, 2), right=True),
    Field("OPEN", lambda each: _amount(each, each.open_micros, nothing="paid"), right=True, worth=8),
    Field("ISSUED", lambda each: f"{each.issued_at:%Y-%m-%d}", worth=7),
)
