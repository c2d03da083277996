"""All SQL about accounts at clouds. Accounts belong to the installation, so reads here cross tenants."""

from typing import Final

from teraflock.instance.account.model import AccountUse, CloudAccount
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import ProjectId

_ACCOUNT: Final = Table("cloud_account", CloudAccount)
_USE: Final = Table("cloud_account_use", AccountUse)


def accounts(tx: Transaction) -> tuple[CloudAccount, ...]:
    return _ACCOUNT.all(tx, "ORDER BY name")


def account(tx: Transaction, name: str) -> CloudAccount | None:
    return _ACCOUNT.one(tx, "WHERE name = :name", name=name)


def hold(tx: Transaction, name: str) -> None:
    """Lock an account until the end of the transaction. Launches lock it last, several accounts by name."""
    tx.run("UPDATE cloud_account SET name = name WHERE name = :name", name=name)


def insert(tx: Transaction, account: CloudAccount) -> None:
    _ACCOUNT.add(tx, account)


def remove(tx: Transaction, name: str) -> None:
    tx.run("DELETE FROM cloud_account WHERE name = :name", name=name)
    tx.run("DELETE FROM cloud_account_use WHERE account = :name", name=name)


def set_limit(tx: Transaction, name: str, limit_micros: int | None) -> None:
    tx.run("UPDATE cloud_account SET limit_micros = :limit WHERE name = :name", limit=limit_micros, name=name)


def set_sealed(tx: Transaction, name: str, sealed: str) -> None:
    tx.run("UPDATE cloud_account SET sealed = :sealed WHERE name = :name", sealed=sealed, name=name)


def set_use(tx: Transaction, use: AccountUse) -> None:
    tx.run_many(_USE.upsert("account", "project_id"), [_USE.row(use)])


def remove_use(tx: Transaction, account: str, project_id: ProjectId) -> None:
    tx.run(
        "DELETE FROM cloud_account_use WHERE account = :account AND project_id = :project",
        account=account,
        project=project_id,
    )


def uses(tx: Transaction) -> tuple[AccountUse, ...]:
    return _USE.all(tx, "ORDER BY account, project_id")


def names_for(tx: Transaction, project_id: ProjectId) -> frozenset[str]:
    """The accounts that a project may use."""
    rows = tx.all("SELECT account FROM cloud_account_use WHERE project_id = :id", id=project_id)
    return frozenset(row[0] for row in rows)


def wanted_running(tx: Transaction, name: str) -> tuple[tuple[str, str], ...]:
    """The ids and projects of an account's instances that run, or are to run."""
    rows = tx.all(
        "SELECT id, project_id FROM instance WHERE site = :site AND wanted = 'running' AND phase <> 'failed'"
        " ORDER BY id",
        site=name,
    )
    return tuple((id, project) for id, project in rows)
