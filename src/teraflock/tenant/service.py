"""What the edges call about tenants: who is this, may they, and which project is meant.

`organisations`, `projects`, `members` and `keys` have the acts on each; every act writes its audit row in its own
transaction. What an actor may not see is `NotFound`, whether or not it is there.
"""

from collections.abc import Callable
from os import urandom

from teraflock.base.clock import Clock
from teraflock.base.errors import NotAuthenticated
from teraflock.storage.database import Database
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.announcement.service import Announcements
from teraflock.tenant.audit import store as audit_store
from teraflock.tenant.installation.service import Installation
from teraflock.tenant.key.secret import is_secret, key_id_of
from teraflock.tenant.key.service import Keys
from teraflock.tenant.key.store import behind_key
from teraflock.tenant.member.service import Members
from teraflock.tenant.model import Actor, AuditRow, Defaults, Installed, MadeKey, OrganisationId, Project
from teraflock.tenant.organisation.service import Organisations
from teraflock.tenant.project.service import Projects
from teraflock.tenant.rules import Permission


class TenantService(Acts):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes] = urandom,
        defaults: Defaults = Defaults(),  # noqa: B008  # frozen
    ) -> None:
        super().__init__(database, clock, random_bytes, defaults)
        self.organisations = Organisations(database, clock, random_bytes, defaults)
        self.projects = Projects(database, clock, random_bytes, defaults)
        self.members = Members(database, clock, random_bytes)
        self.keys = Keys(database, clock, random_bytes)
        self.announcements = Announcements(database, clock, random_bytes)
        self._installation = Installation(database, clock, random_bytes)

    def authenticate(self, secret: str) -> Actor:
        """Who holds this key. Nothing is remembered between requests: a revoked key stops at the next one."""
        id = key_id_of(secret)
        if id is not None:
            with self._database.read() as tx:
                found = behind_key(tx, id, self._clock.now())
            if found is not None and is_secret(secret, found[1]):
                return found[0]
        raise NotAuthenticated(
            "This key opens nothing here: it is unknown, expired or revoked",
            hint="Set `TERA_KEY` to a key that holds; an owner of the organisation can make one",
        )

    def require(self, actor: Actor, permission: Permission, project: Project | None) -> None:
        """Raise `Forbidden` unless the actor may; None: in the whole of his organisation, or in the house."""
        rules.require(actor, permission, project)

    def project_for(self, actor: Actor, ref: str | None, *, removed: bool = False) -> Project:
        return self.projects.show(actor, ref, removed=removed)

    def audit(
        self, actor: Actor, *, organisation: OrganisationId | None = None, after: str = "", limit: int
    ) -> tuple[AuditRow, ...]:
        """The newest first; for whoever reaches only some projects, what happened there."""
        home = organisation or actor.organisation_id
        only = rules.projects_in(actor, Permission.AUDIT_READ, home)
        if only == ():
            raise rules.forbidden(Permission.AUDIT_READ)
        with self._database.read() as tx:
            return audit_store.audit(tx, home, only, after=after, limit=limit)

    def install(self) -> Installed:
        """Make the house at the first start. Later: say its id."""
        return self._installation.install()

    def operator_key(self) -> MadeKey:
        """One more key for the operator, for whoever has the database itself."""
        return self._installation.operator_key()
