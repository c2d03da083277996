"""Permissions compared with a second table, and limits of keys compared with plain sets."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tenant.table import MAY, PERMISSIONS, ROLES

from teraflock.base.errors import Forbidden
from teraflock.tenant import rules
from teraflock.tenant.key.rules import key_within, within
from teraflock.tenant.model import Actor, KeyId, MemberId, OrganisationId, Project, ProjectId, Quota, Role
from teraflock.tenant.rules import Permission

NOW = datetime(2026, 11, 15, tzinfo=UTC)
HOME, ELSEWHERE = OrganisationId("org_home"), OrganisationId("org_elsewhere")
PLACES = ("", "prj_a", "prj_b")


def project(id: str, organisation: OrganisationId = HOME) -> Project:
    return Project(
        id=ProjectId(id),
        organisation_id=organisation,
        name=id.removeprefix("prj_"),
        quota=Quota(),
        network_number=0,
        created_at=NOW,
    )


times = st.none() | st.integers(1, 5).map(lambda days: NOW + timedelta(days=days))
caps = st.none() | st.sampled_from(Role)


@st.composite
def actors(draw: st.DrawFn, *, operator: bool | None = None) -> Actor:
    limited = draw(st.booleans())
    return Actor(
        key_id=KeyId("key_1"),
        member_id=MemberId("mem_1"),
        member_name="ann",
        organisation_id=HOME,
        is_operator=not limited and (draw(st.booleans()) if operator is None else operator),
        roles=draw(st.dictionaries(st.sampled_from(PLACES), st.sampled_from(Role))),
        project_id=draw(st.sampled_from(PLACES)) if limited else "",
        role_max=draw(caps) if limited else None,
        expires_at=draw(times),
    )


def test_roles_match_the_table() -> None:
    assert set(Permission) == set(PERMISSIONS)
    assert {role.value: set(held) for role, held in rules.PERMISSIONS.items()} == {
        role: MAY[role] for role in ROLES
    }
    assert MAY["operator"] == rules.OPERATOR


def test_billing_is_part_of_owner_but_not_of_viewer() -> None:
    assert not within(Role.BILLING, Role.VIEWER)
    assert not within(Role.VIEWER, Role.BILLING)
    assert within(Role.BILLING, Role.OWNER)
    assert within(Role.VIEWER, Role.MEMBER)
    assert within(Role.MEMBER, Role.OWNER)
    assert not within(None, Role.OWNER)


@given(actor=actors(), place=st.sampled_from(PLACES[1:]))
def test_permissions_in_a_project(actor: Actor, place: str) -> None:
    expected = set(MAY["operator"]) if actor.is_operator else set()
    if actor.project_id in ("", place):
        roles = {actor.roles.get(ProjectId("")), actor.roles.get(place)} - {None}
        own = set().union(*(MAY[str(role)] for role in roles))
        expected |= own & MAY[actor.role_max] if actor.role_max else own
    assert rules.in_project(actor, project(place)) == expected
    for permission in Permission:
        if permission in expected:
            rules.require(actor, permission, project(place))
        else:
            with pytest.raises(Forbidden):
                rules.require(actor, permission, project(place))


@given(actor=actors(operator=False), place=st.sampled_from(PLACES[1:]))
def test_no_permissions_in_another_organisation(actor: Actor, place: str) -> None:
    assert rules.in_project(actor, project(place, ELSEWHERE)) == set()
    assert rules.in_organisation(actor, ELSEWHERE) == set()


@given(actor=actors(), permission=st.sampled_from(Permission))
def test_permission_queries_are_consistent(actor: Actor, permission: Permission) -> None:
    """A permission in all projects is one in each and in some. `projects_with` lists exactly the projects with it."""
    places = [project(id) for id in PLACES[1:]]
    held_in = {place.id for place in places if permission in rules.in_project(actor, place)}
    in_all = permission in rules.in_organisation(actor, HOME)
    listed = rules.projects_with(actor, permission)
    assert (listed is None) == in_all
    if in_all:
        assert len(held_in) == len(places)
    if listed is not None:
        assert set(listed) == held_in
    assert (permission in rules.anywhere(actor)) == (in_all or bool(held_in))


@given(
    actor=actors(),
    project_id=st.sampled_from(PLACES),
    role_max=caps,
    expires_at=times,
    later=st.dictionaries(st.sampled_from(PLACES), st.sampled_from(Role)),
)
def test_a_key_within_a_key_never_has_more_permissions_whatever_roles_come_later(
    actor: Actor,
    project_id: str,
    role_max: Role | None,
    expires_at: datetime | None,
    later: dict[str, Role],
) -> None:
    if key_within(actor, project_id, role_max, expires_at) is not None:
        assert actor.project_id or actor.role_max or actor.expires_at, (
            "a key without limits may create any key"
        )
        return
    parent = _as(actor, later, actor.project_id, actor.role_max)
    child = _as(actor, later, project_id, role_max)
    for place in PLACES[1:]:
        assert rules.in_project(child, project(place)) <= rules.in_project(parent, project(place))
    assert rules.in_organisation(child, HOME) <= rules.in_organisation(parent, HOME)
    assert actor.expires_at is None or (expires_at is not None and expires_at <= actor.expires_at)


def _as(actor: Actor, roles: dict[str, Role], project_id: str, role_max: Role | None) -> Actor:
    return Actor(
        key_id=actor.key_id,
        member_id=actor.member_id,
        member_name=actor.member_name,
        organisation_id=actor.organisation_id,
        is_operator=False,
        roles=roles,
        project_id=project_id,
        role_max=role_max,
    )


@given(actor=actors())
def test_a_key_is_within_its_own_limits(actor: Actor) -> None:
    assert key_within(actor, actor.project_id, actor.role_max, actor.expires_at) is None


def test_exceeded_limits_are_described() -> None:
    limited = _as(_unlimited(), {}, "prj_a", Role.MEMBER)
    assert key_within(limited, "prj_b", Role.MEMBER, None) == "are limited to the same project"
    assert key_within(limited, "", Role.MEMBER, None) == "are limited to the same project"
    assert key_within(limited, "prj_a", Role.OWNER, None) == "have at most the role `member`"
    assert key_within(limited, "prj_a", None, None) == "have at most the role `member`"


def _unlimited() -> Actor:
    return Actor(
        key_id=KeyId("key_1"),
        member_id=MemberId("mem_1"),
        member_name="ann",
        organisation_id=HOME,
        is_operator=False,
        roles={"": Role.OWNER},
    )
