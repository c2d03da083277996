"""Organisations: operators create them, each with a first owner, a key for the owner and a first project.

Only operators learn which organisations exist. Suspending and deleting only write a state. The loop in
`reconcile/organisations.py` stops and deletes the instances, so a crash loses nothing.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Conflict, Refused
from teraflock.base.ids import new_id
from teraflock.base.names import check_member_name, check_name, check_reason
from teraflock.storage.database import Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.key.service import first_key
from teraflock.tenant.member.store import members, put_member, remove_member
from teraflock.tenant.model import (
    Actor,
    Defaults,
    MadeOrganisation,
    Member,
    MemberId,
    NewOrganisation,
    Organisation,
    OrganisationId,
    OrganisationQuota,
    OrganisationState,
    Project,
    ProjectId,
    Role,
)
from teraflock.tenant.organisation import rules as organisations
from teraflock.tenant.organisation import store
from teraflock.tenant.organisation.rules import existing
from teraflock.tenant.project.service import DEFAULT_PROJECT
from teraflock.tenant.project.store import NO_NETWORK, claim, projects, put_project, remove_project
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.store import name_and_quota, set_quota
from teraflock.tenant.rules import Permission

PROJECTS_MAX: Final = 4_096  # more than the number of networks
MEMBERS_MAX: Final = 100_000


class OrganisationService(Acts):
    def page(self, actor: Actor, *, after: str = "", limit: int) -> tuple[Organisation, ...]:
        rules.require(actor, Permission.ORGANISATION_READ, None)
        with self._database.read() as tx:
            return store.all_organisations(tx, after=after, limit=limit)

    def own(self, actor: Actor) -> Organisation:
        """The actor's own organisation, which every member may see."""
        with self._database.read() as tx:
            return existing(store.organisation(tx, actor.organisation_id))

    def resolve(self, actor: Actor, ref: str | None) -> OrganisationId:
        """The id of the organisation with this id or name; None: the actor's own."""
        if not ref:
            return actor.organisation_id
        with self._database.read() as tx:
            return organisations.resolve(tx, actor, ref)

    def show(self, actor: Actor, ref: str) -> Organisation:
        """Find an organisation by id or name. Members see their own, operators see all."""
        with self._database.read() as tx:
            id = organisations.resolve(tx, actor, ref)
            if id != actor.organisation_id:
                rules.require(actor, Permission.ORGANISATION_READ, None)
            return existing(store.organisation(tx, id))

    def suspend(self, actor: Actor, ref: str, reason: str) -> Organisation:
        """Stop all its instances, and start nothing until it is resumed."""

        def change(tx: Transaction, found: Organisation) -> Organisation:
            if found.state == OrganisationState.DELETING:
                raise Conflict(f"`{found.name}` is being deleted")
            return self._moved(tx, found, OrganisationState.SUSPENDED, reason)

        return self._change(actor, ref, "suspend", reason, change)

    def resume(self, actor: Actor, ref: str, reason: str) -> Organisation:
        """Let its members start instances again. Stopped instances stay stopped until a member starts them."""

        def change(tx: Transaction, found: Organisation) -> Organisation:
            if found.state == OrganisationState.DELETING:
                raise Conflict(f"`{found.name}` is being deleted: parts of it may already be gone")
            return self._moved(tx, found, OrganisationState.ACTIVE, "")

        return self._change(actor, ref, "resume", reason, change)

    def rename(self, actor: Actor, ref: str, name: str, reason: str) -> Organisation:
        check_name(name, "an organisation")

        def change(tx: Transaction, found: Organisation) -> Organisation:
            if found.name == name:
                return found
            if store.is_organisation_name_taken(tx, name):
                raise Conflict(f"An organisation `{name}` already exists", hint="Choose another name")
            store.rename(tx, found.id, name)
            return replace(found, name=name)

        return self._change(actor, ref, "rename", reason, change, to=name)

    def remove(self, actor: Actor, ref: str, reason: str, *, force: bool) -> Organisation:
        """Delete an empty organisation; with `force`, delete its instances and images first."""

        def change(tx: Transaction, found: Organisation) -> Organisation:
            if found.id == actor.organisation_id:
                raise Refused("You cannot delete an operator's own organisation")
            instances, images = store.contents(tx, found.id)
            if (instances or images) and not force:
                raise Refused(
                    f"`{found.name}` still has {instances} instances and {images} images",
                    hint="Delete them first, or use `--force` to delete them and lose their data",
                )
            moved = self._moved(tx, found, OrganisationState.DELETING, reason)
            for project in projects(tx, found.id, None, limit=PROJECTS_MAX):
                claim(tx, project.id)  # if a launch was faster, this runs again and sees the instance
            return moved

        return self._change(actor, ref, "delete", reason, change, force=force)

    def close(self, id: OrganisationId) -> bool:
        """Finish deleting an organisation when nothing is left in it. False: something is left."""

        def work(tx: Transaction) -> bool:
            found = existing(store.organisation(tx, id))
            if found.state != OrganisationState.DELETING or any(store.contents(tx, id)):
                return False
            now = self._clock.now()
            for project in projects(tx, id, None, limit=PROJECTS_MAX):
                remove_project(tx, project.id, now)
            for member in members(tx, id, None, after="", limit=MEMBERS_MAX):
                remove_member(tx, member.id, now)
            store.move(tx, id, OrganisationState.DELETED, found.state_reason, now)
            store.rename(tx, id, f"{found.name}~{id}")  # names have no `~`, so the old name is free again
            return True

        return self._database.write(work)

    def _change(
        self,
        actor: Actor,
        ref: str,
        action: str,
        reason: str,
        change: Callable[[Transaction, Organisation], Organisation],
        **details: str | bool,
    ) -> Organisation:
        rules.require(actor, Permission.ORGANISATION_WRITE, None)
        reason = check_reason(reason)

        def work(tx: Transaction) -> Organisation:
            before = organisations.find(tx, ref)
            if before.state == OrganisationState.DELETED:
                raise Conflict(f"`{before.name}` was deleted")
            after = change(tx, before)
            if after != before:
                self._audit.record_in(
                    tx, before.id, actor, f"organisation.{action}", before.id, "", name=before.name, by="operator",
                    reason=reason, **details,
                )  # fmt: skip
            return after

        return self._database.write(work)

    def _moved(
        self, tx: Transaction, found: Organisation, state: OrganisationState, reason: str
    ) -> Organisation:
        if found.state == state and found.state_reason == reason:
            return found
        if any(member.is_operator for member in members(tx, found.id, None, after="", limit=MEMBERS_MAX)):
            raise Refused(f"`{found.name}` is the operators' own organisation")
        now = self._clock.now()
        if not store.move(tx, found.id, state, reason, now):
            raise Conflict(f"`{found.name}` was changed meanwhile", hint="Look at it again, then repeat this")
        return replace(found, state=state, state_reason=reason, state_since=now)

    def find(self, actor: Actor, ref: str) -> Organisation:
        """Find an organisation by id or name. Only operators find others than their own."""
        with self._database.read() as tx:
            if actor.is_operator:
                return organisations.find(tx, ref)
            own = existing(store.organisation(tx, actor.organisation_id))
        return existing(own if ref in (own.id, own.name) else None)

    def quota(self, organisation: OrganisationId) -> OrganisationQuota:
        with self._database.read() as tx:
            return name_and_quota(tx, organisation)[1]

    def set_quota(self, actor: Actor, ref: str, quota: OrganisationQuota) -> Organisation:
        """Set the most it may hold over all its projects. Anything above the new quota stays, but cannot grow."""
        rules.require(actor, Permission.ORGANISATION_WRITE, None)

        def work(tx: Transaction) -> Organisation:
            found = organisations.find(tx, ref)
            set_quota(tx, found.id, quota)
            self._audit.record_in(tx, found.id, actor, "quota.set", found.id, "", **quotas.flat(quota))
            return found

        return self._database.write(work)

    def make(self, actor: Actor, name: str, owner: str) -> MadeOrganisation:
        """Create an organisation with its first project, an owner with a key, and the default quotas."""
        rules.require(actor, Permission.ORGANISATION_WRITE, None)
        check_name(name, "an organisation")
        check_member_name(owner)

        def work(tx: Transaction) -> MadeOrganisation:
            made = self.insert(tx, name, owner, self._defaults, is_operator=False)
            id = made.organisation.id
            self._audit.record_in(tx, id, actor, "organisation.make", id, "", name=name, owner=owner)
            return made

        return self._database.write(work)

    def insert(
        self, tx: Transaction, name: str, owner: str, quotas_of_new: Defaults, *, is_operator: bool
    ) -> MadeOrganisation:
        """Insert a new organisation with a key for its owner. The caller has checked the permission."""
        new = self.put(tx, name, owner, quotas_of_new, is_operator=is_operator)
        key = first_key(tx, new.owner, self._clock.now(), self._random_bytes)
        return MadeOrganisation(organisation=new.organisation, project=new.project, owner=new.owner, key=key)

    def put(
        self, tx: Transaction, name: str, owner: str, quotas_of_new: Defaults, *, is_operator: bool
    ) -> NewOrganisation:
        """Insert the rows of a new organisation, without a key."""
        now = self._clock.now()
        if store.is_organisation_name_taken(tx, name):
            raise Conflict(f"An organisation `{name}` already exists", hint="Choose another name")
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
        return NewOrganisation(organisation=organisation, project=project, owner=member)
