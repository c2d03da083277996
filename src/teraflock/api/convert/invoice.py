"""Invoices on the wire."""

from teraflock.base.filling import filled
from teraflock.bill.invoice.model import Invoice
from teraflock.bill.invoice.rules import number_text
from teraflock.bill.times import moment
from teraflock.wire.invoice import InvoiceAnswer


def invoice_answer(invoice: Invoice, open_micros: int) -> InvoiceAnswer:
    return filled(
        InvoiceAnswer,
        invoice,
        number=number_text(invoice),
        open_micros=open_micros,
        issued_at=moment(invoice.issued_at_us),
    )
