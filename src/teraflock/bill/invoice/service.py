"""Issuing invoices, and taking payments. The tax gets into the books with the invoice."""

from contextlib import suppress

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, Conflict, NotFound, Refused
from teraflock.base.money import amount_text
from teraflock.bill import store
from teraflock.bill.charge.store import month_of
from teraflock.bill.credit.rules import Due, pay
from teraflock.bill.desk import Desk
from teraflock.bill.invoice import store as invoice_store
from teraflock.bill.invoice.model import Document, Invoice
from teraflock.bill.invoice.rules import lines, months_due, number_text, paid_by, tax_micros
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.ledger.model import CASH, TAX, Entry, owes, paid_ahead
from teraflock.bill.times import microseconds, month_bounds
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import By
from teraflock.tenant.project.store import project_of_any_organisation


class InvoiceService:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._audit = Audit(clock)

    def issue(self, project_id: str, month: str, *, project_name: str = "", by: By | None = None) -> Invoice:
        """The invoice of a month that is over; the same one when asked again."""
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> Invoice:
            is_new = invoice_store.invoice(tx, project_id, month) is None
            made = issue(tx, project_id, month, project_name, now_us)
            if is_new:
                said = {"month": month, "amount": amount_text(made.due_micros, made.currency)}
                number = number_text(made)
                if by is None:
                    self._audit.note_loop(tx, project_id, "invoice.issue", number, **said)
                self._audit.note(tx, by, "invoice.issue", number, **said)
            return made

        return self._database.write(work)

    def issue_all(self) -> int:
        """Of every project, for every month whose days are all closed, in their order; how many were issued."""
        count = 0
        with self._database.read() as tx:
            last = _last_month(store.cursor(tx).booked_until_us)
            months = invoice_store.months_to_invoice(tx, last) if last else []
        for month in months:
            with self._database.read() as tx:
                due = invoice_store.projects_to_invoice(tx, month)
            for project_id in due:
                with suppress(Conflict, Refused):  # another server was faster
                    self.issue(project_id, month)
                    count += 1
        return count

    def of_project(self, project_id: str) -> list[tuple[Invoice, int]]:
        """Oldest first, each with what is still to be paid of it."""
        with self._database.read() as tx:
            return invoice_store.open_invoices(tx, project_id)

    def one(self, project_id: str, month: str) -> Invoice:
        with self._database.read() as tx:
            found = invoice_store.invoice(tx, project_id, month)
        if found is None:
            raise NotFound(
                f"There is no invoice for {month}", hint="`tera invoice list` shows those there are"
            )
        return found

    def pay_in(self, project_id: str, micros: int, *, by: By | None = None) -> int:
        """Money paid in advance; what the balance comes to. What is owed already is settled from it at once."""
        if micros <= 0:
            raise BadInput("A payment is above zero")
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> int:
            amount = amount_text(micros, Desk(tx).currency(project_id))
            self._audit.note(
                tx, by, "payment.take", paid_ahead(project_id), amount=amount, what="paid in advance"
            )
            return _pay_in(tx, project_id, micros, now_us)

        return self._database.write(work)

    def pay_invoice(self, project_id: str, month: str, micros: int, *, by: By | None = None) -> None:
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> None:
            invoice = invoice_store.invoice(tx, project_id, month)
            if invoice is None:
                raise NotFound(f"There is no invoice for {month}")
            cursor = store.hold(tx)
            entry = Entry(
                kind="payment", project_id=project_id, debit=CASH, credit=owes(project_id), currency=invoice.currency,
                micros=micros, subject=f"invoice/{invoice.number}", sequence=cursor.entries + 1,
            )  # fmt: skip
            _post(tx, [entry], now_us)
            amount = amount_text(micros, invoice.currency)
            self._audit.note(tx, by, "payment.take", number_text(invoice), amount=amount, month=month)

        if micros <= 0:
            raise BadInput("A payment is above zero")
        self._database.write(work)


def issue(tx: Transaction, project_id: str, month: str, project_name: str, now_us: int) -> Invoice:
    cursor = store.hold(tx)
    if found := invoice_store.invoice(tx, project_id, month):
        return found
    desk = Desk(tx)
    if not project_name:
        project = project_of_any_organisation(tx, project_id)
        project_name = project.name if project else project_id
    if cursor.booked_until_us < month_bounds(month)[1]:
        raise Refused(
            f"{month} is not over, or not all of its days are closed", hint="Ask again after its end"
        )
    before = next(iter(reversed(invoice_store.invoices(tx, project_id))), None)
    if before and before.month > month:
        raise Conflict(
            f"The invoice for {before.month} is issued already: what is late stands on the next one"
        )
    span = invoice_store.Span(
        project_id=project_id, month=month, before=before, charges=cursor.charges, entries=cursor.entries
    )
    booked, payments = list(invoice_store.lines_of(tx, span)), invoice_store.payments_of(tx, span)
    if not (booked or payments):
        raise Refused(f"Nothing was charged in {month}, so there is nothing to invoice")
    profile = desk.profiles.get(project_id)
    period = desk.book.at(month_bounds(month)[1] - 1)
    tax_name, tax_bp = (period.prices.tax_name, period.prices.tax_bp) if period else ("", 0)
    if profile and profile.tax_name:
        tax_name, tax_bp = profile.tax_name, profile.tax_bp
    usage = sum(line.charge.micros for line in booked)
    credit, paid = paid_by(entry for _, entry in payments)
    number, currency = invoice_store.newest_number(tx) + 1, desk.currency(project_id)
    entries, paid_tax = _tax_entries(
        tx, desk, project_id, number, month, tax := tax_micros(usage - credit, tax_bp)
    )
    after = _post(tx, entries, now_us)
    invoice = Invoice(
        number=number, project_id=project_id, month=month, currency=currency,
        charges_after=before.charges_until if before else 0, charges_until=cursor.charges, usage_micros=usage,
        credit_micros=credit, tax_micros=tax, paid_micros=paid + paid_tax,
        due_micros=usage - credit + tax - paid - paid_tax, issued_at_us=now_us,
        document=Document(
            project=project_name, month=month, charges_until=cursor.charges,
            customer=profile.customer if profile else "", tax_name=tax_name, tax_bp=tax_bp,
            entries_until=after.entries, lines=lines(booked, before.month if before else ""),
        ),
    )  # fmt: skip
    invoice_store.add(tx, invoice)
    return invoice


def _tax_entries(
    tx: Transaction, desk: Desk, project_id: str, number: int, month: str, tax: int
) -> tuple[list[Entry], int]:
    """The tax of an invoice, and what the balance pays of it."""
    if not tax:
        return [], 0
    currency, profile = desk.currency(project_id), desk.profiles.get(project_id)
    entries = [
        Entry(
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


def _pay_in(tx: Transaction, project_id: str, micros: int, now_us: int) -> int:
    cursor, desk = store.hold(tx), Desk(tx)
    currency, profile = desk.currency(project_id), desk.profiles.get(project_id)
    entry = Entry(
        kind="paid-in", project_id=project_id, debit=CASH, credit=paid_ahead(project_id), currency=currency,
        micros=micros, subject=paid_ahead(project_id), sequence=cursor.entries + 1,
    )  # fmt: skip
    _post(tx, [entry], now_us)
    if profile and profile.pays == "prepaid":
        _post(tx, _settlement(tx, project_id, currency), now_us)
    return -ledger_store.account(tx, paid_ahead(project_id), currency).owed


def _settlement(tx: Transaction, project_id: str, currency: str) -> list[Entry]:
    """What the balance pays of what is owed: invoices first, then the months that have none yet, the oldest first."""
    balance = -ledger_store.account(tx, paid_ahead(project_id), currency).owed
    owed = ledger_store.account(tx, owes(project_id), currency).owed
    number = store.cursor(tx).entries + 1
    cleared: list[Entry] = []
    for invoice, open_micros in invoice_store.open_invoices(tx, project_id):
        part = min(open_micros, balance, owed)
        if part > 0:
            cleared.append(
                Entry(
                    kind="cleared", project_id=project_id, debit=paid_ahead(project_id), credit=owes(project_id),
                    currency=currency, micros=part, subject=f"invoice/{invoice.number}",
                    sequence=number + len(cleared),
                )
            )  # fmt: skip
            balance, owed = balance - part, owed - part
    dues = months_due(invoice_store.unpaid_months(tx, project_id), owed)
    return cleared + pay(project_id, currency, dues, (), balance, number + len(cleared)).entries


def _post(tx: Transaction, entries: list[Entry], now_us: int) -> store.Cursor:
    cursor = store.cursor(tx)
    ledger_store.add(tx, entries, first_number=cursor.entries + 1, now_us=now_us)
    after = replace(cursor, entries=cursor.entries + len(entries))
    store.set_cursor(tx, after)
    return after


def _last_month(booked_until_us: int) -> str:
    """The last month that lies whole before this time; empty: none does."""
    if not booked_until_us:
        return ""
    first_us, _ = month_bounds(month_of(booked_until_us))
    return month_of(first_us - 1)
