"""A model of tenants that shares no code with the service, and actions on both that must agree.

The model decides by itself whether an action is allowed, and stores plain dicts. After every action, `check` compares
the permissions of every key in each project between the two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import TypeVar

from tests.unit.tenant.table import MAY

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Conflict, Forbidden, NotAuthenticated, NotFound, Refused
from teraflock.storage.database import Database
from teraflock.tenant import model, rules
from teraflock.tenant.model import MadeKey, OrganisationId, Role
from teraflock.tenant.service import TenantService

T = TypeVar("T")
ROWS = 200
_numbers = count()


@dataclass(eq=False)
class Organisation:
    id: str
    name: str


@dataclass(eq=False)
class Project:
    id: str
    name: str
    organisation: Organisation
    here: bool = True


@dataclass(eq=False)
class Member:
    id: str
    name: str
    organisation: Organisation
    roles: dict[Project | None, str]
    operator: bool = False
    here: bool = True


@dataclass(eq=False)
class Key:
    id: str
    secret: str
    member: Member
    project: Project | None = None
    cap: str | None = None
    expires: datetime | None = None
    revoked: bool = False


@dataclass
class World:
    database: Database
    clock: FixedClock = field(default_factory=lambda: FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))
    organisations: list[Organisation] = field(default_factory=list)
    projects: list[Project] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.service = TenantService(self.database, self.clock, Random(next(_numbers)).randbytes)
        self.service.install()
        operator = self.service.operator_key()
        actor = self.service.authenticate(operator.secret)
        home = Organisation(actor.organisation_id, "operator")
        self.operator = Member(actor.member_id, "operator", home, {None: "owner"}, operator=True)
        self.keys.append(Key(operator.key.id, operator.secret, self.operator))
        for _ in range(2):
            name = f"o{next(_numbers)}"  # unique, because all worlds of a test are in one database
            made = self.service.organisations.make(actor, name, "ann")
            organisation = Organisation(made.organisation.id, name)
            owner = Member(made.owner.id, "ann", organisation, {None: "owner"})
            self.organisations.append(organisation)
            self.projects.append(Project(made.project.id, "default", organisation))
            self.members.append(owner)
            self.keys.append(Key(made.key.key.id, made.key.secret, owner))

    def name(self, number: int) -> str:
        """One of a few names that no other world uses: all worlds share the installation."""
        return f"{self.organisations[0].name}-{number % 3}"

    # --- decisions of the model ------------------------------------------------------------------------------------

    def is_valid(self, key: Key) -> bool:
        alive = key.expires is None or key.expires > self.clock.now()
        return alive and not key.revoked and key.member.here

    def acts_as_operator(self, key: Key) -> bool:
        return key.member.operator and key.project is None and key.cap is None

    def may_in(self, key: Key, project: Project) -> set[str]:
        found = set(MAY["operator"]) if self.acts_as_operator(key) else set()
        if project.organisation is key.member.organisation and key.project in (None, project):
            for place in (None, project):
                found |= self._limited(key, key.member.roles.get(place))
        return found

    def may_in_all(self, key: Key, organisation: Organisation) -> set[str]:
        found = set(MAY["operator"]) if self.acts_as_operator(key) else set()
        if organisation is key.member.organisation and key.project is None:
            found |= self._limited(key, key.member.roles.get(None))
        return found

    def may_somewhere(self, key: Key) -> set[str]:
        found = set(MAY["operator"]) if self.acts_as_operator(key) else set()
        for place, role in key.member.roles.items():
            if place is None or key.project in (None, place):
                found |= self._limited(key, role)
        return found

    def _limited(self, key: Key, role: str | None) -> set[str]:
        held = set(MAY[role]) if role else set()
        return held & MAY[key.cap] if key.cap else held

    def _held(self, key: Key, organisation: Organisation, place: Project | None) -> set[str]:
        if place is None:
            return self.may_in_all(key, organisation)
        return self.may_in(key, place) if place.here and place.organisation is organisation else set()

    def _gives(self, key: Key, role: str | None, held: set[str]) -> bool:
        return "member.write" in held and (self.acts_as_operator(key) or role is None or MAY[role] <= held)

    def _knows(self, key: Key, member: Member) -> bool:
        if self.acts_as_operator(key) or member is key.member:
            return True
        if member.organisation is not key.member.organisation:
            return False
        if "member.read" in self.may_in_all(key, member.organisation):
            return True
        return any(
            "member.read" in self.may_in(key, project) and (None in member.roles or project in member.roles)
            for project in self.living_projects()
        )

    def _may_change(self, key: Key, member: Member) -> bool:
        if not member.here or not self._knows(key, member):
            return False
        return not member.operator or self.acts_as_operator(key) or member is key.member

    def _within(self, key: Key, project: Project | None, cap: str | None) -> bool:
        if key.project is not None and project is not key.project:
            return False
        return key.cap is None or (cap is not None and MAY[cap] <= MAY[key.cap])

    def last_owner(self, member: Member) -> bool:
        others = [
            other
            for other in (*self.members, self.operator)  # the operator also owns the first organisation
            if other is not member and other.here and other.organisation is member.organisation
        ]
        return member.roles.get(None) == "owner" and not any(o.roles.get(None) == "owner" for o in others)

    def living_projects(self) -> list[Project]:
        return [project for project in self.projects if project.here]

    # --- actions -----------------------------------------------------------------------------------------------------

    def add_member(self, key: Key, name: str, role: str, place: Project | None) -> None:
        home = place.organisation if place and self.acts_as_operator(key) else key.member.organisation
        allowed = self._gives(key, role, self._held(key, home, place))
        there = [m for m in self.members if m.organisation is home and m.name == name]
        taken = any(member.here for member in there) or (home.name == "operator" and name == "operator")

        def act() -> Member:
            actor = self.service.authenticate(key.secret)
            made = self.service.members.make(actor, name, Role(role), place.id if place else "")
            return Member(made.id, name, home, {place: role})

        made = self._agrees(key, act, allowed=allowed and not taken)
        if made is not None:
            if there:
                assert made.id == there[0].id, "a member added again keeps the id"
                self._replaced(there[0], made)
            else:
                self.members.append(made)

    def _replaced(self, old: Member, new: Member) -> None:
        old.roles, old.here, old.operator = new.roles, True, False

    def set_role(self, key: Key, member: Member, role: str | None, place: Project | None) -> None:
        held = self._held(key, member.organisation, place)
        before = member.roles.get(place)
        allowed = (
            self._may_change(key, member)
            and self._gives(key, role, held)
            and (before is None or self._gives(key, before, held))
            and not (place is None and role != "owner" and self.last_owner(member))
        )

        def act() -> bool:
            actor = self.service.authenticate(key.secret)
            self.service.members.set_role(
                actor, member.id, Role(role) if role else None, place.id if place else ""
            )
            return True

        if self._agrees(key, act, allowed=allowed):
            member.roles.pop(place, None)
            if role:
                member.roles[place] = role

    def remove_member(self, key: Key, member: Member) -> None:
        held = self.may_in_all(key, member.organisation)
        allowed = (
            self._may_change(key, member)
            and "member.write" in held
            and all(self._gives(key, role, held) for role in member.roles.values())
            and not self.last_owner(member)
            and not member.operator
        )

        def act() -> bool:
            self.service.members.remove(self.service.authenticate(key.secret), member.id)
            return True

        if self._agrees(key, act, allowed=allowed):
            member.here = False
            member.roles = {}
            for each in self.keys:
                each.revoked |= each.member is member

    def make_key(
        self, key: Key, member: Member, project: Project | None, cap: str | None, days: int | None
    ) -> Key | None:
        project_meant, cap_meant = project or key.project, cap or key.cap
        expires = self.clock.now() + timedelta(days=days) if days else key.expires
        allowed = (
            "key.write" in self.may_somewhere(key)
            and self._may_change(key, member)
            and (member is key.member or "member.write" in self.may_in_all(key, member.organisation))
            and (project is None or (project.here and project.organisation is member.organisation))
            and (project is None or bool(self.may_in(key, project)))
            and self._within(key, project_meant, cap_meant)
            and (key.expires is None or (expires is not None and expires <= key.expires))
        )

        def act() -> MadeKey:
            return self.service.keys.make(
                self.service.authenticate(key.secret),
                "a key",
                member=member.id,
                project=project.id if project else "",
                role_max=Role(cap) if cap else None,
                life=timedelta(days=days) if days else None,
            )

        made = self._agrees(key, act, allowed=allowed)
        if made is None:
            return None
        new = Key(made.key.id, made.secret, member, project_meant, cap_meant, expires)
        self.keys.append(new)
        return new

    def revoke(self, key: Key, target: Key) -> None:
        own = target.member is key.member
        allowed = (
            "key.write" in self.may_somewhere(key)
            and (own or "member.write" in self.may_in_all(key, target.member.organisation))
            and self._may_change(key, target.member)
            and self._within(key, target.project, target.cap)
        )

        def act() -> bool:
            self.service.keys.revoke(self.service.authenticate(key.secret), target.id)
            return True

        if self._agrees(key, act, allowed=allowed):
            target.revoked = True

    def make_project(self, key: Key, name: str) -> None:
        home = key.member.organisation
        taken = any(p.name == name and p.organisation is home for p in self.living_projects())
        taken |= home.name == "operator" and name == "default"
        allowed = "project.write" in self.may_in_all(key, home) and not taken

        def act() -> Project:
            made = self.service.projects.make(self.service.authenticate(key.secret), name)
            return Project(made.id, name, home)

        made = self._agrees(key, act, allowed=allowed)
        if made is not None:
            self.projects.append(made)

    def remove_project(self, key: Key, project: Project) -> None:
        allowed = project.here and "project.write" in self.may_in(key, project)

        def act() -> bool:
            self.service.projects.remove(self.service.authenticate(key.secret), project.id)
            return True

        if self._agrees(key, act, allowed=allowed):
            project.here = False
            for member in self.members:
                member.roles.pop(project, None)
            for each in self.keys:
                each.revoked |= each.project is project

    def _agrees(self, key: Key, act: Callable[[], T], *, allowed: bool) -> T | None:
        """Run the action, and check that it is refused exactly when the model says so."""
        try:
            result = act()
        except NotAuthenticated:
            assert not self.is_valid(key)
            return None
        except (Forbidden, NotFound, Conflict, Refused):
            assert self.is_valid(key)
            if allowed:  # the model allows it: show why the service does not
                raise
            return None
        assert self.is_valid(key)
        assert allowed, "the model does not allow it"
        return result

    def clean_up(self) -> None:
        """Release the networks: there are 2,048, and other worlds need some. Leave the installation, which all worlds
        share, unchanged."""
        operator = self.service.authenticate(self.service.operator_key().secret)
        self.service.members.set_role(operator, self.operator.id, Role.OWNER, "")
        for member in self.members:
            if member.here and member.organisation is self.operator.organisation:
                self.service.members.remove(operator, member.id)
        for project in self.living_projects():
            self.service.projects.remove(operator, project.id)

    # --- comparing -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        for key in self.keys:
            self._check_key(key)

    def _check_key(self, key: Key) -> None:
        try:
            actor = self.service.authenticate(key.secret)
        except NotAuthenticated:
            assert not self.is_valid(key)
            return
        assert self.is_valid(key)
        assert rules.anywhere(actor) == self.may_somewhere(key)
        seen: set[str] = set()
        for project in self.living_projects():
            found = self._reached(key, project)
            if found is not None:
                seen.add(project.id)
                assert rules.in_project(actor, found) == self.may_in(key, project)
        for organisation in self.organisations:
            held = rules.in_organisation(actor, OrganisationId(organisation.id))
            assert held == self.may_in_all(key, organisation)
        listed = {project.id for project in self.service.projects.page(actor, limit=ROWS)}
        own = {p.id for p in self.living_projects() if p.organisation is key.member.organisation}
        assert listed & {p.id for p in self.projects} == seen & own

    def _reached(self, key: Key, project: Project) -> model.Project | None:
        actor = self.service.authenticate(key.secret)
        try:
            found = self.service.projects.show(actor, project.id)
        except NotFound:
            assert not self.may_in(key, project)
            return None
        assert self.may_in(key, project)
        return found


def pick(things: Sequence[T], number: int) -> T:
    return things[number % len(things)]
