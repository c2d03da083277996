"""Invoices on the wire."""

from teraflock.bill.invoice.model import Invoice
from teraflock.bill.invoice.rules import number_text
from teraflock.bill.times import moment
from teraflock.wire.invoice import InvoiceAnswer


def invoice_answer(invoice: Invoice, open_micros: int) -> InvoiceAnswer:
    return InvoiceAnswer(
        number=number_text(invoice),
        month=invoice.month,
        currency=invoice.currency,
        usage_micros=invoice.usage_micros,
        credit_micros=invoice.credit_micros,
        tax_micros=invoice.tax_micros,
        paid_micros=invoice.paid_micros,
        due_micros=invoice.due_micros,
        open_micros=open_micros,
        issued_at=moment(invoice.issued_at_us),
    )
