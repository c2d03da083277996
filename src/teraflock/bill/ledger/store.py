"""All SQL of the ledger. Inserting entries updates the accounts in the same transaction."""

from collections.abc import Sequence
from typing import Final

from teraflock.bill.ledger.model import Account, LedgerEntry
from teraflock.bill.ledger.rules import movements
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, insert_into
from teraflock.tenant.model import ProjectId

_ENTRY: Final = Table("ledger", LedgerEntry)
_ACCOUNT: Final = Table("account", Account)
_INSERT: Final = _ENTRY.insert_with("number", "at_us")


def add(tx: Transaction, entries: Sequence[LedgerEntry], *, first_number: int, now_us: int) -> None:
    if not entries:
        return
    tx.run_many(
        _INSERT,
        ((number, now_us, *_ENTRY.row(each)) for number, each in enumerate(entries, start=first_number)),
    )
    moved = movements(entries)
    tx.run_many(
        f"{_ACCOUNT.insert} ON CONFLICT (name, currency) DO UPDATE SET"
        " debits = account.debits + excluded.debits, credits = account.credits + excluded.credits",
        [_ACCOUNT.row(each) for each in moved],
    )
    _move_trial_balance(tx, moved)


def _move_trial_balance(tx: Transaction, moved: Sequence[Account]) -> None:
    for currency in sorted({each.currency for each in moved}):
        tx.run(
            f"{insert_into('trial_balance', 'currency', 'debits', 'credits')}"
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
    return list(_ACCOUNT.all(tx, "ORDER BY name, currency"))


def trial_balance(tx: Transaction) -> dict[str, tuple[int, int]]:
    """Debits and credits of all accounts by currency, computed from the accounts."""
    rows = tx.all(
        "SELECT currency, SUM(debits), SUM(credits) FROM account GROUP BY currency ORDER BY currency"
    )
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def payments_of_project(tx: Transaction, project_id: ProjectId) -> list[tuple[int, LedgerEntry]]:
    """The entries of a project that are not charges, with their numbers, oldest first."""
    rows = tx.all(
        f"SELECT number, {_ENTRY.names} FROM ledger WHERE project_id = :project"
        " AND kind NOT IN ('charge', 'reversal') ORDER BY number",
        project=project_id,
    )
    return [(row[0], _ENTRY.value(row[1:])) for row in rows]
