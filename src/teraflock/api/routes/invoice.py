"""Invoices: list, issue, preview, print."""

from teraflock.api.call import Call
from teraflock.api.query import InProject, MonthQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.filling import filled
from teraflock.bill.invoice.html import page
from teraflock.bill.invoice.model import Invoice
from teraflock.bill.invoice.rules import number_text
from teraflock.bill.times import moment
from teraflock.tenant.rules import Permission
from teraflock.wire.invoice import InvoiceAnswer, InvoiceList, InvoiceRequest

routes = Routes("invoices", scope=Scope.PROJECT, read=Permission.BILL_READ, write=Permission.BILL_WRITE)


@routes.get("/v1/invoices")
def list_invoices(call: Call, query: InProject) -> InvoiceList:
    """List the invoices of a project, oldest first."""
    found = call.nouns.bills.invoices.of_project(call.project.id)
    return InvoiceList(items=tuple(invoice_answer(invoice, open_micros) for invoice, open_micros in found))


@routes.post(
    "/v1/invoices", scope=Scope.PROJECT, may=Permission.BILL_WRITE, status=201, creates=True,
    errors=("conflict", "refused"),
)  # fmt: skip
def make_invoice(call: Call, query: InProject, body: InvoiceRequest) -> InvoiceAnswer:
    """Issue the invoice of a past month. A repeated request returns the same invoice."""
    made = call.nouns.bills.invoices.issue(
        call.project.id, body.month, project_name=call.project.name, by=call.by
    )
    return invoice_answer(made, made.due_micros)


@routes.get("/v1/invoice-preview", scope=Scope.PROJECT, may=Permission.BILL_READ, media_type="text/html",
            errors=("conflict",))  # fmt: skip
def preview_invoice(call: Call, query: MonthQuery) -> bytes:
    """Preview the invoice of a month as HTML, as it would be now. It is marked as a preview and has no number."""
    bills = call.nouns.bills
    found = bills.invoices.preview(call.project.id, query.month or bills.month_now())
    return page(found, issuer=bills.issuer).encode()


@routes.get(
    "/v1/invoice-preview/pdf", scope=Scope.PROJECT, may=Permission.BILL_READ, work=RouteWork.LONG,
    media_type="application/pdf", errors=("conflict", "refused"),
)  # fmt: skip
def preview_invoice_as_pdf(call: Call, query: MonthQuery) -> bytes:
    """Preview the invoice of a month as a PDF (A4), as it would be now. It is marked as a preview."""
    from teraflock.bill.invoice.pdf import pdf  # as below

    bills = call.nouns.bills
    found = bills.invoices.preview(call.project.id, query.month or bills.month_now())
    return pdf(found, issuer=bills.issuer)


@routes.get("/v1/invoices/{month}", media_type="text/html")
def show_invoice(call: Call, query: InProject, month: str) -> bytes:
    """Get an invoice as HTML."""
    return page(
        call.nouns.bills.invoices.one(call.project.id, month), issuer=call.nouns.bills.issuer
    ).encode()


@routes.get(
    "/v1/invoices/{month}/pdf", scope=Scope.PROJECT, may=Permission.BILL_READ, work=RouteWork.LONG,
    media_type="application/pdf", errors=("refused",),
)  # fmt: skip
def show_invoice_as_pdf(call: Call, query: InProject, month: str) -> bytes:
    """Get an invoice as a PDF (A4). Characters that its fonts lack are refused; use HTML for these."""
    from teraflock.bill.invoice.pdf import (
        pdf,
    )  # imported here: it takes half a second, and few servers need it

    return pdf(call.nouns.bills.invoices.one(call.project.id, month), issuer=call.nouns.bills.issuer)


def invoice_answer(invoice: Invoice, open_micros: int) -> InvoiceAnswer:
    return filled(
        InvoiceAnswer,
        invoice,
        number=number_text(invoice),
        open_micros=open_micros,
        issued_at=moment(invoice.issued_at_us),
    )
