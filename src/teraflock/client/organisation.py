"""Organisations, for operators."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.organisation import (
    OrganisationAnswer,
    OrganisationMade,
    OrganisationPage,
    OrganisationRename,
    OrganisationRequest,
    OrganisationStateChange,
)


class Organisations(Noun):
    in_project = False

    def page(self, *, after: str = "", limit: int = PAGE) -> OrganisationPage:
        return self._get(OrganisationPage, "organisations", after=after, limit=limit)

    def list(self) -> tuple[OrganisationAnswer, ...]:
        return pages(lambda after: self.page(after=after))

    def get(self, ref: str) -> OrganisationAnswer:
        return self._get(OrganisationAnswer, "organisations", ref)

    def create(self, request: OrganisationRequest, *, idempotency_key: str = "") -> OrganisationMade:
        return self._create(OrganisationMade, "organisations", body=request, idempotency_key=idempotency_key)

    def set_state(self, ref: str, change: OrganisationStateChange) -> OrganisationAnswer:
        return self._act("PUT", OrganisationAnswer, "organisations", ref, "state", body=change)

    def rename(self, ref: str, change: OrganisationRename) -> OrganisationAnswer:
        return self._act("PUT", OrganisationAnswer, "organisations", ref, "name", body=change)

    def delete(self, ref: str, reason: str, *, force: bool = False) -> OrganisationAnswer:
        path = ("organisations", ref)
        return self._act("DELETE", OrganisationAnswer, *path, reason=reason, force=force or None)
