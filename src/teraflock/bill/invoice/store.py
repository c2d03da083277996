"""All SQL of invoices. They are added, never changed."""

from typing import Final

import msgspec

from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.store import COLUMNS, booked_from
from teraflock.bill.invoice.model import Document, Invoice
from teraflock.storage.database import Row, Transaction

_COLUMNS: Final = (
    "number, project_id, month, currency, charges_after, charges_until, usage_micros, credit_micros, tax_micros,"
    " paid_micros, due_micros, issued_at_us, document"
)
_OF_INVOICE: Final = (
    " project_id = :project AND month <= :month AND number <= :until"
    " AND NOT (month <= :month_before AND number <= :after)"
)


def add(tx: Transaction, invoice: Invoice) -> None:
    names = ", ".join(f":{name.strip()}" for name in _COLUMNS.split(","))
    row = (*msgspec.structs.astuple(invoice)[:-1], msgspec.json.encode(invoice.document).decode())
    tx.run_many(f"INSERT INTO invoice ({_COLUMNS}) VALUES ({names})", [row])


def newest_number(tx: Transaction) -> int:
    row = tx.one("SELECT COALESCE(MAX(number), 0) FROM invoice")
    return int(row[0]) if row else 0


def invoices(tx: Transaction, project_id: str) -> list[Invoice]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM invoice WHERE project_id = :project ORDER BY number", project=project_id
    )
    return [_invoice_from(row) for row in rows]


def invoice(tx: Transaction, project_id: str, month: str) -> Invoice | None:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM invoice WHERE project_id = :project AND month = :month",
        project=project_id,
        month=month,
    )
    return _invoice_from(row) if row else None


def projects_to_invoice(tx: Transaction, month: str) -> list[str]:
    """Of all projects: those with charges at a price up to a month, and no invoice for it."""
    rows = tx.all(
        "SELECT DISTINCT project_id FROM charge_sum AS charge WHERE month <= :month AND currency <> '' AND NOT EXISTS"
        " (SELECT 1 FROM invoice WHERE invoice.project_id = charge.project_id AND invoice.month >= :month)"
        " ORDER BY project_id",
        month=month,
    )
    return [row[0] for row in rows]


def charges_for(
    tx: Transaction, project_id: str, month: str, until: int, before: Invoice | None
) -> list[Charge]:
    """The charges that stand on the invoice of a month: see `Invoice.charges_until`."""
    rows = tx.each(
        f"SELECT {', '.join(COLUMNS)} FROM charge WHERE {_OF_INVOICE} ORDER BY number",
        project=project_id,
        month=month,
        until=until,
        month_before=before.month if before else "",
        after=before.charges_until if before else 0,
    )
    return [booked_from(row).charge for row in rows]


def paid_by(
    tx: Transaction, project_id: str, month: int, until: int, before: Invoice | None
) -> tuple[int, int]:
    """What credits paid for a month and what was late of earlier ones, and what the balance did."""
    rows = tx.all(
        "SELECT kind, CASE WHEN subject LIKE 'balance/%' THEN 1 ELSE 0 END, SUM(micros) FROM ledger"
        " WHERE project_id = :project AND kind NOT IN ('charge', 'reversal')"
        " AND kind IN ('drawn', 'settled', 'returned') AND generation <= :month"
        " AND number <= :until AND NOT (generation <= :month_before AND number <= :after) GROUP BY 1, 2",
        project=project_id,
        month=month,
        until=until,
        month_before=int(before.month.replace("-", "")) if before else 0,
        after=before.document.entries_until if before else 0,
    )
    credit = sum(-int(row[2]) if row[0] == "returned" else int(row[2]) for row in rows if not row[1])
    balance = sum(-int(row[2]) if row[0] == "returned" else int(row[2]) for row in rows if row[1])
    return credit, balance


def _invoice_from(row: Row) -> Invoice:
    (
        number, project, month, currency, after, until, usage, credit, tax, paid, due, issued_at_us, document,
    ) = row  # fmt: skip
    return Invoice(
        number=number, project_id=project, month=month, currency=currency, charges_after=after, charges_until=until,
        usage_micros=usage, credit_micros=credit, tax_micros=tax, paid_micros=paid, due_micros=due,
        issued_at_us=issued_at_us, document=msgspec.json.decode(document, type=Document),
    )  # fmt: skip
