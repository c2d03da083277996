"""The tenant service for the edges: authentication, permissions, and finding the project of a request.

`organisations`, `projects`, `members` and `keys` have the actions on each noun. Every action writes its audit row in
its own transaction. What an actor may not see is `NotFound`, whether or not it exists.
"""

from collections.abc import Callable
from os import urandom

from teraflock.base.clock import Clock
from teraflock.base.errors import NotAuthenticated
from teraflock.storage.database import Database
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.announcement.service import AnnouncementService
from teraflock.tenant.audit import store as audit_store
from teraflock.tenant.installation.service import Installation
from teraflock.tenant.key.secret import id_of, is_secret
from teraflock.tenant.key.service import KeyService
from teraflock.tenant.key.store import actor_of_key
from teraflock.tenant.member.service import MemberService
from teraflock.tenant.model import (
    Actor,
    AuditRow,
    Defaults,
    Installed,
    KeyId,
    MadeKey,
    OrganisationId,
    Project,
)
from teraflock.tenant.organisation.service import OrganisationService
from teraflock.tenant.project.service import ProjectService
from teraflock.tenant.rules import Permission
from teraflock.tenant.session.store import actor_of_session
from teraflock.tenant.ssh_key.service import SshKeyService


class TenantService(Acts):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes] = urandom,
        defaults: Defaults = Defaults(),  # noqa: B008  # frozen
    ) -> None:
        super().__init__(database, clock, random_bytes, defaults)
        self.organisations = OrganisationService(database, clock, random_bytes, defaults)
        self.projects = ProjectService(database, clock, random_bytes, defaults)
        self.members = MemberService(database, clock, random_bytes)
        self.keys = KeyService(database, clock, random_bytes)
        self.ssh_keys = SshKeyService(database, clock, random_bytes)
        self.announcements = AnnouncementService(database, clock, random_bytes)
        self._installation = Installation(database, clock, random_bytes)

    def authenticate(self, secret: str) -> Actor:
        """The actor of this key or session. Nothing is cached: a revoked one fails at the next request."""
        id = id_of(secret)
        if id is not None:
            now = self._clock.now()
            with self._database.read() as tx:
                is_key = id.startswith("key_")
                found = actor_of_key(tx, KeyId(id), now) if is_key else actor_of_session(tx, id, now)
            if found is not None and is_secret(secret, found[1]):
                return found[0]
        raise NotAuthenticated(
            "Invalid API key: unknown, expired or revoked",
            hint="Set `TERA_KEY` to a valid key. An owner of the organisation can create one",
        )

    def require(self, actor: Actor, permission: Permission, project: Project | None) -> None:
        """Raise `Forbidden` unless the actor has the permission; None: in the whole organisation or installation."""
        rules.require(actor, permission, project)

    def audit(
        self, actor: Actor, *, organisation: OrganisationId | None = None, after: str = "", limit: int
    ) -> tuple[AuditRow, ...]:
        """Audit rows, newest first. Actors limited to some projects see the rows of those."""
        home = organisation or actor.organisation_id
        only = rules.projects_in(actor, Permission.AUDIT_READ, home)
        if only == ():
            raise rules.forbidden(Permission.AUDIT_READ)
        with self._database.read() as tx:
            return audit_store.audit(tx, home, only, after=after, limit=limit)

    def install(self) -> Installed:
        """At the first start, create the installation. Later, return its id."""
        return self._installation.install()

    def operator_key(self) -> MadeKey:
        """Create another key for the operator. For anyone with access to the database."""
        return self._installation.operator_key()
