"""Organisations: made by operators, each with a first owner, a key for him and a project to begin with.

Only operators learn which organisations there are.
"""

from teraflock.base.errors import Conflict, NotFound
from teraflock.base.ids import new_id
from teraflock.storage.database import Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.key.service import first_key
from teraflock.tenant.member.store import put_member
from teraflock.tenant.model import (
    Actor,
    Defaults,
    MadeOrganisation,
    Member,
    MemberId,
    Organisation,
    OrganisationId,
    OrganisationQuota,
    Project,
    ProjectId,
    Role,
)
from teraflock.tenant.names import check_member_name, check_name
from teraflock.tenant.organisation import store
from teraflock.tenant.project.service import DEFAULT_PROJECT, NO_NETWORK
from teraflock.tenant.project.store import put_project
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.store import name_and_quota, set_quota
from teraflock.tenant.rules import Permission


class Organisations(Acts):
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

    def called(self, actor: Actor, ref: str) -> Organisation:
        """By id or name; another than the actor's own only for operators."""
        with self._database.read() as tx:
            found = _there(store.organisation_called(tx, ref))
        return _there(found if found.id == actor.organisation_id or actor.is_operator else None)

    def quota(self, organisation: OrganisationId) -> OrganisationQuota:
        with self._database.read() as tx:
            return name_and_quota(tx, organisation)[1]

    def set_quota(self, actor: Actor, ref: str, quota: OrganisationQuota) -> Organisation:
        """The most it may have over all its projects. What it has already stays, and may not grow."""
        rules.require(actor, Permission.ORGANISATION_WRITE, None)

        def work(tx: Transaction) -> Organisation:
            found = _there(store.organisation_called(tx, ref))
            set_quota(tx, found.id, quota)
            self._audit.record_in(tx, found.id, actor, "quota.set", found.id, "", **quotas.flat(quota))
            return found

        return self._database.write(work)

    def make(self, actor: Actor, name: str, owner: str) -> MadeOrganisation:
        """With its first project, its first member, who gets a key, and the quotas of new organisations."""
        rules.require(actor, Permission.ORGANISATION_WRITE, None)
        check_name("an organisation", name)
        check_member_name(owner)

        def work(tx: Transaction) -> MadeOrganisation:
            made = self.found(tx, name, owner, self._defaults, is_operator=False)
            id = made.organisation.id
            self._audit.record_in(tx, id, actor, "organisation.make", id, "", name=name, owner=owner)
            return made

        return self._database.write(work)

    def found(
        self, tx: Transaction, name: str, owner: str, quotas_of_new: Defaults, *, is_operator: bool
    ) -> MadeOrganisation:
        """The rows of a new organisation. Whoever calls has asked whether they may be made."""
        now = self._clock.now()
        if store.is_organisation_name_taken(tx, name):
            raise Conflict(f"There is an organisation `{name}` already", hint="Choose another name")
        organisation = Organisation(
            id=OrganisationId(new_id("org", now, self._random_bytes)), name=name, created_at=now
        )
        project = Project(
            id=ProjectId(new_id("prj", now, self._random_bytes)),
            organisation_id=organisation.id,
            name=DEFAULT_PROJECT,
            quota=quotas.clamped(quotas_of_new.project, quotas_of_new.organisation),
            network_number=NO_NETWORK,
            created_at=now,
        )
        member = Member(
            id=MemberId(new_id("mem", now, self._random_bytes)),
            organisation_id=organisation.id,
            name=owner,
            is_operator=is_operator,
            roles={"": Role.OWNER},
            created_at=now,
        )
        store.put_organisation(tx, organisation)
        set_quota(tx, organisation.id, quotas_of_new.organisation)
        put_project(tx, project)
        put_member(tx, member)
        key = first_key(tx, member, now, self._random_bytes)
        return MadeOrganisation(organisation=organisation, project=project, owner=member, key=key)


def _there(organisation: Organisation | None) -> Organisation:
    if organisation is None:
        raise NotFound(
            "There is no such organisation",
            hint="`tera whoami` shows yours, `tera org list` all, to operators",
        )
    return organisation
