"""Snapshot sizes, traffic and regions are measured exactly, whenever a worker dies.

Covers the whole path: the service, the loops, the simulated engine, the meter, billing and verification.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.house import House
from tests.long import sampled
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.driver import Handle
from teraflock.instance.model import Access, Instance, Operation
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.reconcile.rehearsal import points
from teraflock.reconcile.traffic import TrafficLoop
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate

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
        clock = FixedClock(datetime(2026, 3, 5, 9, 0, tzinfo=UTC))
        database = MemoryDatabase()
        migrate(database, clock)
        self.house = House(database, MemoryWorld(), clock)
        self.bills = BillService(database, clock, RATES, self.house.random_bytes)
        self.bills.prices.take(BOOK, name="prices.yaml", member="mem")
        self.traffic = TrafficLoop(self.house.workers[0].around)
        self.sent = 0
        self.ask("launch", Order(name="one", shape=ShapeWish(gpu="V100")))
        self.house.settle()

    def ask(self, verb: object, *words: object) -> None:
        tenant = self.house.tenant
        attrgetter(str(verb))(self.house.service)(tenant.actor, tenant.project, *words)

    @property
    def instance(self) -> Instance:
        return self.house.service.page(self.house.tenant.project.id, limit=1, gone=True)[0].instance

    def run(self, *command: str) -> None:
        view = self.house.service.view(self.house.tenant.project.id, self.instance.id)
        handle = Handle(view.instance.id, view.host_name or "")
        assert self.house.engine.run(handle, command, stdin=b"", seconds_max=9).exit_code == 0

    def send(self, count: int) -> None:
        self.run("send", str(count))
        self.sent += count

    def read(self) -> int:
        """Return the sum of all readings."""
        with self.house.database.read() as tx:
            row = tx.one("SELECT COALESCE(SUM(bytes - bytes_before), 0) FROM meter_reading")
        return int(row[0]) if row else 0

    def day_over(self) -> None:
        self.house.wait(86_400)
        self.bills.turn()

    def charged(self, column: str) -> int:
        with self.house.database.read() as tx:
            row = tx.one(f"SELECT COALESCE(SUM({column}), 0) FROM charge")
        return int(row[0]) if row else 0

    def cost(self) -> int:
        project = self.house.tenant.project.id
        return self.bills.costs(project, [self.instance.id])[self.instance.id].micros


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.house.database.close()


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
    for worker in lab.house.workers:
        worker.dies_at = point
    lab.house.survive(lab.house.workers[0].turn, 0)
    lab.house.settle()
    if lab.instance.phase == Phase.RUNNING:
        lab.send(7)
        lab.ask("stop", "one")
        lab.house.settle()
    assert lab.read() == lab.sent
    lab.day_over()
    assert lab.charged("egress_bytes") == lab.sent
    assert lab.charged("egress_micros") == lab.sent * 50_000 // GB
    assert verify(lab.house.database).faults == ()


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
        lab.house.settle()
        lab.bills.turn()
        so_far = lab.cost()
        lab.day_over()
        assert lab.charged("egress_bytes") == lab.read() == lab.sent
        assert lab.cost() == so_far, "only what was read before is charged"
        assert verify(lab.house.database).faults == ()
    finally:
        lab.house.database.close()


def _do(lab: Lab, act: str, count: int) -> None:
    running = lab.instance.phase == Phase.RUNNING
    if act == "send" and running:
        lab.send(count)
    elif act == "read":
        lab.traffic.turn()
    elif act == "wait":
        lab.house.wait(40_000)
        lab.bills.turn()
    elif act == "region":
        host = lab.instance.host_id or ""
        region = "north" if lab.house.clock.now().second % 2 else "home"
        lab.house.service.set_region(lab.house.tenant.actor, host, region)
    elif act == "down" and running:  # the guest stops by itself, and is started again
        lab.house.trouble.dies(lab.instance.id)
        lab.house.settle()
    elif (act in ("stop", "restart") and running) or (act == "start" and not running):
        lab.ask(act, "one")
        lab.house.settle()


def test_failed_launch_costs_nothing_despite_traffic(lab: Lab) -> None:
    order = Order(name="two", shape=ShapeWish(), access=Access.COMMAND, command=("send", "9GB"))
    lab.ask("launch", order)
    lab.house.workers[0].dies_at = "launch.ready:before"
    assert not lab.house.survive(lab.house.workers[0].turn, 0)
    lab.house.wait(5)
    assert max(each.bytes for each in lab.house.engine.all_sent()) == 9 * GB, "it started, and sent data"
    lab.traffic.turn()
    lab.ask("delete", "two")
    lab.house.settle()
    lab.day_over()
    assert lab.read() == lab.charged("egress_bytes") == 0


def test_snapshots_are_charged_until_deleted(lab: Lab) -> None:
    lab.run("fill", "10GB")
    lab.ask("snapshots.create", "one", "first")
    lab.house.settle()
    assert lab.instance.held.snapshots_bytes == 10 * GB
    lab.run("fill", "2GB")
    lab.ask("snapshots.create", "one", "second")
    lab.house.settle()
    assert lab.instance.held.snapshots_bytes == 12 * GB, "data of the first snapshot is not counted twice"
    lab.ask("stop", "one")
    lab.house.settle()
    lab.day_over()
    before = lab.charged("snapshot_micros")
    lab.day_over()
    assert lab.charged("snapshot_micros") - before == pytest.approx(12 * 73_000_000 * 24 / 730, abs=2)
    lab.ask("snapshots.delete", "one", "first")
    assert lab.instance.held.snapshots_bytes == 2 * GB
    lab.ask("delete", "one")
    lab.house.settle()
    assert lab.instance.held.snapshots_bytes == 0
    lab.bills.turn()
    at_end = lab.charged("snapshot_micros")
    lab.day_over()
    assert lab.charged("snapshot_micros") == at_end
    assert verify(lab.house.database).faults == ()


def test_a_snapshot_that_fails_keeps_nothing(lab: Lab) -> None:
    lab.run("fill", "10GB")
    lab.house.trouble.pool_is_full(
        lab.house.service.view(lab.house.tenant.project.id, "one").host_name or "", full=True
    )
    lab.ask("snapshots.create", "one", "first")
    lab.house.workers[0].turn()
    lab.house.settle()
    assert lab.instance.held.snapshots_bytes == 0


def test_region_prices_apply_once_its_host_exists(lab: Lab) -> None:
    at = lab.house.clock.now()
    lab.send(GB)
    lab.traffic.turn()
    lab.house.wait(3600 - (lab.house.clock.now() - at).total_seconds())
    lab.house.service.set_region(lab.house.tenant.actor, lab.instance.host_id or "", "north")
    lab.send(GB)
    lab.traffic.turn()
    lab.bills.turn()
    rate = lab.bills.costs(lab.house.tenant.project.id, [lab.instance.id])[lab.instance.id].micros_per_hour
    assert 4_000_000 <= rate < 4_050_000
    lab.house.clock.move(timedelta(days=1))
    lab.bills.turn()
    with lab.house.database.read() as tx:
        found = tx.all("SELECT region, SUM(egress_micros) FROM charge GROUP BY region ORDER BY region")
    assert [(row[0], int(row[1])) for row in found] == [("home", 50_000), ("north", 110_000)]
    assert verify(lab.house.database).faults == ()


def test_image_from_an_instance_is_charged_for_its_size(lab: Lab) -> None:
    house, tenant = lab.house, lab.house.tenant
    house.images.from_instance(tenant.actor, tenant.project, "mine", "one")
    house.settle()
    image = house.images.image(tenant.project.id, "mine")
    assert image.size_bytes == GB
    house.wait(7_300)
    house.images.delete(tenant.actor, tenant.project, "mine")
    house.settle()
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
    assert verify(house.database).is_sound


def test_an_image_built_from_a_recipe_is_not_charged(lab: Lab) -> None:
    house, tenant = lab.house, lab.house.tenant
    house.images.build(tenant.actor, tenant.project, "built", "base")
    house.settle()
    lab.bills.turn()
    lines = lab.bills.lines(tenant.project.id, "2026-03")
    assert [each for each in lines if each.charge.subject.held.mode == "image"] == []
