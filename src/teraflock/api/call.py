"""One request, as a handler sees it."""

from typing import TypeVar

import msgspec

from teraflock.api.asked import Asked
from teraflock.api.services import Nouns, Services
from teraflock.tenant.model import Actor, By, OrganisationId, Project

Row = TypeVar("Row")


class Raw(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it came over the wire. Its body is read once it is known who asks."""

    asked: Asked
    path: dict[str, str]
    query: bytes
    authorization: str
    content_type: str
    idempotency_key: str | None
    last_event_id: str
    body: bytes = b""


class Call:
    """Who asks, about which project, and the services to do it with. Made once the permission is checked."""

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
        assert self._actor is not None, "a public route knows nobody"
        return self._actor

    @property
    def project(self) -> Project:
        assert self._project is not None, "only a route with scope `project` has one"
        return self._project

    @property
    def by(self) -> By:
        """Who acts in the project, for the audit log."""
        return By(actor=self.actor, project=self.project)

    @property
    def scope(self) -> str:
        """Where an `Idempotency-Key` counts: two members never meet in one."""
        where = self._project.id if self._project else self.actor.organisation_id
        return f"{where}/{self.actor.member_id}"

    def with_body(self, body: bytes) -> "Call":
        raw = msgspec.structs.replace(self.raw, body=body)
        return Call(self.services, self.nouns, raw, self._actor, self._project)

    def home(self, organisation: str | None) -> OrganisationId:
        """The organisation that a query names, by id or name; the asker's own where it names none."""
        return self.nouns.tenants.organisations.resolve(self.actor, organisation)

    def on(self, nouns: Nouns) -> "Call":
        return Call(self.services, nouns, self.raw, self._actor, self._project)


def cut(rows: tuple[Row, ...], limit: int) -> tuple[tuple[Row, ...], Row | None]:
    """The rows of a page, asked for with one more than fits, and the last of them where others follow."""
    return (rows[:limit], rows[limit - 1]) if len(rows) > limit else (rows, None)
