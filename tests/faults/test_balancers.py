"""Balancers keep running, move off lost hosts, and have every byte charged once, whenever a worker dies."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.faults.checker import faults
from tests.faults.installation import Installation
from tests.long import sampled
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.faults import Kind, SimulatedFault, When
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.model import HostState
from teraflock.fleet.service import FleetService
from teraflock.instance.orders import Order
from teraflock.network.balancer.model import Balancer, BalancerOrder
from teraflock.network.balancer.rules import LOST_AFTER
from teraflock.reconcile.traffic import TrafficLoop
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate

GB = 1 << 30
MB = 1 << 20
BOOK = """\
- from: 2026-01-01
  currency: USD
  gpu: {V100: 3/hour}
  egress: 0.05
"""


class Lab:
    """An installation with a price book, an instance, and a balancer in front of it."""

    def __init__(self) -> None:
        clock = FixedClock(datetime(2026, 3, 5, 9, 0, tzinfo=UTC))
        database = MemoryDatabase()
        migrate(database, clock)
        self.database = database
        self.installation = Installation(database, MemoryWorld(), clock)
        self.bills = BillService(database, clock, RATES, self.installation.random_bytes)
        self.bills.prices.take(BOOK, name="prices.yaml", member="mem")
        self.fleet = FleetService(database, clock)
        self.tenant = self.installation.tenant
        self.installation.service.launch(self.tenant.actor, self.tenant.project, Order(name="web"))
        order = BalancerOrder(name="front", port=80, instances=("web",), publish=True)
        self.id = self.installation.balancers.create(
            self.tenant.actor, self.tenant.project, order
        ).balancer.id
        self.installation.settle()
        self.sent = 0

    @property
    def balancer(self) -> Balancer:
        return self.installation.balancers.show(self.tenant.project, self.id).balancer

    def host(self) -> str:
        return self.fleet.host(self.balancer.host_id).name

    def send(self, count: int) -> None:
        self.installation.trouble.balancer_sends(self.id, count)
        self.sent += count

    def read_counters(self) -> None:
        TrafficLoop(self.installation.workers[0].around).turn()

    def delete(self) -> None:
        self.installation.balancers.delete(self.tenant.actor, self.tenant.project, "front")

    def lose(self) -> None:
        self.installation.trouble.host_goes_away(self.host())
        self.look()
        self.installation.wait(LOST_AFTER.total_seconds() + 1)

    def drain(self, at: datetime | None = None) -> None:
        self.fleet.set_state(self.tenant.actor, self.host(), HostState.DRAINING, drain_at=at)

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.installation.survive(self.installation.workers[0].look, 0)

    def check(self) -> None:
        assert faults(self.database, self.installation.world, self.installation.clock.now()) == []

    def check_bill(self) -> None:
        """Every byte is charged once, to the project."""
        for _ in range(2):  # a reading belongs to a day before the last one is closed
            self.installation.wait(86_400)
            self.bills.turn()
        with self.database.read() as tx:
            row = tx.one(
                "SELECT SUM(egress_bytes), SUM(egress_micros), SUM(micros) FROM charge WHERE subject = :id",
                id=self.id,
            )
        due = self.sent * 50_000 // GB
        assert row == (self.sent, due, due), "traffic is all that a balancer costs"
        verdict = verify(self.database)
        assert verdict.faults == ()
        assert verdict.changes_to_come == 0


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.database.close()


ACTS: dict[str, Callable[[Lab], None]] = {"delete": Lab.delete, "lose": Lab.lose, "drain": Lab.drain}
POINTS = [(act, call, when) for act in ACTS for call in ("balance", "all_sent") for when in When]


@pytest.mark.parametrize(
    ("act", "call", "when"),
    sampled(POINTS, every=5, because="every point", id=lambda case: "-".join(map(str, case))),
)
def test_each_byte_is_charged_once_when_a_worker_dies(lab: Lab, act: str, call: str, when: When) -> None:
    lab.send(3 * MB)
    lab.read_counters()
    lab.send(5 * MB + 1)
    if act == "lose":
        lab.read_counters()  # what a lost host counted since is read when it is back
    ACTS[act](lab)
    lab.installation.trouble.faults(SimulatedFault(call=call, when=when, kind=Kind.KILLED))
    lab.look()
    lab.installation.settle()
    lab.check()
    if act != "delete":
        lab.send(7)
        lab.read_counters()
        lab.delete()
        lab.installation.settle()
    lab.check()
    lab.check_bill()


def test_a_lost_host_keeps_its_balancer_for_a_while(lab: Lab) -> None:
    before, host = lab.balancer, lab.host()
    lab.installation.trouble.host_goes_away(host)
    lab.look(3)
    assert lab.balancer == before, "a host that reboots is back soon"
    lab.installation.wait(LOST_AFTER.total_seconds() + 1)
    lab.look(3)
    after = lab.balancer
    assert after.host_id != before.host_id
    assert (after.address, after.published, after.sequence) == (before.address, 30_000, before.sequence + 1)
    lab.installation.trouble.host_comes_back(host, rebooted=False)
    lab.look(3)
    lab.check()
    assert lab.balancer == after, "it does not move back"


def test_a_balancer_leaves_a_drained_host_at_its_deadline(lab: Lab) -> None:
    before, now = lab.balancer, lab.installation.clock.now()
    lab.drain(now + timedelta(minutes=10))
    lab.look()
    assert lab.balancer == before
    lab.installation.wait(601)
    lab.look()
    assert lab.balancer.host_id != before.host_id
    lab.check()


def test_a_balancer_stays_where_it_is_if_no_host_is_left(lab: Lab) -> None:
    before = lab.balancer
    for host in lab.fleet.hosts(limit=9):
        lab.fleet.set_state(lab.tenant.actor, host.id, HostState.DRAINING)
    lab.look()
    assert lab.balancer == before
    lab.check()


def test_a_published_port_that_is_taken_on_the_new_host_changes(lab: Lab) -> None:
    lab.drain(lab.installation.clock.now() + timedelta(minutes=10))
    order = BalancerOrder(name="other", port=80, label="app=web", published=30_000)
    other = lab.installation.balancers.create(lab.tenant.actor, lab.tenant.project, order).balancer
    lab.installation.wait(601)
    lab.look()
    assert (lab.balancer.host_id, lab.balancer.published) == (other.host_id, 30_001)
    lab.check()
