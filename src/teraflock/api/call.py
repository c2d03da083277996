"""One request as a handler gets it."""

from typing import TypeVar

import msgspec

from teraflock.api.asked import Asked
from teraflock.api.services import Nouns, Services
from teraflock.tenant.model import Actor, By, OrganisationId, Project

Row = TypeVar("Row")


class Raw(msgspec.Struct, frozen=True, kw_only=True):
    """A request as received. Its body is read only after authentication."""

    asked: Asked
    path: dict[str, str]
    query: bytes
    authorization: str
    content_type: str
    idempotency_key: str | None
    last_event_id: str
    body: bytes = b""


class Call:
    """The actor, the project and the services of a request. Created after the permission check."""

    __slots__ = ("_actor", "_project", "nouns", "raw", "services")

    def __init__(
        self, services: Services, nouns: Nouns, raw: Raw, actor: Actor | None, project: Project | None
    ) -> None:
        self.services = services
        self.nouns = nouns
        self.raw = raw
        self._actor = actor
        self._project = project

    @property
    def actor(self) -> Actor:
        assert self._actor is not None, "a public route has no actor"
        return self._actor

    @property
    def project(self) -> Project:
        assert self._project is not None, "only a route with scope `project` has a project"
        return self._project

    @property
    def by(self) -> By:
        """The actor in the project, for the audit log."""
        return By(actor=self.actor, project=self.project)

    @property
    def scope(self) -> str:
        """The scope of an `Idempotency-Key`. Two members never share one."""
        where = self._project.id if self._project else self.actor.organisation_id
        return f"{where}/{self.actor.member_id}"

    def with_body(self, body: bytes) -> "Call":
        raw = msgspec.structs.replace(self.raw, body=body)
        return Call(self.services, self.nouns, raw, self._actor, self._project)

    def home(self, organisation: str | None) -> OrganisationId:
        """The organisation that a query names by id or name, otherwise the actor's own."""
        return self.nouns.tenants.organisations.resolve(self.actor, organisation)

    def on(self, nouns: Nouns) -> "Call":
        return Call(self.services, nouns, self.raw, self._actor, self._project)


def cut(rows: tuple[Row, ...], limit: int) -> tuple[tuple[Row, ...], Row | None]:
    """Cut rows, requested with one extra, to a page. Returns the page, and its last row if more follow."""
    return (rows[:limit], rows[limit - 1]) if len(rows) > limit else (rows, None)
