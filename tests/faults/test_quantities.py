"""Snapshot sizes, traffic and regions are measured exactly, whenever a worker dies.

Covers the whole path: the service, the loops, the simulated engine, the meter, billing and verification.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.installation import Installation
from tests.long import sampled
from tests.unit.bill.world import RATES

from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.fleet.model import HostReport
from teraflock.instance.driver import Capability, ComputeDriver, Handle, Seen, Sent, Sighting
from teraflock.instance.model import Access, Instance, InstanceId, Operation
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.meter.reading import store as readings
from teraflock.reconcile.drift import DriftLoop
from teraflock.reconcile.rehearsal import points
from teraflock.reconcile.traffic import TrafficLoop

GB = 1 << 30
MB = 1 << 20
BOOK = """\
- from: 2026-01-01
  currency: USD
  gpu: {V100: 3/hour}
  disk: 0.1/month
  snapshot: 73/month
  egress: 0.05
  regions: {north: {gpu: {V100: 4/hour}, egress: 0.11, snapshot: 146/month}}
"""


class Lab:
    """An installation with a price book and one instance."""

    def __init__(self) -> None:
        self.installation = Installation.in_memory(datetime(2026, 3, 5, 9, 0, tzinfo=UTC))
        self.bills = BillService(
            self.installation.database, self.installation.clock, RATES, self.installation.random_bytes
        )
        self.bills.prices.take(BOOK, name="prices.yaml", member="mem")
        self.traffic = TrafficLoop(self.installation.workers[0].around)
        self.sent = 0
        self.ask("launch", Order(name="one", shape=ShapeWish(gpu="V100")))
        self.installation.settle()

    def ask(self, verb: object, *words: object) -> None:
        tenant = self.installation.tenant
        attrgetter(str(verb))(self.installation.service)(tenant.actor, tenant.project, *words)

    @property
    def instance(self) -> Instance:
        return self.installation.service.page(self.installation.tenant.project.id, limit=1, gone=True)[
            0
        ].instance

    def run(self, *command: str) -> None:
        view = self.installation.service.view(self.installation.tenant.project.id, self.instance.id)
        handle = Handle(view.instance.id, view.host_name or "")
        assert self.installation.engine.run(handle, command, stdin=b"", seconds_max=9).exit_code == 0

    def send(self, count: int) -> None:
        self.run("send", str(count))
        self.sent += count

    def read(self) -> int:
        """Return the sum of all readings."""
        with self.installation.database.read() as tx:
            row = tx.one("SELECT COALESCE(SUM(bytes - bytes_before), 0) FROM meter_reading")
        return int(row[0]) if row else 0

    def day_over(self) -> None:
        self.installation.wait(86_400)
        self.bills.turn()

    def charged(self, column: str) -> int:
        with self.installation.database.read() as tx:
            row = tx.one(f"SELECT COALESCE(SUM({column}), 0) FROM charge")
        return int(row[0]) if row else 0

    def cost(self) -> int:
        project = self.installation.tenant.project.id
        return self.bills.costs(project, [self.instance.id])[self.instance.id].micros


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.installation.database.close()


ENDS = (Operation.STOP, Operation.RESTART, Operation.DELETE, Operation.RESIZE_RESTART)
VERBS: dict[Operation, tuple[object, ...]] = {
    Operation.STOP: ("stop", "one"),
    Operation.RESTART: ("restart", "one"),
    Operation.DELETE: ("delete", "one"),
    Operation.RESIZE_RESTART: ("resize", "one", ShapeWish(gpus=2)),
}


@pytest.mark.parametrize(
    "point", sampled((point for each in ENDS for point in points(each)), every=6, because="every point")
)
def test_each_byte_is_counted_once_when_a_worker_dies(lab: Lab, point: str) -> None:
    """The guest sends data after the last reading; the worker dies at the point; the guest sends again if it
    still runs."""
    lab.send(3 * MB)
    lab.traffic.turn()
    lab.send(5 * MB + 1)
    lab.ask(*VERBS[Operation(point.partition(".")[0])])
    for worker in lab.installation.workers:
        worker.dies_at = point
    lab.installation.survive(lab.installation.workers[0].turn, 0)
    lab.installation.settle()
    if lab.instance.phase == Phase.RUNNING:
        lab.send(7)
        lab.ask("stop", "one")
        lab.installation.settle()
    assert lab.read() == lab.sent
    lab.day_over()
    assert lab.charged("egress_bytes") == lab.sent
    assert lab.charged("egress_micros") == lab.sent * 50_000 // GB
    assert verify(lab.installation.database).faults == ()


@settings(max_examples=20, deadline=None)
@given(
    acts=st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.integers(1, 5 * GB)),
            st.tuples(
                st.sampled_from(["read", "stop", "start", "restart", "wait", "down", "region"]), st.just(0)
            ),
        ),
        max_size=14,
    )
)
def test_any_sequence_of_acts_is_charged_for_its_traffic(acts: list[tuple[str, int]]) -> None:
    lab = Lab()
    try:
        for act, count in acts:
            _do(lab, act, count)
        lab.ask("delete", "one")
        lab.installation.settle()
        lab.bills.turn()
        so_far = lab.cost()
        lab.day_over()
        assert lab.charged("egress_bytes") == lab.read() == lab.sent
        assert lab.cost() == so_far, "only what was read before is charged"
        assert verify(lab.installation.database).faults == ()
    finally:
        lab.installation.database.close()


def _do(lab: Lab, act: str, count: int) -> None:
    running = lab.instance.phase == Phase.RUNNING
    if act == "send" and running:
        lab.send(count)
    elif act == "read":
        lab.traffic.turn()
    elif act == "wait":
        lab.installation.wait(40_000)
        lab.bills.turn()
    elif act == "region":
        host = lab.instance.host_id or ""
        region = "north" if lab.installation.clock.now().second % 2 else "home"
        lab.installation.service.set_region(lab.installation.tenant.actor, host, region)
    elif act == "down" and running:  # the guest stops by itself, and is started again
        lab.installation.trouble.dies(lab.instance.id)
        lab.installation.settle()
    elif (act in ("stop", "restart") and running) or (act == "start" and not running):
        lab.ask(act, "one")
        lab.installation.settle()


def test_failed_launch_costs_nothing_despite_traffic(lab: Lab) -> None:
    order = Order(name="two", shape=ShapeWish(), access=Access.COMMAND, command=("send", "9GB"))
    lab.ask("launch", order)
    lab.installation.workers[0].dies_at = "launch.ready:before"
    assert not lab.installation.survive(lab.installation.workers[0].turn, 0)
    lab.installation.wait(5)
    assert max(each.bytes for each in lab.installation.engine.all_sent()) == 9 * GB, (
        "it started, and sent data"
    )
    lab.traffic.turn()
    lab.ask("delete", "two")
    lab.installation.settle()
    lab.day_over()
    assert lab.read() == lab.charged("egress_bytes") == 0


def test_snapshots_are_charged_until_deleted(lab: Lab) -> None:
    lab.run("fill", "10GB")
    lab.ask("snapshots.create", "one", "first")
    lab.installation.settle()
    assert lab.instance.held.snapshots_bytes == 10 * GB
    lab.run("fill", "2GB")
    lab.ask("snapshots.create", "one", "second")
    lab.installation.settle()
    assert lab.instance.held.snapshots_bytes == 12 * GB, "data of the first snapshot is not counted twice"
    lab.ask("stop", "one")
    lab.installation.settle()
    lab.day_over()
    before = lab.charged("snapshot_micros")
    lab.day_over()
    assert lab.charged("snapshot_micros") - before == pytest.approx(12 * 73_000_000 * 24 / 730, abs=2)
    lab.ask("snapshots.delete", "one", "first")
    assert lab.instance.held.snapshots_bytes == 2 * GB
    lab.ask("delete", "one")
    lab.installation.settle()
    assert lab.instance.held.snapshots_bytes == 0
    lab.bills.turn()
    at_end = lab.charged("snapshot_micros")
    lab.day_over()
    assert lab.charged("snapshot_micros") == at_end
    assert verify(lab.installation.database).faults == ()


def test_a_snapshot_that_fails_keeps_nothing(lab: Lab) -> None:
    lab.run("fill", "10GB")
    lab.installation.trouble.pool_is_full(
        lab.installation.service.view(lab.installation.tenant.project.id, "one").host_name or "", full=True
    )
    lab.ask("snapshots.create", "one", "first")
    lab.installation.workers[0].turn()
    lab.installation.settle()
    assert lab.instance.held.snapshots_bytes == 0


def test_region_prices_apply_once_its_host_exists(lab: Lab) -> None:
    at = lab.installation.clock.now()
    lab.send(GB)
    lab.traffic.turn()
    lab.installation.wait(3600 - (lab.installation.clock.now() - at).total_seconds())
    lab.installation.service.set_region(lab.installation.tenant.actor, lab.instance.host_id or "", "north")
    lab.send(GB)
    lab.traffic.turn()
    lab.bills.turn()
    rate = lab.bills.costs(lab.installation.tenant.project.id, [lab.instance.id])[
        lab.instance.id
    ].micros_per_hour
    assert 4_000_000 <= rate < 4_050_000
    lab.installation.clock.move(timedelta(days=1))
    lab.bills.turn()
    with lab.installation.database.read() as tx:
        found = tx.all("SELECT region, SUM(egress_micros) FROM charge GROUP BY region ORDER BY region")
    assert [(row[0], int(row[1])) for row in found] == [("home", 50_000), ("north", 110_000)]
    assert verify(lab.installation.database).faults == ()


def test_image_from_an_instance_is_charged_for_its_size(lab: Lab) -> None:
    installation, tenant = lab.installation, lab.installation.tenant
    installation.images.from_instance(tenant.actor, tenant.project, "mine", "one")
    installation.settle()
    image = installation.images.image(tenant.project.id, "mine")
    assert image.size_bytes == GB
    installation.wait(7_300)
    installation.images.delete(tenant.actor, tenant.project, "mine")
    installation.settle()
    lab.bills.turn()
    (line,) = [
        each
        for each in lab.bills.lines(tenant.project.id, "2026-03")
        if each.charge.subject.id == image.id and each.charge.slice.from_us < each.charge.slice.until_us
    ]
    held, part = line.charge.subject.held, line.charge.slice
    assert (held.name, held.mode, held.snapshots_bytes) == ("image mine", "image", GB)
    assert line.charge.micros == 73_000_000 * (part.until_us - part.from_us) // (730 * 3600 * 10**6)
    assert part.until_us - part.from_us >= 7_300 * 10**6
    assert verify(installation.database).is_sound


def test_an_image_built_from_a_recipe_is_not_charged(lab: Lab) -> None:
    installation, tenant = lab.installation, lab.installation.tenant
    installation.images.build(tenant.actor, tenant.project, "built", "base")
    installation.settle()
    lab.bills.turn()
    lines = lab.bills.lines(tenant.project.id, "2026-03")
    assert [each for each in lines if each.charge.subject.held.mode == "image"] == []


class LyingSite:
    """A site that speaks about an instance of another one."""

    site, simulated = "evil", True
    capabilities = frozenset({Capability.PLACEMENT, Capability.TRAFFIC, Capability.NOTICE})

    def __init__(self, instance_id: InstanceId, at: datetime) -> None:
        self._id = instance_id
        self._at = at

    def hosts(self) -> tuple[HostReport, ...]:
        return (HostReport(name="evil", address="203.0.113.66", vcpus=8, ram_bytes=GB, disk_bytes=GB),)

    def all_sent(self) -> tuple[Sent, ...]:
        return tuple(Sent(instance_id=self._id, epoch="evil", bytes=each) for each in (1000 * GB, 1 << 63))

    def sightings(self) -> tuple[Sighting, ...]:
        return (Sighting(instance_id=self._id, host="evil", seen=Seen.STOPPED, leaving_at=self._at),)


def test_a_site_is_not_believed_about_instances_of_others() -> None:
    lab = Lab()
    installation = lab.installation
    victim = installation.service.view(installation.tenant.project.id, "one").instance
    liar = cast("ComputeDriver", LyingSite(victim.id, installation.clock.now()))
    with installation.database.read() as tx:
        before = readings.newest_number(tx)
    lab.traffic.turn_of(liar)
    DriftLoop(installation.workers[0].around).turn_of(liar)
    with installation.database.read() as tx:
        assert readings.newest_number(tx) == before, "its traffic is not charged"
        told = tx.all("SELECT kind FROM event WHERE kind IN ('instance.leaving', 'instance.drifted')")
    assert told == []
    assert installation.service.view(installation.tenant.project.id, "one").instance == victim
