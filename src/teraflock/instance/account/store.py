"""All SQL about accounts at clouds. Accounts belong to the installation, so reads here cross tenants."""

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.instance.account.model import AccountUse, CloudAccount
from teraflock.storage.database import Row, Transaction
from teraflock.tenant.model import ProjectId

_COLUMNS = "name, provider, sealed, currency, limit_micros, created_at_us"


def accounts(tx: Transaction) -> tuple[CloudAccount, ...]:
    return tuple(_account(row) for row in tx.all(f"SELECT {_COLUMNS} FROM cloud_account ORDER BY name"))


def account(tx: Transaction, name: str) -> CloudAccount | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM cloud_account WHERE name = :name", name=name)
    return _account(row) if row else None


def hold(tx: Transaction, name: str) -> None:
    """Lock an account until the end of the transaction. Launches lock it last, several accounts by name."""
    tx.run("UPDATE cloud_account SET name = name WHERE name = :name", name=name)


def insert(tx: Transaction, account: CloudAccount) -> None:
    tx.run(
        f"INSERT INTO cloud_account ({_COLUMNS})"
        " VALUES (:name, :provider, :sealed, :currency, :limit_micros, :created_at_us)",
        name=account.name,
        provider=account.provider,
        sealed=account.sealed,
        currency=account.currency,
        limit_micros=account.limit_micros,
        created_at_us=microseconds(account.created_at),
    )


def remove(tx: Transaction, name: str) -> None:
    tx.run("DELETE FROM cloud_account WHERE name = :name", name=name)
    tx.run("DELETE FROM cloud_account_use WHERE account = :name", name=name)


def set_limit(tx: Transaction, name: str, limit_micros: int | None) -> None:
    tx.run("UPDATE cloud_account SET limit_micros = :limit WHERE name = :name", limit=limit_micros, name=name)


def set_sealed(tx: Transaction, name: str, sealed: str) -> None:
    tx.run("UPDATE cloud_account SET sealed = :sealed WHERE name = :name", sealed=sealed, name=name)


def set_use(tx: Transaction, use: AccountUse) -> None:
    tx.run(
        "INSERT INTO cloud_account_use (account, project_id, limit_micros) VALUES (:account, :project, :limit)"
        " ON CONFLICT (account, project_id) DO UPDATE SET limit_micros = excluded.limit_micros",
        account=use.account,
        project=use.project_id,
        limit=use.limit_micros,
    )


def remove_use(tx: Transaction, account: str, project_id: ProjectId) -> None:
    tx.run(
        "DELETE FROM cloud_account_use WHERE account = :account AND project_id = :project",
        account=account,
        project=project_id,
    )


def uses(tx: Transaction) -> tuple[AccountUse, ...]:
    rows = tx.all(
        "SELECT account, project_id, limit_micros FROM cloud_account_use ORDER BY account, project_id"
    )
    return tuple(
        AccountUse(account=name, project_id=project, limit_micros=limit) for name, project, limit in rows
    )


def names_for(tx: Transaction, project_id: ProjectId) -> frozenset[str]:
    """The accounts that a project may use."""
    rows = tx.all("SELECT account FROM cloud_account_use WHERE project_id = :id", id=project_id)
    return frozenset(row[0] for row in rows)


def _account(row: Row) -> CloudAccount:
    name, provider, sealed, currency, limit_micros, created_at_us = row
    return CloudAccount(
        name=name,
        provider=provider,
        sealed=sealed,
        currency=currency,
        limit_micros=limit_micros,
        created_at=at_microseconds(created_at_us),
    )


def wanted_running(tx: Transaction, name: str) -> tuple[tuple[str, str], ...]:
    """The ids and projects of an account's instances that run, or are to run."""
    rows = tx.all(
        "SELECT id, project_id FROM instance WHERE site = :site AND wanted = 'running' AND phase <> 'failed'"
        " ORDER BY id",
        site=name,
    )
    return tuple((id, project) for id, project in rows)
