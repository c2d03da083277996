"""Copies of disks on another site: made on a schedule, used when a host is lost, removed with their instances."""

from datetime import timedelta

import pytest
from tests.contract.instance.test_many_sites import Two, guests, look
from tests.long import sampled

from teraflock.drivers.simulated.faults import Killed, Kind, SimulatedFault, When
from teraflock.fleet import store as fleet
from teraflock.instance.bid.rules import noticed
from teraflock.instance.copy import store as copies
from teraflock.instance.copy.model import DiskCopy
from teraflock.instance.copy.states import CopyState
from teraflock.instance.driver import Handle
from teraflock.instance.model import Instance, RestartPolicy
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.reconcile.copying import CopyLoop
from teraflock.reconcile.moving import move
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService

EVERY = timedelta(hours=1)
FILE = "/root/work"


class Ground(Two):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.add()
        self.installation.settle()

    def copying(self, every: timedelta = EVERY) -> None:
        CopyLoop(self.installation.workers[0].around, every).turn()

    def copies(self) -> tuple[DiskCopy, ...]:
        with self.installation.database.read() as tx:
            return copies.all_in_all_projects(tx)

    def launched(self, policy: RestartPolicy = RestartPolicy.ELSEWHERE) -> Instance:
        made = self.launch(Order(name="one", site="second", restart_policy=policy))
        self.installation.settle()
        return self.now(made)

    def now(self, instance: Instance) -> Instance:
        return self.installation.service.view(instance.project_id, instance.id).instance

    def write(self, instance: Instance, text: str) -> None:
        driver = self.installation.engines.at(instance.site)
        done = driver.run(self.handle(instance), ["tee", FILE], stdin=text.encode(), seconds_max=1)
        assert done.exit_code == 0, done

    def read(self, instance: Instance) -> str:
        with self.installation.engines.at(instance.site).file(self.handle(instance), FILE) as found:
            return b"".join(found.content or ()).decode()

    def handle(self, instance: Instance) -> Handle:
        with self.installation.database.read() as tx:
            host = fleet.host(tx, instance.host_id or "")
        assert host
        return Handle(instance.id, host.name)

    def kept(self) -> list[str]:
        """Copies on the engines."""
        found = [*self.installation.engine.images(), *self.second.images()]
        return sorted(id for id in found if id.startswith("cpy"))

    def lose(self, instance: Instance) -> Instance:
        self.trouble.engine_goes_down()
        look(self, minutes=8)
        return self.now(instance)


@pytest.fixture
def ground(database: Database) -> Ground:
    return Ground(database)


def test_an_instance_comes_back_from_its_last_copy(ground: Ground) -> None:
    made = ground.launched()
    ground.write(made, "first")
    ground.copying()
    ground.write(made, "second")
    ground.copying()
    (copy,) = ground.copies()
    assert (copy.state, copy.site, ground.kept()) == (CopyState.READY, "simulated", [copy.id])
    assert ground.now(made).held.snapshots_bytes == copy.size_bytes > 0
    ground.installation.wait(EVERY.total_seconds())
    ground.installation.settle()
    ground.write(made, "third")
    ground.copying()
    (newer,) = ground.copies()[-1:]
    assert newer.id != copy.id
    ground.write(made, "lost")
    after = ground.lose(made)
    assert (after.phase, after.site) == (Phase.RUNNING, "simulated")
    assert ground.read(after) == "third"
    assert f"from the copy of its disk of {newer.made_at:%Y-%m-%d %H:%M} UTC" in after.notice
    ground.trouble.engine_comes_back()
    ground.installation.settle()
    assert guests(ground.world) == [], "the old guest is removed when its host is back"
    ground.copying()  # those on its own host are of no use now
    ground.copying()
    (fresh,) = ground.copies()
    assert fresh.host_id != ground.now(made).host_id
    assert ground.kept() == [fresh.id]
    assert ground.now(made).held.snapshots_bytes == fresh.size_bytes


@pytest.mark.parametrize("policy", [RestartPolicy.NEVER, RestartPolicy.SAME_HOST])
def test_only_instances_that_may_move_are_copied(ground: Ground, policy: RestartPolicy) -> None:
    ground.launched(policy)
    ground.copying()
    assert (ground.copies(), ground.kept()) == ((), [])


def test_one_of_two_processes_copies_a_disk(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ground.launched()
    copied: list[str] = []
    monkeypatch.setattr(CopyLoop, "_copy", lambda self, instance: copied.append(instance.id))
    for worker in ground.installation.workers:
        CopyLoop(worker.around, EVERY, worker=worker.name).turn()
    assert copied == [made.id]


def test_no_copy_is_made_beyond_the_quota(ground: Ground) -> None:
    ground.launched()
    tenant = ground.installation.tenant
    tenants = TenantService(
        ground.installation.database, ground.installation.clock, ground.installation.random_bytes
    )
    tenants.projects.set_quota(tenant.actor, tenant.project.id, Quota(disk_bytes=1))
    ground.copying()
    assert (ground.copies(), ground.kept()) == ((), [])
    tenants.projects.set_quota(tenant.actor, tenant.project.id, Quota())
    ground.copying()
    assert len(ground.copies()) == 1


def test_copies_are_removed_with_their_instance(ground: Ground) -> None:
    made = ground.launched()
    ground.copying()
    tenant = ground.installation.tenant
    ground.installation.service.delete(tenant.actor, tenant.project, "one")
    ground.installation.settle()
    ground.installation.trouble.engine_goes_down()
    ground.copying(timedelta(0))
    assert len(ground.copies()) == 1, "its site does not answer"
    ground.installation.trouble.engine_comes_back()
    ground.copying(timedelta(0))
    assert (ground.copies(), ground.kept()) == ((), [])
    assert ground.now(made).phase == Phase.GONE


def test_an_instance_waits_for_room_where_its_copy_is(ground: Ground) -> None:
    made = ground.launched()
    ground.write(made, "kept")
    ground.copying()
    with ground.installation.database.read() as tx:
        hosts = [each.id for each in fleet.outlines(tx) if each.site == "simulated"]
    for id in hosts:
        ground.installation.database.write(lambda tx, id=id: fleet.set_drained(tx, id, True))  # type: ignore[misc]
    assert ground.lose(made).phase == Phase.AWAY
    ground.installation.database.write(lambda tx: fleet.set_drained(tx, hosts[0], False))
    look(ground, minutes=1)
    assert (ground.now(made).phase, ground.read(ground.now(made))) == (Phase.RUNNING, "kept")


FAULTS = [
    (site, SimulatedFault(call=call, when=when, kind=kind))
    for site, call in (("second", "pack_disk"), ("simulated", "keep_image"))
    for when in When
    for kind in (Kind.KILLED, Kind.FAILED, Kind.ENGINE_DOWN)
]


@pytest.mark.parametrize(("site", "fault"), sampled(FAULTS, every=7, because="every fault at every point"))
def test_a_copy_that_fails_leaves_nothing(ground: Ground, site: str, fault: SimulatedFault) -> None:
    made = ground.launched()
    trouble = ground.trouble if site == "second" else ground.installation.trouble
    trouble.faults(fault)
    try:
        ground.copying()
    except Killed:
        assert [each.state for each in ground.copies()] == ["making"]
    trouble.no_more_faults()
    ground.copying(timedelta(0))
    ground.installation.wait(61)
    ground.installation.settle()
    ground.copying(timedelta(0))
    assert (ground.copies(), ground.kept()) == ((), [])
    assert ground.now(made).held.snapshots_bytes == 0
    ground.copying()
    (copy,) = ground.copies()
    assert ground.kept() == [copy.id]


def test_a_drained_host_passes_disks_on(ground: Ground) -> None:
    made = ground.launched()
    ground.write(made, "kept")
    at = ground.installation.clock.now()
    ground.installation.database.write(
        lambda tx: fleet.set_drained(tx, made.host_id or made.host_id, True, drain_at=at)  # type: ignore[arg-type]
    )
    ground.installation.settle()
    after = ground.now(made)
    assert (after.phase, after.site, ground.read(after)) == (Phase.RUNNING, "simulated", "kept")
    assert "from the copy of its disk" in after.notice
    ground.copying(timedelta(0))
    assert (ground.copies(), ground.kept()) == ((), [])


@pytest.mark.parametrize("call", ["pack_disk", "keep_image"])
def test_a_drained_host_keeps_disks_until_engines_answer(ground: Ground, call: str) -> None:
    made = ground.launched()
    ground.write(made, "kept")
    host_id, at = made.host_id, ground.installation.clock.now()
    assert host_id is not None
    ground.installation.database.write(lambda tx: fleet.set_drained(tx, host_id, True, drain_at=at))
    fault = SimulatedFault(call=call, when=When.BEFORE, kind=Kind.ENGINE_DOWN)
    (ground.trouble if call == "pack_disk" else ground.installation.trouble).faults(fault)
    look(ground, minutes=1)
    ground.installation.settle()
    after = ground.now(made)
    assert (after.site, ground.read(after)) == ("simulated", "kept")


def test_a_notice_to_leave_cards_ends_with_the_move(ground: Ground) -> None:
    made = ground.launch(
        Order(name="one", site="second", mode="spot", restart_policy=RestartPolicy.ELSEWHERE)
    )
    ground.installation.settle()
    around = ground.installation.workers[0].around
    now = around.clock.now()
    told = noticed(ground.now(made), now)
    with around.database.read() as tx:
        host = next(each.id for each in fleet.outlines(tx) if each.site == "simulated")
    around.database.write(lambda tx: move(tx, around, told, host, "Its host was lost", now))
    there = ground.now(made)
    assert there.host_id == host
    assert there.preemptible is not None
    assert there.preemptible.leaving_at is None, "nobody needs its cards there"
    assert "Its host was lost" in there.notice
