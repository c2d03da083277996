"""Security groups on both databases: acts, limits, launches that overlap with a deletion, and the loop."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, NotFound, Refused, TeraflockError
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance import launching
from teraflock.instance.orders import Order
from teraflock.network.checking import NetworkChecks
from teraflock.network.reach import Stop
from teraflock.network.security_group import service as acts
from teraflock.network.security_group import store
from teraflock.network.security_group.model import Direction, Protocol, Rule
from teraflock.network.security_group.rules import default_group
from teraflock.network.security_group.service import SecurityGroupService
from teraflock.network.walls import Packet, Walls, decide
from teraflock.reconcile.networks import NetworkLoop
from teraflock.reconcile.walls import WallLoop
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.service import TenantService


class Office:
    """A project with two instances, and the loop that loads its groups."""

    def __init__(self, database: Database) -> None:
        self.installation = Installation(
            database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
        )
        self.database = database
        self.groups = SecurityGroupService(
            database, self.installation.clock, random_bytes=self.installation.random_bytes
        )
        self.actor: Actor = self.installation.tenant.actor
        self.project: Project = self.installation.tenant.project
        self.around = self.installation.workers[0].around
        self.loop = WallLoop(self.around)

    def launch(self, name: str, *groups: str) -> str:
        made = self.installation.service.launch(
            self.actor, self.project, Order(name=name, security_groups=groups)
        )
        assert made[0].address is not None
        return made[0].address

    def allow(self, group: str, *words: str) -> Rule:
        return self.groups.allow(self.actor, self.project, group, *words)[1]

    def loaded(self) -> Walls:
        self.loop.turn()
        (engine,) = self.installation.engines
        assert isinstance(engine, SimulatedEngine)
        return engine.walls


@pytest.fixture
def office(database: Database) -> Office:
    return Office(database)


def test_new_instances_join_the_default_group_and_the_loop_loads_it(office: Office) -> None:
    web, db = office.launch("web"), office.launch("db")
    default = default_group(office.project.id, office.project.created_at)
    assert office.groups.all(office.project) == (default,)
    assert office.loaded() == Walls(
        groups={default.id: default.rules}, stations={web: (default.id,), db: (default.id,)}
    )


def test_changes_reach_the_engine_and_deleted_instances_leave(office: Office) -> None:
    office.groups.create(office.actor, office.project, "web")
    office.allow("web", "in", "tcp", "80", "0.0.0.0/0")
    web, db = office.launch("web", "web"), office.launch("db")
    outside = "198.51.100.2"
    assert decide(office.loaded(), Packet(outside, web, Protocol.TCP, 80)).passes
    assert not decide(office.loaded(), Packet(outside, web, Protocol.TCP, 22)).passes
    rule = office.allow("default", "in", "udp", "53", "sg:web")
    assert decide(office.loaded(), Packet(web, db, Protocol.UDP, 53)).passes
    office.groups.revoke(office.actor, office.project, "default", rule.id)
    assert not decide(office.loaded(), Packet(web, db, Protocol.UDP, 53)).passes
    office.groups.attach(office.actor, office.project, "web", "db")
    assert decide(office.loaded(), Packet(outside, db, Protocol.TCP, 80)).passes
    office.groups.detach(office.actor, office.project, "web", "db")
    assert not decide(office.loaded(), Packet(outside, db, Protocol.TCP, 80)).passes
    office.installation.service.delete(office.actor, office.project, "web")
    office.installation.settle()
    assert set(office.loaded().stations) == {db}
    NetworkLoop(office.around).turn()
    with office.database.read() as tx:
        assert not store.has_deleted_instances(tx)
        assert [row[1] for row in store.stations_in_all_projects(tx)] == [db]


def test_addresses_are_read_again_only_after_a_change(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    stations = store.stations_in_all_projects

    def counted(tx: Transaction) -> object:
        read.append(1)
        return stations(tx)

    monkeypatch.setattr(store, "stations_in_all_projects", counted)
    office.groups.create(office.actor, office.project, "web")
    web, db = office.launch("web", "default", "web"), office.launch("db")
    group = office.groups.show(office.project, "web").id
    assert {each for each, groups in office.loaded().stations.items() if group in groups} == {web}
    office.loaded()
    office.allow("web", "in", "tcp", "80", "0.0.0.0/0")
    office.loaded()
    assert len(read) == 1
    office.groups.attach(office.actor, office.project, "web", "db")  # as many members as before, but others
    office.groups.detach(office.actor, office.project, "web", "web")
    assert {each for each, groups in office.loaded().stations.items() if group in groups} == {db}
    assert len(read) == 2
    office.installation.wait(60)
    office.loaded()
    assert len(read) == 3, "once a minute in any case"


def test_a_group_in_use_and_the_default_group_stay(office: Office) -> None:
    def delete(name: str) -> None:
        office.groups.delete(office.actor, office.project, name)

    for name in ("web", "db"):
        office.groups.create(office.actor, office.project, name)
    office.launch("one", "web")
    office.allow("db", "in", "tcp", "5432", "sg:web")
    with pytest.raises(Conflict, match="is in use by `one`"):
        delete("web")
    office.installation.service.delete(office.actor, office.project, "one")
    office.installation.settle()
    with pytest.raises(Conflict, match="Rules of `db` name the security group `web`"):
        delete("web")
    delete("db")
    delete("web")
    with pytest.raises(Refused, match="cannot be deleted"):
        delete("default")
    with pytest.raises(NotFound):
        delete("web")
    assert [each.name for each in office.groups.all(office.project)] == ["default"]


def test_limits_hold(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROUPS_MAX", "RULES_MAX", "GROUPS_PER_INSTANCE_MAX"):
        monkeypatch.setattr(acts, name, 2)

    def create(name: str) -> None:
        office.groups.create(office.actor, office.project, name)

    create("one")
    with pytest.raises(Refused, match="can have at most 2 security groups"):
        create("two")
    office.allow("one", "in", "tcp", "80", "0.0.0.0/0")
    office.allow("one", "in", "tcp", "80", "0.0.0.0/0")  # safe to run again
    with pytest.raises(Refused, match="can have at most 2 rules"):
        office.allow("one", "in", "tcp", "81", "0.0.0.0/0")
    monkeypatch.setattr(acts, "GROUPS_MAX", 9)
    create("three")
    office.launch("a", "one", "default")
    with pytest.raises(Refused, match="can be in at most 2 security groups"):
        office.groups.attach(office.actor, office.project, "three", "a")
    with pytest.raises(BadInput, match="can be in at most 2 security groups, not 3"):
        office.launch("b", "one", "default", "three")


def test_a_launch_into_an_unknown_group_makes_nothing(office: Office) -> None:
    with pytest.raises(NotFound, match="There is no security group `wbe`"):
        office.launch("a", "wbe")
    assert office.installation.service.page(office.project.id, limit=9) == ()


def test_the_last_group_of_an_instance_stays(office: Office) -> None:
    office.launch("a")
    with pytest.raises(Refused, match="is the only security group of `a`"):
        office.groups.detach(office.actor, office.project, "default", "a")


def test_other_projects_are_out_of_reach(office: Office) -> None:
    tenants = TenantService(office.database, office.installation.clock, office.installation.random_bytes)
    other = tenants.projects.make(office.actor, "other")
    made = office.groups.create(office.actor, other, "theirs")
    office.launch("mine")
    for ref in ("theirs", made.id):
        with pytest.raises(NotFound):
            office.groups.show(office.project, ref)
        with pytest.raises(NotFound):
            office.groups.attach(office.actor, office.project, ref, "mine")
    with pytest.raises(NotFound):
        office.groups.attach(office.actor, other, "theirs", "mine")
    with pytest.raises(BadInput, match="Unknown security group"):
        office.allow("default", "in", "tcp", "80", "sg:theirs")
    with pytest.raises(BadInput, match="is not a network"):
        office.allow("default", "in", "tcp", "80", made.id)


def test_a_group_is_not_deleted_under_a_launch(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion begins when the launch has checked its groups, and must not leave it without one."""
    office.groups.create(office.actor, office.project, "web")
    checked, is_done = threading.Event(), threading.Event()
    set_aside = launching._set_aside

    def slowly(*words: Any) -> Any:
        checked.set()
        is_done.wait(0.5)
        return set_aside(*words)

    monkeypatch.setattr(launching, "_set_aside", slowly)

    def delete() -> None:
        assert checked.wait(60)
        try:
            office.groups.delete(office.actor, office.project, "web")
        finally:
            is_done.set()

    with ThreadPoolExecutor() as pool:
        launch, deletion = pool.submit(office.launch, "a", "web"), pool.submit(delete)
        assert isinstance(deletion.exception(), Conflict)
        address = launch.result()
    assert office.loaded().stations[address] != ()


def test_concurrent_acts_leave_whole_groups(office: Office) -> None:
    """Two members add rules to one group at once: none is lost, and each is there once."""

    def add(number: int) -> None:
        office.allow("default", "in", "tcp", str(1000 + number % 10), "10.0.0.0/8")

    with ThreadPoolExecutor(4) as pool:
        errors = [done for done in pool.map(_error_of, [lambda n=n: add(n) for n in range(40)]) if done]
    assert errors == []
    rules = office.groups.show(office.project, "default").rules
    assert sorted(each.port_first for each in rules if each.peer == "10.0.0.0/8") == list(range(1000, 1010))
    assert len([each for each in rules if each.direction == Direction.OUT]) == 1


def _error_of(work: Any) -> TeraflockError | None:
    try:
        work()
    except TeraflockError as error:
        return error
    return None


def test_an_instance_called_internet_is_not_the_internet(office: Office) -> None:
    web, odd = office.launch("web"), office.launch("internet")
    networks = NetworkChecks(office.database)
    from_outside = networks.check(office.project, "internet", "web", "tcp", "80")
    assert from_outside.reach.stop == Stop.UNPUBLISHED
    assert networks.check(office.project, odd, web, "tcp", "80").reach.stop is None
    names, edges = networks.graph(office.project)
    assert names == ("internet", "internet", "web")
    assert len([each for each in edges if each.target == "web"]) == 2


def test_a_hint_about_an_instance_called_internet_does_not_open_the_group_to_everyone(office: Office) -> None:
    office.groups.create(office.actor, office.project, "closed")
    office.launch("web", "closed")
    odd = office.launch("internet")
    networks = NetworkChecks(office.database)
    found = networks.check(office.project, odd, "web", "tcp", "80")
    assert found.reach.stop == Stop.IN
    assert found.hint == f"Allow it with `tera sg allow closed --in --protocol tcp --port 80 --from {odd}`"
    from_outside = networks.check(office.project, "internet", odd, "tcp", "22")
    assert from_outside.reach.stop is None
