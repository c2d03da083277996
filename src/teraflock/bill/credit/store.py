"""All SQL of credits."""

from typing import Final

from teraflock.bill.credit.model import Grant
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import ProjectId

_GRANT: Final = Table("credit_grant", Grant)


def put(tx: Transaction, grant: Grant) -> None:
    changed = ("drawn_micros", "expired", "moves")
    tx.run_many(_GRANT.upsert("id", change=changed), [_GRANT.row(grant)])


def grants(tx: Transaction, project_id: ProjectId) -> list[Grant]:
    return list(_GRANT.all(tx, "WHERE project_id = :project ORDER BY expires_us, id", project=project_id))


def projects_with_grants(tx: Transaction) -> set[ProjectId]:
    return {row[0] for row in tx.all("SELECT DISTINCT project_id FROM credit_grant WHERE expired = 0")}


def expired_in_all_projects(tx: Transaction, us: int) -> list[Grant]:
    """Credits that expired before `us` and are not marked as expired."""
    return list(_GRANT.all(tx, "WHERE expired = 0 AND expires_us <= :us ORDER BY id", us=us))
