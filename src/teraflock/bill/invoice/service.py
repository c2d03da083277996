"""Issues invoices and records payments. Issuing an invoice also books its tax."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import DAY_US, Clock
from teraflock.base.errors import BadInput, Conflict, NotFound, Refused
from teraflock.base.money import amount_text
from teraflock.bill import store
from teraflock.bill.charge.store import Booked, month_of
from teraflock.bill.costs import charges_to_come
from teraflock.bill.credit.rules import Due, pay
from teraflock.bill.desk import Desk
from teraflock.bill.invoice import store as invoice_store
from teraflock.bill.invoice.model import Document, Invoice
from teraflock.bill.invoice.rules import annex, lines, months_due, number_text, paid_by, tax_micros
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.ledger.model import CASH, TAX, LedgerEntry, owes, paid_ahead
from teraflock.bill.times import microseconds, month_bounds
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import By, ProjectId
from teraflock.tenant.organisation import store as organisations
from teraflock.tenant.project.store import project_of_any_organisation

DUE_DAYS: Final = 14


class InvoiceService:
    def __init__(self, database: Database, clock: Clock, *, due_days: int = DUE_DAYS) -> None:
        self._database = database
        self._clock = clock
        self._due_us = due_days * DAY_US
        self._audit = Audit(clock)

    def issue(
        self, project_id: ProjectId, month: str, *, project_name: str = "", by: By | None = None
    ) -> Invoice:
        """Issue the invoice of a month that has ended. Repeated calls return the same invoice."""
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> Invoice:
            is_new = invoice_store.invoice(tx, project_id, month) is None
            made = issue(tx, project_id, month, project_name, now_us, self._due_us)
            if is_new:
                said = {"month": month, "amount": amount_text(made.due_micros, made.currency)}
                number = number_text(made)
                if by is None:
                    self._audit.note_loop(tx, project_id, "invoice.issue", number, **said)
                self._audit.note(tx, by, "invoice.issue", number, **said)
            return made

        return self._database.write(work)

    def preview(self, project_id: ProjectId, month: str) -> Invoice:
        """The invoice of a month as of now, including usage that is not booked. It has no number and is not stored."""
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            if invoice_store.invoice(tx, project_id, month):
                raise Conflict(
                    f"The invoice for {month} has been issued",
                    hint=f"Show it with `tera invoice show {month}`",
                )
            return preview(tx, project_id, month, now_us)

    def issue_all(self) -> int:
        """Issue the invoices of every project for every closed month, in order. Return how many were issued."""
        count = 0
        with self._database.read() as tx:
            last = _last_month(store.cursor(tx).booked_until_us)
            months = invoice_store.months_to_invoice(tx, last) if last else []
        for month in months:
            with self._database.read() as tx:
                due = invoice_store.projects_to_invoice(tx, month)
            for project_id in due:
                with suppress(Conflict, Refused):  # another server issued it first
                    self.issue(project_id, month)
                    count += 1
        return count

    def of_project(self, project_id: ProjectId) -> list[tuple[Invoice, int]]:
        """Oldest first, each with its unpaid amount."""
        with self._database.read() as tx:
            return invoice_store.open_invoices(tx, project_id)

    def one(self, project_id: ProjectId, month: str) -> Invoice:
        with self._database.read() as tx:
            found = invoice_store.invoice(tx, project_id, month)
        if found is None:
            raise NotFound(f"There is no invoice for {month}", hint="List invoices with `tera invoice list`")
        return found

    def pay_in(self, project_id: ProjectId, micros: int, *, by: By | None = None) -> int:
        """Add money to the balance and settle what is owed at once. Return the new balance."""
        if micros <= 0:
            raise BadInput("The payment must be greater than 0")
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> int:
            amount = amount_text(micros, Desk(tx).currency(project_id))
            self._audit.note(
                tx, by, "payment.take", paid_ahead(project_id), amount=amount, what="paid in advance"
            )
            return _pay_in(tx, project_id, micros, now_us)

        return self._database.write(work)

    def pay_invoice(self, project_id: ProjectId, month: str, micros: int, *, by: By | None = None) -> None:
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> None:
            invoice = invoice_store.invoice(tx, project_id, month)
            if invoice is None:
                raise NotFound(f"There is no invoice for {month}")
            cursor = store.hold(tx)
            entry = LedgerEntry(
                kind="payment", project_id=project_id, debit=CASH, credit=owes(project_id), currency=invoice.currency,
                micros=micros, subject=f"invoice/{invoice.number}", sequence=cursor.entries + 1,
            )  # fmt: skip
            _post(tx, [entry], now_us)
            amount = amount_text(micros, invoice.currency)
            self._audit.note(tx, by, "payment.take", number_text(invoice), amount=amount, month=month)

        if micros <= 0:
            raise BadInput("The payment must be greater than 0")
        self._database.write(work)


def issue(
    tx: Transaction, project_id: ProjectId, month: str, project_name: str, now_us: int, due_us: int = 0
) -> Invoice:
    cursor = store.hold(tx)
    if found := invoice_store.invoice(tx, project_id, month):
        return found
    desk = Desk(tx)
    if cursor.booked_until_us < month_bounds(month)[1]:
        raise Refused(
            f"{month} is not over, or some of its days are not closed",
            hint=f"Try again after the month ends. `tera invoice preview --month {month}` shows the current state",
        )
    before = next(iter(reversed(invoice_store.invoices(tx, project_id))), None)
    if before and before.month > month:
        raise Conflict(
            f"The invoice for {before.month} has been issued. Late charges will be on the next invoice"
        )
    span = invoice_store.InvoiceSpan(
        project_id=project_id, month=month, before=before, charges=cursor.charges, entries=cursor.entries
    )
    booked, payments = list(invoice_store.lines_of(tx, span)), invoice_store.payments_of(tx, span)
    if not (booked or payments):
        raise Refused(f"There is nothing to invoice: {month} has no charges")
    draft = _drafted(tx, desk, span, booked, payments, now_us)
    number = invoice_store.newest_number(tx) + 1
    entries, paid_tax = _tax_entries(tx, desk, project_id, number, month, draft.tax_micros)
    after = _post(tx, entries, now_us)
    document = replace(
        draft.document,
        project=project_name or draft.document.project,
        entries_until=after.entries,
        due_at_us=now_us + due_us if due_us else 0,
    )
    invoice = replace(
        draft, number=number, paid_micros=draft.paid_micros + paid_tax, due_micros=draft.due_micros - paid_tax,
        document=document,
    )  # fmt: skip
    invoice_store.add(tx, invoice)
    return invoice


def preview(tx: Transaction, project_id: ProjectId, month: str, now_us: int) -> Invoice:
    cursor, desk = store.cursor(tx), Desk(tx)
    before = next(
        (each for each in reversed(invoice_store.invoices(tx, project_id)) if each.month < month), None
    )
    span = invoice_store.InvoiceSpan(
        project_id=project_id, month=month, before=before, charges=cursor.charges, entries=cursor.entries
    )
    booked = list(invoice_store.lines_of(tx, span))
    booked += [
        Booked(number=0, at_us=now_us, month=month_of(charge.slice.from_us), charge=charge)
        for charge in charges_to_come(tx, desk, project_id, now_us)
        if month_of(charge.slice.from_us) <= month
    ]
    return _drafted(tx, desk, span, booked, invoice_store.payments_of(tx, span), now_us)


def _drafted(
    tx: Transaction,
    desk: Desk,
    span: invoice_store.InvoiceSpan,
    booked: Sequence[Booked],
    payments: Sequence[tuple[int, LedgerEntry]],
    now_us: int,
) -> Invoice:
    """The invoice without its number and without the tax that the balance pays."""
    project_id, month, before = span.project_id, span.month, span.before
    profile, currency = desk.profiles.get(project_id), desk.currency(project_id)
    period = desk.book.at(month_bounds(month)[1] - 1)
    tax_name, tax_bp = (period.prices.tax_name, period.prices.tax_bp) if period else ("", 0)
    if profile and profile.tax_name:
        tax_name, tax_bp = profile.tax_name, profile.tax_bp
    usage = sum(line.charge.micros for line in booked)
    credit, paid = paid_by(entry for _, entry in payments)
    tax = tax_micros(usage - credit, tax_bp)
    project, organisation = _names(tx, project_id)
    last = before.month if before else ""
    return Invoice(
        number=0, project_id=project_id, month=month, currency=currency,
        charges_after=before.charges_until if before else 0, charges_until=span.charges, usage_micros=usage,
        credit_micros=credit, tax_micros=tax, paid_micros=paid, due_micros=usage - credit + tax - paid,
        issued_at_us=now_us,
        document=Document(
            project=project, organisation=organisation, month=month, charges_until=span.charges,
            customer=profile.customer if profile else "", tax_number=profile.tax_number if profile else "",
            tax_name=tax_name, tax_bp=tax_bp, entries_until=span.entries, lines=lines(booked, last, currency),
            annex=annex(booked, last, currency),
        ),
    )  # fmt: skip


def _names(tx: Transaction, project_id: ProjectId) -> tuple[str, str]:
    """The names of a project and its organisation."""
    project = project_of_any_organisation(tx, project_id)
    if project is None:
        return project_id, ""
    found = organisations.organisation(tx, project.organisation_id)
    return project.name, found.name if found else ""


def _tax_entries(
    tx: Transaction, desk: Desk, project_id: ProjectId, number: int, month: str, tax: int
) -> tuple[list[LedgerEntry], int]:
    """The entries for the tax of an invoice, and the part that the balance pays."""
    if not tax:
        return [], 0
    currency, profile = desk.currency(project_id), desk.profiles.get(project_id)
    entries = [
        LedgerEntry(
            kind="tax", project_id=project_id, debit=owes(project_id), credit=TAX, currency=currency, micros=tax,
            subject=f"invoice/{number}",
        )
    ]  # fmt: skip
    if profile is None or profile.pays != "prepaid":
        return entries, 0
    balance = -ledger_store.account(tx, paid_ahead(project_id), currency).owed
    due = Due(month_bounds(month)[0], month, tax)
    settled = pay(project_id, currency, [due], (), balance, store.cursor(tx).entries + 2).entries
    return entries + settled, sum(entry.micros for entry in settled)


def _pay_in(tx: Transaction, project_id: ProjectId, micros: int, now_us: int) -> int:
    cursor, desk = store.hold(tx), Desk(tx)
    currency, profile = desk.currency(project_id), desk.profiles.get(project_id)
    entry = LedgerEntry(
        kind="paid-in", project_id=project_id, debit=CASH, credit=paid_ahead(project_id), currency=currency,
        micros=micros, subject=paid_ahead(project_id), sequence=cursor.entries + 1,
    )  # fmt: skip
    _post(tx, [entry], now_us)
    if profile and profile.pays == "prepaid":
        _post(tx, _settlement(tx, project_id, currency), now_us)
    return -ledger_store.account(tx, paid_ahead(project_id), currency).owed


def _settlement(tx: Transaction, project_id: ProjectId, currency: str) -> list[LedgerEntry]:
    """What the balance pays: invoices first, then months without an invoice, oldest first."""
    balance = -ledger_store.account(tx, paid_ahead(project_id), currency).owed
    owed = ledger_store.account(tx, owes(project_id), currency).owed
    number = store.cursor(tx).entries + 1
    cleared: list[LedgerEntry] = []
    for invoice, open_micros in invoice_store.open_invoices(tx, project_id):
        part = min(open_micros, balance, owed)
        if part > 0:
            cleared.append(
                LedgerEntry(
                    kind="cleared", project_id=project_id, debit=paid_ahead(project_id), credit=owes(project_id),
                    currency=currency, micros=part, subject=f"invoice/{invoice.number}",
                    sequence=number + len(cleared),
                )
            )  # fmt: skip
            balance, owed = balance - part, owed - part
    dues = months_due(invoice_store.unpaid_months(tx, project_id), owed)
    return cleared + pay(project_id, currency, dues, (), balance, number + len(cleared)).entries


def _post(tx: Transaction, entries: list[LedgerEntry], now_us: int) -> store.BillCursor:
    cursor = store.cursor(tx)
    ledger_store.add(tx, entries, first_number=cursor.entries + 1, now_us=now_us)
    after = replace(cursor, entries=cursor.entries + len(entries))
    store.set_cursor(tx, after)
    return after


def _last_month(booked_until_us: int) -> str:
    """The last month that ended before this time; empty if there is none."""
    if not booked_until_us:
        return ""
    first_us, _ = month_bounds(month_of(booked_until_us))
    return month_of(first_us - 1)
