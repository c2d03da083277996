"""All SQL of the ledger. Entries are added, and the accounts move with them in the same transaction."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import astuple

from teraflock.bill.ledger.model import Account, Entry
from teraflock.bill.ledger.rules import movements
from teraflock.storage.database import Row, Transaction

_FIELDS: Final = Entry.__struct_fields__
_INSERT: Final = (
    f"INSERT INTO ledger (number, at_us, {', '.join(_FIELDS)})"
    f" VALUES (:number, :at_us, {', '.join(':' + name for name in _FIELDS)})"
)


def add(tx: Transaction, entries: Sequence[Entry], *, first_number: int, now_us: int) -> None:
    if not entries:
        return
    tx.run_many(
        _INSERT,
        ((number, now_us, *astuple(each)) for number, each in enumerate(entries, start=first_number)),
    )
    moved = movements(entries)
    tx.run_many(
        "INSERT INTO account (name, currency, debits, credits) VALUES (:name, :currency, :debits, :credits)"
        " ON CONFLICT (name, currency) DO UPDATE SET"
        " debits = account.debits + excluded.debits, credits = account.credits + excluded.credits",
        [(each.name, each.currency, each.debits, each.credits) for each in moved],
    )
    _move_trial_balance(tx, moved)


def _move_trial_balance(tx: Transaction, moved: Sequence[Account]) -> None:
    for currency in sorted({each.currency for each in moved}):
        tx.run(
            "INSERT INTO trial_balance (currency, debits, credits) VALUES (:currency, :debits, :credits)"
            " ON CONFLICT (currency) DO UPDATE SET debits = trial_balance.debits + excluded.debits,"
            " credits = trial_balance.credits + excluded.credits",
            currency=currency,
            debits=sum(each.debits for each in moved if each.currency == currency),
            credits=sum(each.credits for each in moved if each.currency == currency),
        )


def account(tx: Transaction, name: str, currency: str) -> Account:
    row = tx.one(
        "SELECT debits, credits FROM account WHERE name = :name AND currency = :currency",
        name=name,
        currency=currency,
    )
    debits, credits = row or (0, 0)
    return Account(name=name, currency=currency, debits=debits, credits=credits)


def accounts(tx: Transaction) -> list[Account]:
    rows = tx.all("SELECT name, currency, debits, credits FROM account ORDER BY name, currency")
    return [Account(name=row[0], currency=row[1], debits=row[2], credits=row[3]) for row in rows]


def trial_balance(tx: Transaction) -> dict[str, tuple[int, int]]:
    """Debits and credits of all accounts, by currency, added up anew."""
    rows = tx.all(
        "SELECT currency, SUM(debits), SUM(credits) FROM account GROUP BY currency ORDER BY currency"
    )
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def payments_of_project(tx: Transaction, project_id: str) -> list[tuple[int, Entry]]:
    """The entries of a project that are no charges, with their numbers, oldest first."""
    rows = tx.all(
        f"SELECT number, {', '.join(_FIELDS)} FROM ledger WHERE project_id = :project"
        " AND kind NOT IN ('charge', 'reversal') ORDER BY number",
        project=project_id,
    )
    return [(row[0], _entry_from(row[1:])) for row in rows]


def _entry_from(row: Row) -> Entry:
    kind, project, debit, credit, currency, micros, subject, generation, sequence, segment = row
    return Entry(
        kind=kind, project_id=project, debit=debit, credit=credit, currency=currency, micros=micros, subject=subject,
        generation=generation, sequence=sequence, segment=segment,
    )  # fmt: skip
