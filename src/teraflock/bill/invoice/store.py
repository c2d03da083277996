"""All SQL of invoices. Rows are inserted and never changed."""

from collections.abc import Iterator
from typing import Final

import msgspec

from teraflock.bill.charge.store import COLUMNS, Booked, booked_from
from teraflock.bill.credit.rules import month_number
from teraflock.bill.invoice.model import Invoice
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.ledger.model import LedgerEntry
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, number
from teraflock.tenant.model import ProjectId

_INVOICE: Final = Table("invoice", Invoice)
_LINES: Final = (
    f"SELECT {', '.join(f'c.{name}' for name in COLUMNS)} FROM charge c"
    " WHERE c.project_id = :project AND c.month <= :month AND c.number <= :until"
    " AND NOT (c.month <= :month_before AND c.number <= :after)"
    " AND NOT EXISTS (SELECT 1 FROM charge r WHERE r.subject = c.subject AND r.sequence = c.sequence"
    " AND r.kind = 'reversal' AND r.reverses = c.segment AND r.number <= :until)"
    " AND NOT (c.kind = 'reversal' AND EXISTS (SELECT 1 FROM charge o WHERE o.subject = c.subject"
    " AND o.sequence = c.sequence AND o.segment = c.reverses"
    " AND NOT (o.month <= :month_before AND o.number <= :after)))"
    " ORDER BY c.number"
)


class InvoiceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The charges that an invoice covers: those of its month, and of earlier months that no invoice had."""

    project_id: ProjectId
    month: str
    before: Invoice | None
    charges: int
    """Up to this number."""
    entries: int


def add(tx: Transaction, invoice: Invoice) -> None:
    _INVOICE.add(tx, invoice)


def newest_number(tx: Transaction) -> int:
    return number(tx, "SELECT COALESCE(MAX(number), 0) FROM invoice")


def invoices(tx: Transaction, project_id: ProjectId) -> list[Invoice]:
    return list(_INVOICE.all(tx, "WHERE project_id = :project ORDER BY number", project=project_id))


def invoice(tx: Transaction, project_id: ProjectId, month: str) -> Invoice | None:
    return _INVOICE.one(tx, "WHERE project_id = :project AND month = :month", project=project_id, month=month)


def months_to_invoice(tx: Transaction, last: str) -> list[str]:
    """The months, up to the last one, in which a project has charges and no later invoice. Always includes the last
    month."""
    rows = tx.all(
        "SELECT DISTINCT month FROM charge_sum WHERE month < :last AND currency <> '' AND NOT EXISTS"
        " (SELECT 1 FROM invoice WHERE invoice.project_id = charge_sum.project_id"
        " AND invoice.month >= charge_sum.month) ORDER BY month",
        last=last,
    )
    return [*(row[0] for row in rows), last]


def projects_to_invoice(tx: Transaction, month: str) -> list[ProjectId]:
    """All projects with priced charges up to a month that are on no invoice yet."""
    rows = tx.all(
        "SELECT project_id, last_month, last_charge FROM (SELECT DISTINCT project_id FROM charge_sum"
        " WHERE month <= :month AND currency <> '') AS used LEFT JOIN (SELECT project_id AS invoiced,"
        " MAX(month) AS last_month, MAX(charges_until) AS last_charge FROM invoice GROUP BY project_id) AS last"
        " ON invoiced = project_id WHERE (last_month IS NULL OR last_month < :month) AND EXISTS"
        " (SELECT 1 FROM charge WHERE charge.project_id = used.project_id AND month <= :month AND currency <> ''"
        " AND NOT (month <= COALESCE(last_month, '') AND number <= COALESCE(last_charge, 0))) ORDER BY project_id",
        month=month,
    )
    return [row[0] for row in rows]


def lines_of(tx: Transaction, span: InvoiceSpan) -> Iterator[Booked]:
    """Stream the charges on an invoice, without those that were reversed before it."""
    before = span.before
    rows = tx.each(
        _LINES,
        project=span.project_id,
        month=span.month,
        until=span.charges,
        month_before=before.month if before else "",
        after=before.charges_until if before else 0,
    )
    return map(booked_from, rows)


def payments_of(tx: Transaction, span: InvoiceSpan) -> list[tuple[int, LedgerEntry]]:
    """What credits and the balance paid for the charges on an invoice, with the numbers of the entries."""
    before = span.before
    month_before, after = (month_number(before.month), before.document.entries_until) if before else (0, 0)
    return [
        (number, entry)
        for number, entry in ledger_store.payments_of_project(tx, span.project_id)
        if entry.kind in ("drawn", "settled", "returned")
        and entry.generation <= month_number(span.month)
        and number <= span.entries
        and not (entry.generation <= month_before and number <= after)
    ]


def open_invoices(tx: Transaction, project_id: ProjectId) -> list[tuple[Invoice, int]]:
    """Invoices of a project, oldest first, each with its unpaid amount."""
    paid: dict[str, int] = {}
    for _, entry in ledger_store.payments_of_project(tx, project_id):
        if entry.kind in ("payment", "cleared"):
            paid[entry.subject] = paid.get(entry.subject, 0) + entry.micros
    return [
        (each, each.due_micros - paid.get(f"invoice/{each.number}", 0)) for each in invoices(tx, project_id)
    ]


def unpaid_months(tx: Transaction, project_id: ProjectId) -> dict[str, int]:
    """Unpaid amounts that are on no invoice yet, by month."""
    before = next(reversed(invoices(tx, project_id)), None)
    rows = tx.all(
        "SELECT month, SUM(micros) FROM charge WHERE project_id = :project AND currency <> ''"
        " AND NOT (month <= :month_before AND number <= :after) GROUP BY month ORDER BY month",
        project=project_id,
        month_before=before.month if before else "",
        after=before.charges_until if before else 0,
    )
    unpaid = {row[0]: int(row[1]) for row in rows}
    everything = InvoiceSpan(
        project_id=project_id, month="9999-12", before=before, charges=0, entries=1 << 62
    )
    for _, entry in payments_of(tx, everything):
        month = f"{entry.generation // 100:04}-{entry.generation % 100:02}"
        paid = -entry.micros if entry.kind == "returned" else entry.micros
        unpaid[month] = unpaid.get(month, 0) - paid
    return unpaid
