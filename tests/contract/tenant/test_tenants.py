"""Tenants on both databases: one installation, unique networks, always an owner, and an audit row for every action."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from os import urandom
from random import Random
from threading import Barrier, Thread
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from tests.unit.tenant.keys_machine import machine_on
from tests.unit.tenant.ticking import TickingClock

from teraflock.base.clock import FixedClock
from teraflock.base.errors import (
    BadInput,
    Conflict,
    Forbidden,
    NotAuthenticated,
    NotFound,
    Refused,
    TeraflockError,
)
from teraflock.network import service as networks
from teraflock.network import store as network_store
from teraflock.storage.database import Database
from teraflock.tenant import rules
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import Actor, OrganisationId, OrganisationQuota, Quota, Role
from teraflock.tenant.project.store import NO_NETWORK
from teraflock.tenant.rules import Permission
from teraflock.tenant.service import TenantService

T = TypeVar("T")
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FixedClock:
    return TickingClock(NOW)


@pytest.fixture
def service(database: Database, clock: FixedClock) -> TenantService:
    return TenantService(database, clock, Random(7).randbytes)


@pytest.fixture
def operator(service: TenantService) -> Actor:
    secret = service.install().secret
    assert secret is not None
    return service.authenticate(secret)


@pytest.fixture
def ann(service: TenantService, operator: Actor) -> Actor:
    """The owner of an organisation."""
    return service.authenticate(service.organisations.make(operator, "acme", "ann").key.secret)


@pytest.fixture
def eve(service: TenantService, operator: Actor) -> Actor:
    """The owner of another one."""
    return service.authenticate(service.organisations.make(operator, "other", "eve").key.secret)


def actor_of(service: TenantService, owner: Actor, name: str, role: Role, project: str = "") -> Actor:
    service.members.make(owner, name, role, project)
    return service.authenticate(service.keys.make(owner, "a key", member=name).secret)


def at_once(works: list[Callable[[], T]]) -> list[T | TeraflockError]:
    """The result or error of each work. All start at the same moment."""
    barrier = Barrier(len(works))
    results: list[T | TeraflockError | None] = [None] * len(works)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = works[index]()
        except TeraflockError as error:
            results[index] = error

    threads = [Thread(target=run, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [result for result in results if result is not None]


def test_keys_have_the_permissions_of_the_model(database: Database) -> None:
    run_state_machine_as_test(
        machine_on(database), settings=settings(max_examples=8, stateful_step_count=15, deadline=None)
    )


# --- the installation ----------------------------------------------------------------------------------------------


def test_an_installation_is_created_once(service: TenantService) -> None:
    first = service.install()
    again = service.install()
    assert again.installation_id == first.installation_id
    assert again.secret is None
    assert first.secret is not None
    operator = service.authenticate(first.secret)
    assert operator.is_operator
    assert service.organisations.own(operator).name == "operator"
    assert service.projects.show(operator, None).name == "default"


def test_two_servers_that_start_at_once_create_one_installation(service: TenantService) -> None:
    made = at_once([service.install] * 4)
    assert len({each.installation_id for each in made if not isinstance(each, TeraflockError)}) == 1
    assert [each.secret is None for each in made if not isinstance(each, TeraflockError)].count(False) == 1
    assert len(made) == 4


def test_a_lost_operator_key_can_be_replaced_with_access_to_the_database(service: TenantService) -> None:
    service.install()
    assert service.authenticate(service.operator_key().secret).is_operator


# --- visibility ----------------------------------------------------------------------------------------------------


def test_only_operators_see_organisations(service: TenantService, operator: Actor, ann: Actor) -> None:
    assert [each.name for each in service.organisations.page(operator, limit=9)] == ["operator", "acme"]
    with pytest.raises(Forbidden):
        service.organisations.page(ann, limit=9)
    with pytest.raises(Forbidden):
        service.organisations.make(ann, "mine", "ann")
    with pytest.raises(Forbidden):
        service.organisations.show(ann, operator.organisation_id)


def test_tenants_cannot_see_other_organisations(service: TenantService, ann: Actor, eve: Actor) -> None:
    """Things of other tenants and things that do not exist get the same error."""
    project = service.projects.make(ann, "secret")
    member = service.members.make(ann, "bob", Role.MEMBER)
    key = service.keys.make(ann, "hers").key
    asked: list[tuple[Callable[[str], object], str, str]] = [
        (lambda ref: service.projects.show(eve, ref), project.id, "prj_0000000000000000"),
        (lambda ref: service.projects.show(eve, ref), "secret", "nothing"),
        (lambda ref: service.projects.remove(eve, ref), project.id, "prj_0000000000000000"),
        (lambda ref: service.projects.set_quota(eve, ref, Quota()), project.id, "prj_0000000000000000"),
        (lambda ref: service.members.remove(eve, ref), member.id, "mem_0000000000000000"),
        (lambda ref: service.members.set_role(eve, ref, Role.OWNER), member.id, "mem_0000000000000000"),
        (lambda ref: service.members.make(eve, "zoe", Role.VIEWER, ref), project.id, "prj_0000000000000000"),
        (lambda ref: service.keys.make(eve, "k", member=ref), member.id, "mem_0000000000000000"),
        (lambda ref: service.keys.make(eve, "k", project=ref), project.id, "prj_0000000000000000"),
        (lambda ref: service.keys.revoke(eve, ref), key.id, "key_0000000000000000"),
    ]
    for ask, theirs, nowhere in asked:
        with pytest.raises(NotFound) as refused:
            ask(theirs)
        with pytest.raises(NotFound) as empty:
            ask(nowhere)
        assert (refused.value.sentence, refused.value.hint) == (empty.value.sentence, empty.value.hint)
    for page in (service.projects.page, service.members.page, service.audit):
        with pytest.raises(Forbidden):
            page(eve, organisation=ann.organisation_id, limit=9)
    seen = str(
        [service.projects.page(eve, limit=9), service.members.page(eve, limit=9), service.audit(eve, limit=9)]
    )
    assert ann.organisation_id not in seen
    assert service.projects.make(eve, "secret").name == "secret", "a name taken elsewhere is free here"


def test_a_member_of_one_project_sees_only_that_project(service: TenantService, ann: Actor) -> None:
    lab, office = service.projects.make(ann, "lab"), service.projects.make(ann, "office")
    bob = actor_of(service, ann, "bob", Role.VIEWER, "lab")
    service.members.make(ann, "carl", Role.MEMBER, "office")
    service.members.make(ann, "dora", Role.MEMBER, "lab")
    service.members.set_role(ann, "dora", Role.VIEWER, "office")
    assert service.projects.page(bob, limit=9) == (lab,)
    assert service.projects.show(bob, None) == lab
    members = {member.name: dict(member.roles) for member in service.members.page(bob, limit=9)}
    assert members == {"ann": {"": "owner"}, "bob": {lab.id: "viewer"}, "dora": {lab.id: "member"}}
    assert {row.project_id for row in service.audit(bob, limit=50)} == {lab.id}
    with pytest.raises(NotFound):
        service.projects.show(bob, office.id)
    with pytest.raises(NotFound):
        service.projects.show(bob, "default")
    assert [key.member_id for key in service.keys.page(bob, limit=9)] == [bob.member_id]


def test_the_default_project_of_a_request(service: TenantService, ann: Actor) -> None:
    assert service.projects.show(ann, None).name == "default"
    lab, office = service.projects.make(ann, "lab"), service.projects.make(ann, "office")
    assert service.projects.show(ann, None).name == "default"
    assert service.projects.show(ann, "lab") == service.projects.show(ann, lab.id) == lab
    bob = actor_of(service, ann, "bob", Role.VIEWER, "lab")
    service.members.set_role(ann, "bob", Role.MEMBER, "office")
    bob = service.authenticate(service.keys.make(ann, "a key", member="bob").secret)
    with pytest.raises(NotFound, match="Several projects are possible"):
        service.projects.show(bob, None)
    narrow = service.authenticate(service.keys.make(bob, "for the office", project="office").secret)
    assert service.projects.show(narrow, None) == office
    service.projects.remove(ann, "default")
    with pytest.raises(NotFound, match="Several projects are possible"):
        service.projects.show(ann, None)


def test_an_operator_can_access_every_project_but_no_instance(
    service: TenantService, operator: Actor, ann: Actor
) -> None:
    lab = service.projects.make(ann, "lab")
    assert service.projects.show(operator, lab.id) == lab
    service.require(operator, Permission.QUOTA_WRITE, lab)
    with pytest.raises(Forbidden):
        service.require(operator, Permission.INSTANCE_ENTER, lab)
    quota = Quota(instances=3, gpus={"a100-80": 2}, gpus_default=0)
    assert service.projects.set_quota(operator, lab.id, quota).quota == quota
    assert service.projects.show(ann, "lab").quota == quota
    changed = service.audit(ann, limit=1)[0]
    assert (changed.action, changed.member_id, changed.subject) == ("quota.set", operator.member_id, lab.id)
    assert changed.details == {"instances": 3, "gpus.a100-80": 2, "gpus_default": 0}


# --- keys ----------------------------------------------------------------------------------------------------------


def test_all_invalid_keys_get_the_same_error(service: TenantService, clock: FixedClock, ann: Actor) -> None:
    expiring = service.keys.make(ann, "short", life=timedelta(days=1)).secret
    revoked = service.keys.make(ann, "gone")
    service.keys.revoke(ann, revoked.key.id)
    service.members.make(ann, "bob", Role.MEMBER)
    removed = service.keys.make(ann, "bob's", member="bob").secret
    service.members.remove(ann, "bob")
    assert service.authenticate(expiring).member_id == ann.member_id
    clock.move(timedelta(days=1))
    living = service.keys.make(ann, "living").secret
    assert service.authenticate(living).member_id == ann.member_id
    wrong = living[:-1] + ("0" if living[-1] != "0" else "1")
    errors = set()
    for secret in (
        "",
        "tera",
        "x" * 10_000,
        expiring,
        revoked.secret,
        removed,
        wrong,
        "tera_" + "0" * 16 + "_" + "0" * 64,
    ):
        with pytest.raises(NotAuthenticated) as error:
            service.authenticate(secret)
        errors.add((error.value.sentence, error.value.hint))
    assert len(errors) == 1


def test_secrets_are_not_stored(database: Database, service: TenantService, ann: Actor) -> None:
    secret = service.keys.make(ann, "mine").secret
    with database.read() as tx:
        kept = str(
            [
                tx.all("SELECT id, member_id, name, digest, project_id, role_max FROM api_key"),
                tx.all("SELECT id, subject, details FROM audit"),
                tx.all("SELECT subject, details FROM event"),
            ]
        )
    assert secret not in kept
    assert secret.rpartition("_")[2] not in kept


def test_a_limited_key_creates_only_keys_within_its_limits(service: TenantService, ann: Actor) -> None:
    lab = service.projects.make(ann, "lab")
    made = service.keys.make(ann, "ci", project="lab", role_max=Role.MEMBER, life=timedelta(days=10))
    ci = service.authenticate(made.secret)
    child = service.keys.make(ci, "job")
    assert (child.key.project_id, child.key.role_max) == (lab.id, Role.MEMBER)
    assert child.key.expires_at == made.key.expires_at
    for wider in ({"role_max": Role.OWNER}, {"role_max": Role.BILLING}, {"life": timedelta(days=11)}):
        with pytest.raises(Forbidden, match="may only create keys that"):
            service.keys.make(ci, "wide", **wider)
    with pytest.raises(NotFound):
        service.keys.make(ci, "wide", project="default")
    with pytest.raises(Forbidden, match="its own member"):
        service.keys.make(ci, "wide", member=service.members.make(ann, "bob", Role.VIEWER).id)
    with pytest.raises(Forbidden, match="wider limits"):
        service.keys.revoke(ci, ann.key_id)
    service.keys.revoke(ci, made.key.id)
    with pytest.raises(NotAuthenticated):
        service.authenticate(made.secret)


def test_a_role_granted_later_does_not_widen_a_limited_key(service: TenantService, ann: Actor) -> None:
    bob = actor_of(service, ann, "bob", Role.MEMBER)
    narrow = service.keys.make(bob, "narrow", role_max=Role.MEMBER).secret
    child = service.keys.make(service.authenticate(narrow), "child").secret
    service.members.set_role(ann, "bob", Role.OWNER)
    for secret in (narrow, child):
        held = rules.in_organisation(service.authenticate(secret), bob.organisation_id)
        assert held == rules.PERMISSIONS[Role.MEMBER]


def test_a_limited_key_of_an_operator_is_not_an_operator_key(
    service: TenantService, operator: Actor, ann: Actor
) -> None:
    for limits in ({"role_max": Role.OWNER}, {"project": "default"}):
        actor = service.authenticate(service.keys.make(operator, "limited", **limits).secret)
        assert not actor.is_operator
        with pytest.raises(NotFound):
            service.projects.show(actor, service.projects.show(ann, None).id)


def test_owners_of_the_first_organisation_are_not_operators(service: TenantService, operator: Actor) -> None:
    """They cannot become operators with a key for the operator, nor remove the operator."""
    paul = actor_of(service, operator, "paul", Role.OWNER)
    for act in (
        lambda: service.keys.make(paul, "k", member="operator"),
        lambda: service.keys.make(paul, "k", member="operator", role_max=Role.VIEWER),
        lambda: service.keys.revoke(paul, operator.key_id),
        lambda: service.members.remove(paul, "operator"),
        lambda: service.members.set_role(paul, "operator", Role.VIEWER),
        lambda: service.organisations.page(paul, limit=9),
    ):
        with pytest.raises(Forbidden):
            act()
    with pytest.raises(Refused, match="last operator"):
        service.members.remove(operator, "operator")


def test_a_removed_operator_who_is_added_again_is_not_an_operator(
    database: Database, service: TenantService, operator: Actor
) -> None:
    paul = service.members.make(operator, "paul", Role.MEMBER)
    database.write(lambda tx: tx.run("UPDATE member SET is_operator = 1 WHERE id = :id", id=paul.id))
    assert service.authenticate(service.keys.make(operator, "k", member="paul").secret).is_operator
    service.members.remove(operator, "paul")
    service.members.make(operator, "paul", Role.MEMBER)
    assert not service.authenticate(service.keys.make(operator, "k", member="paul").secret).is_operator


@pytest.mark.parametrize("life", [timedelta(), timedelta(days=-1), timedelta(days=4000)])
def test_invalid_key_lifetimes_are_refused(service: TenantService, ann: Actor, life: timedelta) -> None:
    with pytest.raises(BadInput):
        service.keys.make(ann, "odd", life=life)


# --- members -------------------------------------------------------------------------------------------------------


def test_an_organisation_always_has_an_owner(service: TenantService, ann: Actor) -> None:
    acts: list[Callable[[], object]] = [
        lambda: service.members.remove(ann, "ann"),
        lambda: service.members.set_role(ann, "ann", Role.MEMBER),
        lambda: service.members.set_role(ann, "ann", None),
    ]
    for act in acts:
        with pytest.raises(Refused, match="last owner"):
            act()
    service.members.make(ann, "bob", Role.OWNER, "default")  # an owner of one project is not enough
    with pytest.raises(Refused, match="last owner"):
        service.members.remove(ann, "ann")
    service.members.set_role(ann, "bob", Role.OWNER)
    assert service.members.remove(ann, "ann").removed_at is not None


def test_two_owners_who_remove_each_other_at_once_leave_one_owner(
    database: Database, service: TenantService, operator: Actor
) -> None:
    for number in range(6):
        made = service.organisations.make(operator, f"pair-{number}", "ann")
        ann = service.authenticate(made.key.secret)
        bob = actor_of(service, ann, "bob", Role.OWNER)
        results = at_once(
            [
                partial(service.members.remove, ann, "bob"),
                partial(service.members.set_role, bob, "ann", Role.VIEWER),
            ]
        )
        done = [result for result in results if not isinstance(result, TeraflockError)]
        left = service.members.page(operator, organisation=made.organisation.id, limit=9)
        assert "owner" in [member.roles.get("") for member in left]
        assert len(done) in (1, 2)
        assert len(done) == 1 or "bob" not in [member.name for member in left]


def test_a_member_added_again_has_no_old_roles_or_keys(service: TenantService, ann: Actor) -> None:
    bob = service.members.make(ann, "bob", Role.OWNER)
    service.members.set_role(ann, "bob", Role.OWNER, "default")
    secret = service.keys.make(ann, "old", member="bob").secret
    service.members.remove(ann, "bob")
    again = service.members.make(ann, "bob", Role.BILLING)
    assert again.id == bob.id
    assert again.roles == {"": Role.BILLING}
    assert service.members.page(ann, limit=9)[1] == again
    with pytest.raises(NotAuthenticated):
        service.authenticate(secret)
    with pytest.raises(Conflict):
        service.members.make(ann, "bob", Role.OWNER)


def test_an_owner_of_one_project_has_no_rights_elsewhere(service: TenantService, ann: Actor) -> None:
    service.projects.make(ann, "lab")
    bob = actor_of(service, ann, "bob", Role.OWNER, "lab")
    service.members.make(bob, "carl", Role.OWNER, "lab")
    service.members.set_role(bob, "ann", Role.VIEWER, "lab")  # in addition to owner of everything
    for act in (
        lambda: service.members.make(bob, "dora", Role.VIEWER),
        lambda: service.members.set_role(bob, "carl", Role.VIEWER),
        lambda: service.members.remove(bob, "carl"),
        lambda: service.keys.make(bob, "k", member="carl"),
        lambda: service.projects.make(bob, "mine"),
    ):
        with pytest.raises(Forbidden):
            act()
    with pytest.raises(NotFound):
        service.members.make(bob, "dora", Role.VIEWER, "default")
    service.projects.remove(bob, "lab")


# --- projects ------------------------------------------------------------------------------------------------------


def numbered(database: Database, service: TenantService, actor: Actor, name: str) -> int:
    """The network number that a project gets with its first instance."""
    project = service.projects.show(actor, name)
    (made,) = database.write_with_locks(
        lambda tx: networks.layouts_to_launch(tx, actor, project, NOW, urandom, with_default=True)
    )
    return made.network.number


def test_a_project_without_instances_has_no_network(
    database: Database, service: TenantService, ann: Actor
) -> None:
    assert service.projects.make(ann, "lab").network_number == NO_NETWORK
    assert service.projects.make(ann, "hall").network_number == NO_NETWORK
    number = numbered(database, service, ann, "lab")
    assert service.projects.show(ann, "lab").network_number == number == 0
    assert numbered(database, service, ann, "lab") == number, "a project keeps its network"


def test_networks_never_collide(database: Database, service: TenantService, ann: Actor, eve: Actor) -> None:
    for actor in (ann, eve):
        for number in range(6):
            service.projects.make(actor, f"p{number}")

    def first_launch(actor: Actor, name: str) -> Callable[[], int]:
        return lambda: numbered(database, service, actor, name)

    results = at_once([first_launch(actor, f"p{number}") for actor in (ann, eve) for number in range(6)])
    assert sorted(result for result in results if isinstance(result, int)) == list(range(12))


def test_the_lowest_free_network_is_used_and_the_last_are_reserved(
    database: Database,
    service: TenantService,
    operator: Actor,
    ann: Actor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(6):
        service.projects.make(ann, f"p{number}")
    assert [numbered(database, service, ann, f"p{number}") for number in range(3)] == [0, 1, 2]
    removed = service.projects.remove(ann, "p1")
    assert numbered(database, service, ann, "p3") == 3, (
        "a number is free only after engines removed the network"
    )
    with database.read() as tx:
        ((gone, with_project),) = network_store.removed_in_all_projects(tx)
    assert (gone.project_id, with_project) == (removed.id, True)
    database.write(lambda tx: network_store.forget(tx, gone, with_project=True))
    assert numbered(database, service, ann, "p4") == 1
    monkeypatch.setattr(networks, "NETWORKS_MAX", 5)
    monkeypatch.setattr(networks, "NETWORKS_KEPT", 1)
    with pytest.raises(Refused, match="All 5 networks"):
        numbered(database, service, ann, "p5")
    assert numbered(database, service, operator, "default") == 4


def test_concurrent_requests_for_one_name_give_it_to_one(
    service: TenantService, operator: Actor, ann: Actor
) -> None:
    acts: list[Callable[[], object]] = [
        lambda: service.projects.make(ann, "lab"),
        lambda: service.members.make(ann, "bob", Role.VIEWER),
        lambda: service.organisations.make(operator, "firm", "zoe"),
    ]
    for act in acts:
        results = at_once([act] * 5)
        assert len([result for result in results if isinstance(result, Conflict)]) == 4, results


def test_a_project_that_is_not_empty_cannot_be_removed(
    database: Database, service: TenantService, ann: Actor
) -> None:
    lab = service.projects.make(ann, "lab")
    database.write(
        lambda tx: tx.run(
            "INSERT INTO image (id, project_id, name, recipe, state, problem, size_bytes, source_instance_id,"
            " created_at_us) VALUES ('img_1', :project, 'mine', '', 'ready', '', 1, '', 0)",
            project=lab.id,
        )
    )
    with pytest.raises(Refused, match="still has 0 instances and 1 image"):
        service.projects.remove(ann, "lab")
    assert service.projects.show(ann, "lab") == lab


def test_removing_a_project_removes_its_roles_and_keys(service: TenantService, ann: Actor) -> None:
    lab = service.projects.make(ann, "lab")
    bob = actor_of(service, ann, "bob", Role.MEMBER, "lab")
    scoped = service.keys.make(ann, "for the lab", project="lab").secret
    wide = service.keys.make(bob, "bob's").secret
    service.projects.remove(ann, "lab")
    with pytest.raises(NotAuthenticated):
        service.authenticate(scoped)
    assert service.authenticate(wide).roles == {}
    with pytest.raises(NotFound):
        service.projects.show(ann, lab.id)
    assert service.projects.make(ann, "lab").id != lab.id


# --- the audit log, and pages --------------------------------------------------------------------------------------


def test_every_successful_action_has_one_audit_row(
    service: TenantService, clock: FixedClock, operator: Actor
) -> None:
    ann = service.authenticate(service.organisations.make(operator, "acme", "ann").key.secret)
    lab = service.projects.make(ann, "lab")
    bob = service.members.make(ann, "bob", Role.MEMBER, "lab")
    service.members.set_role(ann, "bob", Role.VIEWER, "lab")
    key = service.keys.make(ann, "bob's", member="bob", role_max=Role.VIEWER).key
    service.keys.revoke(ann, key.id)
    service.keys.revoke(ann, key.id)  # revoking again changes nothing
    service.projects.set_quota(operator, lab.id, Quota(vcpus=8))
    service.members.remove(ann, "bob")
    service.projects.remove(ann, "lab")
    for act in (
        lambda: service.projects.make(ann, "default"),
        lambda: service.members.remove(ann, "ann"),
        lambda: service.organisations.set_quota(ann, ann.organisation_id, OrganisationQuota(vcpus=8)),
    ):
        with pytest.raises(TeraflockError):
            act()
    rows = {row.id: row for row in service.audit(ann, limit=50)}
    assert sorted(
        (row.action, row.subject, row.project_id, row.member_id) for row in rows.values()
    ) == sorted(
        [
            ("organisation.make", ann.organisation_id, "", operator.member_id),
            ("project.make", lab.id, lab.id, ann.member_id),
            ("member.make", bob.id, lab.id, ann.member_id),
            ("member.set_role", bob.id, lab.id, ann.member_id),
            ("key.make", key.id, "", ann.member_id),
            ("key.revoke", key.id, "", ann.member_id),
            ("quota.set", lab.id, lab.id, operator.member_id),
            ("member.remove", bob.id, "", ann.member_id),
            ("project.remove", lab.id, lab.id, ann.member_id),
        ]
    )
    changed = next(row for row in rows.values() if row.action == "member.set_role")
    assert changed.details == {"role": "viewer", "before": "member"}
    assert changed.key_id == ann.key_id
    assert NOW < changed.at < clock.now()


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 9))
def test_pages_contain_every_item_once(service: TenantService, limit: int) -> None:
    service.install()
    operator = service.authenticate(service.operator_key().secret)
    name = (
        f"o{len(list(_walked(lambda after: service.organisations.page(operator, after=after, limit=200))))}"
    )
    made = service.organisations.make(operator, name, "ann")
    ann = service.authenticate(made.key.secret)
    for number in range(6):
        service.projects.make(ann, f"p{number}")
        service.members.make(ann, f"m{number}", Role.VIEWER)
        service.keys.make(ann, f"k{number}")
    pages: list[tuple[Callable[[str], tuple[object, ...]], int, bool]] = [
        (lambda after: service.projects.page(ann, after=after, limit=limit), 7, False),
        (lambda after: service.members.page(ann, after=after, limit=limit), 7, False),
        (lambda after: service.keys.page(ann, after=after, limit=limit), 7, False),
        (lambda after: service.audit(ann, after=after, limit=limit), 19, True),
    ]
    for page, expected, newest_first in pages:
        ids = list(_walked(page))
        assert len(set(ids)) == len(ids) == expected
        assert ids == sorted(ids, reverse=newest_first)
    for project in service.projects.page(ann, limit=200):
        service.projects.remove(operator, project.id)


def _walked(page: Callable[[str], tuple[object, ...]]) -> Iterator[str]:
    after = ""
    while found := [str(getattr(each, "id", "")) for each in page(after)]:
        yield from found
        after = found[-1]


def test_other_nouns_write_audit_rows(
    database: Database, clock: FixedClock, service: TenantService, ann: Actor, operator: Actor
) -> None:
    project, audit = service.projects.show(ann, None), Audit(clock)
    database.write(lambda tx: audit.record(tx, operator, "instance.stop", "ins_1", project, forced=True))
    row = service.audit(ann, limit=1)[0]
    assert (row.action, row.subject, row.project_id, row.details) == (
        "instance.stop", "ins_1", project.id, {"forced": True},
    )  # fmt: skip
    assert row.organisation_id == OrganisationId(ann.organisation_id)
