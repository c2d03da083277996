"""Reads the data of a month's export: the charges and payments of its current or future invoice."""

from msgspec.structs import replace

from teraflock.bill import store
from teraflock.bill.desk import Desk
from teraflock.bill.export.amortised import Bought
from teraflock.bill.export.focus import Month
from teraflock.bill.export.model import BillingAccount
from teraflock.bill.invoice import store as invoice_store
from teraflock.bill.invoice.rules import number_text
from teraflock.bill.purchase import store as purchase_store
from teraflock.bill.times import month_bounds
from teraflock.storage.database import Transaction
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.organisation import store as organisations


def month_of_project(tx: Transaction, account: BillingAccount, month: str) -> Month:
    """Charges are streamed. Read them before the transaction ends."""
    cursor, desk, project = store.cursor(tx), Desk(tx), account.project_id
    invoices = invoice_store.invoices(tx, project)
    invoice = next((each for each in invoices if each.month == month), None)
    before = next((each for each in reversed(invoices) if each.month < month), None)
    span = invoice_store.InvoiceSpan(
        project_id=project, month=month, before=before, charges=cursor.charges, entries=cursor.entries
    )
    if invoice:
        span = replace(span, charges=invoice.charges_until, entries=invoice.document.entries_until)
    elif (
        invoices and invoices[-1].month > month
    ):  # the month has no invoice: its late charges are on a later one
        span = replace(span, charges=0, entries=0)
    return Month(
        account=replace(
            account,
            organisation=account.organisation or _organisation_name(tx, account.organisation_id),
            currency=desk.currency(project),
            invoice=number_text(invoice) if invoice else "",
        ),
        month=month,
        is_over=cursor.booked_until_us >= month_bounds(month)[1],
        invoiced_until=before.month if before else "",
        booked=invoice_store.lines_of(tx, span),
        credits=[
            each for each in invoice_store.payments_of(tx, span) if not each[1].subject.startswith("balance/")
        ],
        tax_name=invoice.document.tax_name if invoice else "",
        tax_micros=invoice.tax_micros if invoice else 0,
        tariff=desk.tariff(project),
        bought=_bought(tx, project),
        covers=desk.covers,
    )


def _organisation_name(tx: Transaction, id: str) -> str:
    found = organisations.organisation(tx, OrganisationId(id))
    return found.name if found else id


def _bought(tx: Transaction, project_id: ProjectId) -> Bought:
    found = purchase_store.purchases(tx, project_id)
    return {each.id: (each, purchase_store.terms(tx, each.id)) for each in found}
