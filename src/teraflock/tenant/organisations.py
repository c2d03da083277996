"""Organisations: made by operators, each with a first owner, a key for him and a project to begin with.

Only operators learn which organisations there are.
"""

from collections.abc import Callable
from os import urandom

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, NotFound
from teraflock.base.ids import new_id
from teraflock.storage.database import Database, Transaction
from teraflock.tenant import rules, store
from teraflock.tenant.audit import Audit
from teraflock.tenant.keys import digest_of, new_secret
from teraflock.tenant.model import (
    Actor,
    ApiKey,
    KeyId,
    MadeKey,
    MadeOrganisation,
    Member,
    MemberId,
    Organisation,
    OrganisationId,
    Project,
    ProjectId,
    Quota,
    Role,
)
from teraflock.tenant.projects import DEFAULT_PROJECT, next_network
from teraflock.tenant.rules import Permission


class Organisations:
    def __init__(
        self, database: Database, clock: Clock, random_bytes: Callable[[int], bytes] = urandom
    ) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._audit = Audit(clock, random_bytes)

    def page(self, actor: Actor, *, after: str = "", limit: int) -> tuple[Organisation, ...]:
        rules.require(actor, Permission.ORGANISATION_READ, None)
        with self._database.read() as tx:
            return store.all_organisations(tx, after=after, limit=limit)

    def own(self, actor: Actor) -> Organisation:
        """The actor's own, which every member knows."""
        with self._database.read() as tx:
            return _there(store.organisation(tx, actor.organisation_id))

    def show(self, actor: Actor, id: OrganisationId) -> Organisation:
        if id != actor.organisation_id:
            rules.require(actor, Permission.ORGANISATION_READ, None)
        with self._database.read() as tx:
            return _there(store.organisation(tx, id))

    def make(self, actor: Actor, name: str, owner: str, *, quota: Quota | None = None) -> MadeOrganisation:
        """With its first project, and its first member, who gets a key."""
        rules.require(actor, Permission.ORGANISATION_WRITE, None)
        rules.check_name("an organisation", name)
        rules.check_member_name(owner)

        def work(tx: Transaction) -> MadeOrganisation:
            made = self.found(tx, name, owner, quota or Quota(), is_operator=False)
            id = made.organisation.id
            self._audit.record_in(tx, id, actor, "organisation.make", id, "", name=name, owner=owner)
            return made

        return self._database.write(work)

    def found(
        self, tx: Transaction, name: str, owner: str, quota: Quota, *, is_operator: bool
    ) -> MadeOrganisation:
        """The rows of a new organisation. Whoever calls has asked whether they may be made."""
        now = self._clock.now()
        if store.is_organisation_name_taken(tx, name):
            raise Conflict(f"There is an organisation `{name}` already", hint="Choose another name")
        organisation = Organisation(id=OrganisationId(self._id("org")), name=name, created_at=now)
        project = Project(
            id=ProjectId(self._id("prj")),
            organisation_id=organisation.id,
            name=DEFAULT_PROJECT,
            quota=quota,
            network_number=next_network(tx),
            created_at=now,
        )
        member = Member(
            id=MemberId(self._id("mem")),
            organisation_id=organisation.id,
            name=owner,
            is_operator=is_operator,
            roles={"": Role.OWNER},
            created_at=now,
        )
        store.put_organisation(tx, organisation)
        store.put_project(tx, project)
        store.put_member(tx, member)
        return MadeOrganisation(
            organisation=organisation, project=project, owner=member, key=self.first_key(tx, member)
        )

    def first_key(self, tx: Transaction, member: Member) -> MadeKey:
        """An unlimited key, for a member who has none with which to make one."""
        key = ApiKey(
            id=KeyId(self._id("key")),
            member_id=member.id,
            name="first",
            project_id="",
            role_max=None,
            created_at=self._clock.now(),
            expires_at=None,
            revoked_at=None,
        )
        secret = new_secret(key.id, self._random_bytes)
        store.put_key(tx, key, digest_of(secret))
        return MadeKey(key=key, secret=secret)

    def _id(self, prefix: str) -> str:
        return new_id(prefix, self._clock.now(), self._random_bytes)


def _there(organisation: Organisation | None) -> Organisation:
    if organisation is None:
        raise NotFound("There is no such organisation")
    return organisation
