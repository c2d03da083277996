"""All SQL for the audit log. Rows are only added."""

from collections.abc import Sequence
from typing import Final

from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import AuditRow, OrganisationId
from teraflock.tenant.store import among

_AUDIT: Final = Table("audit", AuditRow, leave_out=("member",))


def put_audit(tx: Transaction, row: AuditRow) -> None:
    _AUDIT.add(tx, row)


def audit(
    tx: Transaction, organisation: OrganisationId, only: Sequence[str] | None, *, after: str, limit: int
) -> tuple[AuditRow, ...]:
    """Rows of these projects, or of the whole organisation; newest first. `after` is the last row already read."""
    narrowed, values = among("a.project_id", only)
    rows = tx.all(
        f"SELECT {_AUDIT.names_in('a')}, COALESCE(m.name, ''), COALESCE(m.is_operator, 0) FROM audit a"
        " LEFT JOIN member m ON m.id = a.member_id WHERE a.organisation_id = :organisation"
        f" AND (:after = '' OR a.id < :after){narrowed} ORDER BY a.id DESC LIMIT :limit",
        organisation=organisation,
        after=after,
        limit=limit,
        **values,
    )
    return tuple(_AUDIT.value(row[:-2], member=_who(row[5], *row[-2:])) for row in rows)


def _who(member_id: str, name: str, is_operator: int) -> str:
    if is_operator:
        return "operator"
    return name if member_id else "server"
