"""Members and their roles.

Invariants:
- nobody gives or removes a role with more permissions than they have in the same place;
- an organisation always has an owner, and the installation always has an operator;
- only operators change or remove operators;
- a removed member has no roles and no keys, and gets none of them back when added again.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from teraflock.base.errors import (
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    ambiguous_name,
    not_found,
    suggestion,
)
from teraflock.base.ids import new_id
from teraflock.base.names import check_member_name
from teraflock.storage.database import Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.member import store
from teraflock.tenant.model import Actor, Member, MemberId, OrganisationId, Project, Role
from teraflock.tenant.organisation.rules import NAMES_MAX
from teraflock.tenant.project.service import OPTIONS_MAX, project_in
from teraflock.tenant.rules import Permission


class MemberService(Acts):
    def page(
        self, actor: Actor, *, organisation: OrganisationId | None = None, after: str = "", limit: int
    ) -> tuple[Member, ...]:
        """All members of the organisation. Actors limited to some projects see the members with a role there."""
        home = organisation or actor.organisation_id
        seen_in = rules.projects_in(actor, Permission.MEMBER_READ, home)
        if seen_in == ():
            raise rules.forbidden(Permission.MEMBER_READ)
        with self._database.read() as tx:
            found = store.members(tx, home, seen_in, after=after, limit=limit)
        return tuple(_visible(member, seen_in) for member in found)

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        """The names of members whose ids the caller has already seen."""
        with self._database.read() as tx:
            return store.names_in_all_organisations(tx, ids)

    def in_project_of(self, project: Project, ref: str) -> Member:
        """A member of a project's organisation, by id or name."""
        with self._database.read() as tx:
            found = store.member(tx, project.organisation_id, ref)
        if found is None:
            raise NotFound(
                f"There is no member `{ref}` in this organisation",
                hint="`tera member list` lists all members",
            )
        return found

    def make(
        self,
        actor: Actor,
        name: str,
        role: Role,
        project: str = "",
        *,
        organisation: OrganisationId | None = None,
    ) -> Member:
        """Add a member with a role in one project, or in all projects if `project` is empty."""
        check_member_name(name)

        def work(tx: Transaction) -> Member:
            home, project_id = self._place(tx, actor, role, project, organisation)
            return self._made(tx, actor, home, name, role, project_id)

        return self._database.write(work)

    def set_role(self, actor: Actor, ref: str, role: Role | None, project: str = "") -> Member:
        """Replace the member's role in a project, or remove it with None."""

        def work(tx: Transaction) -> Member:
            member = member_in(tx, actor, ref)
            _, project_id = self._place(tx, actor, role, project, member.organisation_id)
            before = member.roles.get(project_id)
            if before is not None:  # nobody can remove a role that they could not give
                self._place(tx, actor, before, project, member.organisation_id)
            if project_id == "" and before is Role.OWNER and role is not Role.OWNER:
                _check_not_last_owner(tx, member)
            store.put_role(tx, member.id, project_id, role)
            self._audit.record_in(
                tx,
                member.organisation_id,
                actor,
                "member.set_role",
                member.id,
                project_id,
                role=role,
                before=before,
            )
            roles = {**member.roles, project_id: role}
            return replace(member, roles={place: given for place, given in roles.items() if given})

        return self._database.write(work)

    def remove(self, actor: Actor, ref: str) -> Member:
        """Remove the member from the organisation, with all roles and keys."""

        def work(tx: Transaction) -> Member:
            member = member_in(tx, actor, ref)
            held = rules.in_organisation(actor, member.organisation_id)
            rules.check_held(Permission.MEMBER_WRITE, held)
            if not all(rules.may_give(actor, role, held) for role in member.roles.values()):
                raise _exceeds_own_permissions("remove a member who has")
            _check_not_last_owner(tx, member)
            _check_not_last_operator(tx, member)
            now = self._clock.now()
            store.remove_member(tx, member.id, now)
            self._audit.record_in(
                tx, member.organisation_id, actor, "member.remove", member.id, "", name=member.name
            )
            return replace(member, roles={}, removed_at=now)

        return self._database.write(work)

    def _place(
        self, tx: Transaction, actor: Actor, role: Role | None, project: str, home: OrganisationId | None
    ) -> tuple[OrganisationId, str]:
        """The organisation and project id in which the actor may give a role. Raises if there is none."""
        if project:
            place = project_in(tx, actor, project)
            if home is not None and place.organisation_id != home:
                raise NotFound("There is no such project")
            held, home, project_id = rules.in_project(actor, place), place.organisation_id, str(place.id)
        else:
            home = home or actor.organisation_id
            held, project_id = rules.in_organisation(actor, home), ""
        rules.check_held(Permission.MEMBER_WRITE, held)
        if role is not None and not rules.may_give(actor, role, held):
            raise _exceeds_own_permissions("give or remove a role that has")
        return home, project_id

    def _made(
        self, tx: Transaction, actor: Actor, home: OrganisationId, name: str, role: Role, project_id: str
    ) -> Member:
        if store.member(tx, home, name) is not None:
            raise Conflict(
                f"`{name}` is already a member", hint="Change the role with `tera member set-role`"
            )
        self._check_there(tx, actor, home)
        now = self._clock.now()
        removed = store.removed_member(tx, home, name)
        member = Member(
            id=removed or MemberId(new_id("mem", now, self._random_bytes)),
            organisation_id=home,
            name=name,
            is_operator=False,
            roles={project_id: role},
            created_at=now,
        )
        if removed is None:
            store.put_member(tx, member)
        else:
            store.take_back_member(tx, member)
        self._audit.record_in(tx, home, actor, "member.make", member.id, project_id, name=name, role=role)
        return member


def member_in(tx: Transaction, actor: Actor, ref: str) -> Member:
    """Find a member by id or name, if the actor may see and change this member."""
    found = store.member(tx, actor.organisation_id, ref)
    if found is None and actor.is_operator:
        found = _of_any_organisation(tx, ref)
    if found is None or not _knows(actor, found):
        see = f"{suggestion(ref, _known(tx, actor))} `tera member list` shows the members that this key may see".strip()
        raise NotFound("There is no such member", hint=see)
    if found.is_operator and not actor.is_operator and found.id != actor.member_id:
        raise Forbidden("Only operators may change an operator")
    return found


def _known(tx: Transaction, actor: Actor) -> list[str]:
    """Names to suggest: only of members that the actor may see."""
    seen_in = rules.projects_with(actor, Permission.MEMBER_READ)
    if seen_in == ():
        return []
    return [
        each.name for each in store.members(tx, actor.organisation_id, seen_in, after="", limit=NAMES_MAX)
    ]


def _of_any_organisation(tx: Transaction, ref: str) -> Member:
    options = store.members_of_any_organisation(tx, ref, limit=OPTIONS_MAX)
    if len(options) > 1:
        raise ambiguous_name("member", ref, (f"{each.id} ({owner})" for each, owner in options))
    if not options:
        names = store.names_of_any_organisation(tx, limit=NAMES_MAX)
        raise not_found("member", ref, names, see="`tera member list --org NAME` lists all members")
    return options[0][0]


def _knows(actor: Actor, member: Member) -> bool:
    seen_in = rules.projects_with(actor, Permission.MEMBER_READ)
    return (
        actor.is_operator
        or member.id == actor.member_id
        or seen_in is None
        or any(place in ("", *seen_in) for place in member.roles)
    )


def _visible(member: Member, seen_in: tuple[str, ...] | None) -> Member:
    """The member without roles in projects that the actor cannot access."""
    if seen_in is None:
        return member
    roles = {place: role for place, role in member.roles.items() if place in ("", *seen_in)}
    return replace(member, roles=roles)


def _check_not_last_owner(tx: Transaction, member: Member) -> None:
    if store.owners(tx, member.organisation_id) == (member.id,):
        raise Refused(
            f"`{member.name}` is the last owner of the organisation",
            hint="Make someone else an owner first: `tera member set-role NAME owner`",
        )


def _check_not_last_operator(tx: Transaction, member: Member) -> None:
    if [operator.id for operator in store.operators_in_all_organisations(tx)] == [member.id]:
        raise Refused(f"`{member.name}` is the last operator of this installation")


def _exceeds_own_permissions(act: str) -> Forbidden:
    return Forbidden(
        f"This key may not {act} more permissions than the key itself",
        hint="An owner of the organisation can do it",
    )
