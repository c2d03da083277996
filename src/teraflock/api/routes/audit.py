"""The audit log."""

from teraflock.api.call import Call, cut
from teraflock.api.query import PageInOrganisation
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.model import (
    AuditRow,
)
from teraflock.tenant.rules import Permission
from teraflock.wire.audit import AuditAnswer, AuditPage

routes = Routes("audit")


@routes.get("/v1/audit", scope=Scope.ANYWHERE, may=Permission.AUDIT_READ)
def list_audit(call: Call, query: PageInOrganisation) -> AuditPage:
    """List who did what, newest first."""
    found = call.nouns.tenants.audit(
        call.actor, organisation=call.home(query.organisation), after=query.after, limit=query.limit + 1
    )
    rows, last = cut(found, query.limit)
    return AuditPage(items=tuple(map(audit_answer, rows)), next=last.id if last else None)


def audit_answer(row: AuditRow) -> AuditAnswer:
    return filled(AuditAnswer, row)
