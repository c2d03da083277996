"""Audit rows on the wire."""

from teraflock.base.filling import filled
from teraflock.tenant.model import (
    AuditRow,
)
from teraflock.wire.audit import AuditAnswer


def audit_answer(row: AuditRow) -> AuditAnswer:
    return filled(AuditAnswer, row)
