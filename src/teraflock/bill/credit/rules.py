"""Pays what is owed: first from credits, the one that expires first, then from the balance.

Invariants:
- a credit pays only for usage within its period, and never more than its remaining amount;
- a reversed amount goes back to its source as far as possible: to used credits of that time, the one that expires last
  first, then to the balance of a prepaid project.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from teraflock.bill.credit.model import Grant
from teraflock.bill.ledger.model import PROMOTION, LedgerEntry, granted, owes, paid_ahead
from teraflock.tenant.model import ProjectId


class Due(NamedTuple):
    """The net amount that a project owes for a day. Negative if it gets money back."""

    at_us: int
    month: str
    micros: int


class Paid(NamedTuple):
    entries: list[LedgerEntry]
    grants: list[Grant]
    """The credits that changed."""


def pay(
    project_id: ProjectId,
    currency: str,
    dues: Sequence[Due],
    grants: Sequence[Grant],
    balance: int | None,
    number: int,
) -> Paid:
    """Pay in order of time. `balance` is None if the project is not prepaid.

    `number` is the number of the first new entry. It gives keys to entries without a credit.
    """
    left = {grant.id: grant for grant in grants if grant.currency == currency}
    moved: dict[tuple[str, str], int] = {}
    for due in sorted(dues):
        rest = _from_grants(left, due, moved)
        if balance is not None and rest:
            part = min(rest, balance) if rest > 0 else rest
            balance -= part
            moved["", due.month] = moved.get(("", due.month), 0) + part
    entries: list[LedgerEntry] = []
    for (grant_id, month), micros in sorted(moved.items()):
        if not micros:
            continue
        entry = _entry(project_id, currency, grant_id, month, micros, number + len(entries))
        if grant_id:
            grant = left[grant_id]
            entry = replace(entry, sequence=grant.moves)
            left[grant_id] = replace(grant, moves=grant.moves + 1)
        entries.append(entry)
    before = {grant.id: grant for grant in grants}
    return Paid(entries, [grant for grant in left.values() if grant != before[grant.id]])


def lapse(grant: Grant) -> tuple[Grant, LedgerEntry | None]:
    """Return the remaining amount of an expired credit to the provider."""
    over, left = replace(grant, expired=True), grant.left_micros
    if not left:
        return over, None
    entry = LedgerEntry(
        kind="lapsed", project_id=grant.project_id, debit=granted(grant.id), credit=PROMOTION, currency=grant.currency,
        micros=left, subject=grant.id, sequence=grant.moves,
    )  # fmt: skip
    return replace(over, moves=grant.moves + 1), entry


def gift(grant: Grant) -> LedgerEntry:
    return LedgerEntry(
        kind="granted", project_id=grant.project_id, debit=PROMOTION, credit=granted(grant.id), currency=grant.currency,
        micros=grant.micros, subject=grant.id,
    )  # fmt: skip


def _from_grants(left: dict[str, Grant], due: Due, moved: dict[tuple[str, str], int]) -> int:
    """Use a credit for what is due, or return money to it. Returns the remaining amount."""
    valid = [g for g in left.values() if g.from_us <= due.at_us < g.expires_us and not g.expired]
    rest = due.micros
    for grant in sorted(valid, key=lambda g: (g.expires_us, g.id), reverse=rest < 0):
        part = min(rest, grant.left_micros) if rest > 0 else max(rest, -grant.drawn_micros)
        if part:
            left[grant.id] = replace(grant, drawn_micros=grant.drawn_micros + part)
            moved[grant.id, due.month] = moved.get((grant.id, due.month), 0) + part
            rest -= part
    return rest


def _entry(
    project_id: ProjectId, currency: str, grant_id: str, month: str, micros: int, number: int
) -> LedgerEntry:
    source, owed = granted(grant_id) if grant_id else paid_ahead(project_id), owes(project_id)
    kinds: Mapping[bool, str] = {True: "drawn" if grant_id else "settled", False: "returned"}
    debit, credit = (source, owed) if micros > 0 else (owed, source)
    return LedgerEntry(
        kind=kinds[micros > 0], project_id=project_id, debit=debit, credit=credit, currency=currency,
        micros=abs(micros), subject=grant_id or source, generation=month_number(month), sequence=number,
    )  # fmt: skip


def month_number(month: str) -> int:
    """`2026-11` → 202611, as entries store the month they pay for."""
    return int(month.replace("-", ""))
