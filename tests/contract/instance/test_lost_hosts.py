"""A host that will never return is removed: what ends, what is recovered, what is refused. On both databases."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.faults.data_installation import DataInstallation
from tests.faults.test_volume_copies import CopyDesk
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock, microseconds
from teraflock.base.errors import Conflict
from teraflock.base.quantities import GIB
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.left_behind import store as left_behind
from teraflock.fleet.model import Host, HostState
from teraflock.fleet.service import FleetService
from teraflock.instance.join import store as joins
from teraflock.instance.join.losing import DISK_LOST, LOST_AFTER
from teraflock.instance.join.model import HostLosses, JoinedHost, Package
from teraflock.instance.join.service import JoinService
from teraflock.instance.model import Instance, RestartPolicy
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.instance.store import taken_addresses
from teraflock.meter import store as meter
from teraflock.storage.database import Database, Transaction

BOOK = "- {from: 2026-01-01, currency: USD, disk: 7.30/month, vcpu: 0.10/hour}\n"
SITE = "simulated"


class LossDesk(CopyDesk):
    """A desk whose simulated site counts as a host that joined."""

    def __init__(self, installation: DataInstallation) -> None:
        super().__init__(installation)
        self.join()
        self.joins = JoinService(
            installation.database, installation.clock, installation.engines, door=None,  # type: ignore[arg-type]
            version="1", mark="m4rk", package=lambda: Package(version="1", content=b""),
        )  # fmt: skip

    def join(self) -> None:
        made = JoinedHost(
            name=SITE, number=1, certificate="", cards=(), trusted_wire=True,
            joined_at=self.installation.clock.now(),
        )  # fmt: skip
        self.installation.database.write(lambda tx: joins.insert(tx, made))

    def launch_at(self, host: str, name: str, policy: RestartPolicy = RestartPolicy.SAME_HOST) -> Instance:
        order = Order(name=name, host=host, restart_policy=policy)
        self.installation.service.launch(self.actor, self.project, order)
        self.settle()
        return self.instance(name)

    def instance(self, name: str) -> Instance:
        return self.installation.service.view(self.project.id, name).instance

    def host_row(self, ref: str) -> Host:
        with self.installation.database.read() as tx:
            found = fleet.host(tx, ref)
        assert found is not None
        return found

    def set_drained(self, host: str, drained: bool) -> None:
        id = self.host_row(host).id
        self.installation.database.write(lambda tx: fleet.set_drained(tx, id, drained))

    def lose(self, host: str, wait: timedelta = LOST_AFTER) -> None:
        self.installation.trouble.host_goes_away(host)
        self.installation.trouble.power_off(host)
        self.settle()
        self.installation.wait(wait.total_seconds())
        self.settle()

    def remove_lost(self, host: str) -> HostLosses:
        return self.joins.remove_lost(self.actor, host)


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> LossDesk:
    clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
    return LossDesk(DataInstallation(database, MemoryWorld(), clock, tmp_path))


def test_everything_on_a_lost_host_ends_at_its_last_sighting(desk: LossDesk) -> None:
    installation = desk.installation
    bills = BillService(installation.database, installation.clock, RATES, installation.random_bytes)
    bills.prices.take(BOOK, name="prices.yaml", member="mem")
    desk.started()
    host = desk.host("first")
    desk.volumes.create(desk.actor, desk.project, "plain", GIB)
    desk.launch("second", "plain")
    stopped, deleted = desk.launch_at(host, "stopped"), desk.launch_at(host, "deleted")
    installation.service.stop(desk.actor, desk.project, "stopped")
    desk.settle()
    desk.copying()
    installation.wait(7200)
    desk.settle()
    seen_at = desk.host_row(host).seen_at
    desk.lose(host)
    installation.service.delete(desk.actor, desk.project, "deleted")
    installation.wait(86_400)
    desk.settle()
    bills.turn()
    lost = [each for each in ("first", "second", "stopped") if desk.host(each) == host]
    assert desk.remove_lost(host) == HostLosses(
        instances=len(lost) + 1, volumes="second" in lost, volumes_recovered=1
    )
    bills.turn()
    for name in lost:
        assert (desk.instance(name).phase, desk.instance(name).problem) == (Phase.FAILED, DISK_LOST)
    with installation.database.read() as tx:
        for id in (stopped.id, deleted.id):
            assert max(each.until_us for each in meter.intervals_of(tx, id)) <= microseconds(seen_at)
        assert not {stopped.address, deleted.address} & taken_addresses(tx, desk.project.id)
    row = desk.host_row(host)
    assert (row.state, row.vcpus_held, row.disk_bytes_held) == (HostState.GONE, 0, 0)
    assert all(card.instance_id is None for card in row.gpus)
    assert desk.shown().volume.state == "free"
    third = desk.launch("third", "disk:/mnt/disk")
    assert (third.phase, desk.words("third", "cat", "/mnt/disk/kept")) == (Phase.RUNNING, b"one")
    for name in lost:
        installation.service.delete(desk.actor, desk.project, name)
    desk.settle()
    bills.turn()
    assert verify(installation.database).faults == ()


def test_only_a_host_that_is_lost_is_given_up(desk: LossDesk) -> None:
    one = desk.launch_at("simulated-0003", "one")
    with pytest.raises(Conflict, match="is not lost: it was seen"):
        desk.remove_lost("simulated-0003")
    desk.lose("simulated-0003", LOST_AFTER - timedelta(seconds=60))
    with pytest.raises(Conflict, match="is not lost: it was seen"):
        desk.remove_lost("simulated-0003")
    with pytest.raises(Conflict, match="--lost|still has instances"):
        desk.joins.remove(desk.actor, "simulated-0003")
    assert desk.instance("one") == desk.instance(one.id)
    assert desk.instance("one").phase == Phase.AWAY


def test_a_host_stays_while_its_instances_can_move(desk: LossDesk) -> None:
    installation = desk.installation
    desk.set_drained("simulated-0001", True)
    desk.set_drained("simulated-0002", True)
    one = desk.launch_at("simulated-0003", "one", RestartPolicy.ELSEWHERE)
    desk.lose("simulated-0003")
    with pytest.raises(Conflict, match="wait for room on another host: 1") as refused:
        desk.remove_lost("simulated-0003")
    assert "Make room" in refused.value.hint
    desk.set_drained("simulated-0001", False)
    desk.settle()
    assert desk.remove_lost("simulated-0003") == HostLosses()
    moved = desk.instance("one")
    assert (moved.phase, desk.host("one")) == (Phase.RUNNING, "simulated-0001")
    with installation.database.read() as tx:
        taken = taken_addresses(tx, desk.project.id)
    assert (one.address in taken, moved.address in taken) == (False, True), "the old one is free"


def test_a_lost_host_that_joins_again_is_cleaned_before_it_is_used(desk: LossDesk) -> None:
    one = desk.launch_at("simulated-0003", "one")
    desk.lose("simulated-0003")
    desk.remove_lost("simulated-0003")
    installation, id = desk.installation, desk.host_row("simulated-0003").id
    installation.trouble.host_comes_back("simulated-0003", rebooted=False)
    with installation.database.read() as tx:
        assert left_behind.on_hosts(tx, [id]) == [(one.id, id)]
    desk.join()
    desk.settle()
    assert desk.host_row(id).state == HostState.READY
    assert one.id not in {each.instance_id for each in installation.engines.at(SITE).sightings()}
    with installation.database.read() as tx:
        assert left_behind.on_hosts(tx, [id]) == []


def test_a_reading_does_not_bring_a_removed_host_back(desk: LossDesk) -> None:
    """The host answered, and was removed before its answer was written. A site that hangs then is not `away` either."""
    worker, host = desk.installation.workers[0], desk.host_row("simulated-0003")
    engine = desk.installation.engines.at(SITE)
    reports = engine.hosts()

    def remove(tx: Transaction) -> None:
        fleet.mark_removed(tx, host.id, host.seen_at)
        joins.remove(tx, SITE)

    desk.installation.database.write(remove)
    worker.hosts._keep(engine, reports)
    assert desk.host_row(host.id).state == HostState.GONE
    worker.hosts.asking[SITE] = desk.installation.clock.now()
    desk.installation.wait(60)
    worker.hosts.give_up_overdue()
    assert desk.host_row(host.id).state == HostState.GONE


@pytest.mark.parametrize("state", [HostState.READY, HostState.DRAINING])
def test_a_removed_host_cannot_be_drained_or_used_again(desk: LossDesk, state: HostState) -> None:
    """Its name still finds its row. Were it `ready` again, new instances would be placed on it."""
    desk.lose("simulated-0003")
    desk.remove_lost("simulated-0003")
    id = desk.host_row("simulated-0003").id
    service = FleetService(desk.installation.database, desk.installation.clock)
    with pytest.raises(Conflict, match="was removed"):
        service.set_state(desk.actor, id, state)
    desk.set_drained(id, state == HostState.DRAINING)
    assert desk.host_row(id).state == HostState.GONE
