"""What the edges call about tenants: who is this, may they, and which project is meant.

`organisations`, `projects`, `members` and `keys` have the acts on each; every act writes its audit row in its own
transaction. What an actor may not see is `NotFound`, whether or not it is there.
"""

from collections.abc import Callable
from os import urandom
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.errors import NotAuthenticated
from teraflock.base.ids import new_id
from teraflock.storage.database import Database, Transaction
from teraflock.tenant import rules, store
from teraflock.tenant.api_keys import Keys
from teraflock.tenant.audit import Audit
from teraflock.tenant.keys import is_secret, key_id_of
from teraflock.tenant.members import Members
from teraflock.tenant.model import (
    Actor,
    AuditRow,
    Installed,
    KeyId,
    MadeKey,
    Member,
    OrganisationId,
    Project,
    Quota,
)
from teraflock.tenant.organisations import Organisations
from teraflock.tenant.projects import Projects
from teraflock.tenant.rules import Permission

HOUSE: Final = "house"
OPERATOR_NAME: Final = "operator"


class TenantService:
    def __init__(
        self, database: Database, clock: Clock, random_bytes: Callable[[int], bytes] = urandom
    ) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._audit = Audit(clock, random_bytes)
        self.organisations = Organisations(database, clock, random_bytes)
        self.projects = Projects(database, clock, random_bytes)
        self.members = Members(database, clock, random_bytes)
        self.keys = Keys(database, clock, random_bytes)

    def authenticate(self, secret: str) -> Actor:
        """Who holds this key. Nothing is remembered between requests: a revoked key stops at the next one."""
        id = key_id_of(secret)
        if id is not None:
            with self._database.read() as tx:
                found = store.behind_key(tx, id, self._clock.now())
            if found is not None and is_secret(secret, found[1]):
                return found[0]
        raise NotAuthenticated(
            "This key opens nothing here: it is unknown, expired or revoked",
            hint="Set `TERA_KEY` to a key that holds; an owner of the organisation can make one",
        )

    def require(self, actor: Actor, permission: Permission, project: Project | None) -> None:
        """Raise `Forbidden` unless the actor may; None: in the whole of his organisation, or in the house."""
        rules.require(actor, permission, project)

    def project_for(self, actor: Actor, ref: str | None) -> Project:
        return self.projects.show(actor, ref)

    def audit(
        self, actor: Actor, *, organisation: OrganisationId | None = None, after: str = "", limit: int
    ) -> tuple[AuditRow, ...]:
        """The newest first; for whoever reaches only some projects, what happened there."""
        home = organisation or actor.organisation_id
        only = rules.projects_with(actor, Permission.AUDIT_READ) if home == actor.organisation_id else None
        if only == () or (only is None and Permission.AUDIT_READ not in rules.in_organisation(actor, home)):
            raise rules.forbidden(Permission.AUDIT_READ)
        with self._database.read() as tx:
            return store.audit(tx, home, only, after=after, limit=limit)

    def record(
        self,
        tx: Transaction,
        actor: Actor,
        action: str,
        subject: str,
        project: Project | None = None,
        /,
        **details: str | int | float | bool | None,
    ) -> None:
        """An act of another noun, in its transaction; see tenant/audit.py."""
        self._audit.record(tx, actor, action, subject, project, **details)

    def install(self) -> Installed:
        """Make the house at the first start: an organisation, its first project, an operator. Later: say its id."""

        def work(tx: Transaction) -> Installed:
            known = store.installation_id(tx)
            if known is not None:
                return Installed(installation_id=known, secret=None)
            now = self._clock.now()
            id = new_id("tera", now, self._random_bytes)
            store.put_installation(tx, id, now)
            made = self.organisations.found(tx, HOUSE, OPERATOR_NAME, Quota(), is_operator=True)
            self._audit.record(tx, _self(made.owner, made.key.key.id), "house.install", id, made.project)
            return Installed(installation_id=id, secret=made.key.secret)

        return self._database.write(work)

    def operator_key(self) -> MadeKey:
        """One more key for the operator, for whoever has the database itself: every other one may be lost."""

        def work(tx: Transaction) -> MadeKey:
            operator = store.operators_in_all_organisations(tx)[0]
            made = self.organisations.first_key(tx, operator)
            self._audit.record(
                tx, _self(operator, made.key.id), "key.make", made.key.id, None, name=made.key.name
            )
            return made

        return self._database.write(work)


def _self(member: Member, key_id: KeyId) -> Actor:
    """A member as the one who acts, before anyone could ask with a key."""
    return Actor(
        key_id=key_id,
        member_id=member.id,
        member_name=member.name,
        organisation_id=member.organisation_id,
        is_operator=member.is_operator,
        roles=member.roles,
    )
