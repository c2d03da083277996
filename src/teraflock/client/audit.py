"""The audit log: who did what."""

from teraflock.client.noun import PAGE, Noun
from teraflock.wire.audit import AuditPage


class AuditLog(Noun):
    in_project = False

    def page(self, *, organisation: str = "", after: str = "", limit: int = PAGE) -> AuditPage:
        """Newest first."""
        return self._get(AuditPage, "audit", organisation=organisation, after=after, limit=limit)
