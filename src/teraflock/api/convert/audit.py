"""Audit rows on the wire."""

from teraflock.tenant.model import (
    AuditRow,
)
from teraflock.wire.audit import AuditAnswer


def audit_answer(row: AuditRow) -> AuditAnswer:
    return AuditAnswer(
        id=row.id,
        at=row.at,
        member_id=row.member_id,
        member=row.member,
        key_id=row.key_id,
        project_id=row.project_id,
        action=row.action,
        subject=row.subject,
        details=row.details,
    )
