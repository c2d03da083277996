"""All SQL about the audit log, to which rows are only ever added."""

from collections.abc import Sequence
from typing import Final

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Row, Transaction
from teraflock.tenant.model import AuditRow, OrganisationId
from teraflock.tenant.store import among

_AUDIT: Final = "id, at_us, organisation_id, project_id, key_id, member_id, action, subject, details"
_Details = dict[str, str | int | float | bool | None]


def put_audit(tx: Transaction, row: AuditRow) -> None:
    tx.run(
        f"INSERT INTO audit ({_AUDIT})"
        " VALUES (:id, :at, :organisation, :project, :key, :member, :action, :subject, :details)",
        id=row.id,
        at=microseconds(row.at),
        organisation=row.organisation_id,
        project=row.project_id,
        key=row.key_id,
        member=row.member_id,
        action=row.action,
        subject=row.subject,
        details=msgspec.json.encode(row.details, order="sorted").decode(),
    )


def audit(
    tx: Transaction, organisation: OrganisationId, only: Sequence[str] | None, *, after: str, limit: int
) -> tuple[AuditRow, ...]:
    """The newest first, of these projects alone or of the whole organisation; `after`: the last one known."""
    narrowed, values = among("a.project_id", only)
    columns = ", ".join(f"a.{name}" for name in _AUDIT.split(", "))
    rows = tx.all(
        f"SELECT {columns}, COALESCE(m.name, ''), COALESCE(m.is_operator, 0) FROM audit a"
        " LEFT JOIN member m ON m.id = a.member_id WHERE a.organisation_id = :organisation"
        f" AND (:after = '' OR a.id < :after){narrowed} ORDER BY a.id DESC LIMIT :limit",
        organisation=organisation,
        after=after,
        limit=limit,
        **values,
    )
    return tuple(_audit_from(row) for row in rows)


def _audit_from(row: Row) -> AuditRow:
    id, at_us, organisation_id, project_id, key_id, member_id, action, subject, details, name, is_operator = (
        row
    )
    return AuditRow(
        id=id,
        at=at_microseconds(at_us),
        organisation_id=OrganisationId(organisation_id),
        project_id=project_id,
        key_id=key_id,
        member_id=member_id,
        action=action,
        subject=subject,
        details=msgspec.json.decode(details, type=_Details),
        member="operator" if is_operator else name if member_id else "server",
    )
