"""Derives ledger entries from charges, and account changes from entries."""

from collections.abc import Iterable

from teraflock.bill.charge.model import Charge
from teraflock.bill.ledger.model import REVENUE, Account, LedgerEntry, owes


def entry_of(charge: Charge) -> LedgerEntry | None:
    """The entry for a charge; None if it costs nothing."""
    micros = charge.micros
    if not micros:
        return None
    subject, project = charge.subject, owes(charge.subject.project_id)
    debit, credit = (project, REVENUE) if micros > 0 else (REVENUE, project)
    return LedgerEntry(
        kind="reversal" if charge.kind == "reversal" else "charge", project_id=subject.project_id, debit=debit,
        credit=credit, currency=charge.slice.currency, micros=abs(micros), subject=subject.id,
        generation=subject.generation, sequence=subject.sequence, segment=charge.segment,
    )  # fmt: skip


def movements(entries: Iterable[LedgerEntry]) -> list[Account]:
    """The change of each account by the entries."""
    moved: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        moved.setdefault((entry.debit, entry.currency), [0, 0])[0] += entry.micros
        moved.setdefault((entry.credit, entry.currency), [0, 0])[1] += entry.micros
    return [
        Account(name=name, currency=currency, debits=debits, credits=credits)
        for (name, currency), (debits, credits) in sorted(moved.items())
    ]
