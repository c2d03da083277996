"""Preemptible instances on own hosts: who runs, what it pays, and that a crash at any point loses nothing."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.faults.installation import Installation
from tests.long import counted
from tests.simulation.crashing_database import CrashingDatabase
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Refused, TeraflockError
from teraflock.base.quantities import GIB
from teraflock.bill.budget.model import Budget
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.instance.bid.rules import FIRM_FOR, NOTICE, REST, noticed
from teraflock.instance.claims import NoCapacity
from teraflock.instance.driver import Handle
from teraflock.instance.engine_errors import EngineDown
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.instance.volume import store as volumes
from teraflock.reconcile.bid_notices import NOTICE_FILE, BidNotices
from teraflock.reconcile.bills import BillLoop
from teraflock.storage.events import events_of_project
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate

BOOK = """\
- from: 2026-01-01
  currency: USD
  gpu: {V100: {on-demand: 3/hour, spot: 1/hour}}
  vcpu: {on-demand: 0.02/hour, spot: 0.01/hour}
  disk: 0.1/month
  minimum: 1800 seconds
"""
DOLLAR = 1_000_000
STOPPING = 40
"""Seconds that a stop takes at most."""


class Yard:
    """Two hosts with two cards each, and a price book."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = FixedClock(datetime(2026, 3, 5, 9, 0, tzinfo=UTC))
        inner = MemoryDatabase()
        migrate(inner, self.clock)
        self.crash = Random(seed)
        self.risk = 0.0
        self.kills = 0
        database = CrashingDatabase(inner, self._before, self._after)
        self.installation = Installation(database, MemoryWorld(), self.clock, seed=seed)
        self.bills = BillService(database, self.clock, RATES, self.installation.random_bytes)
        self.bills.prices.take(BOOK, name="prices.yaml", member="mem")
        self.billing = BillLoop(self.bills, self.clock)

    def _before(self, *_: object) -> None:
        self._may_die("before")

    def _after(self, *_: object) -> None:
        self._may_die("after")

    def _may_die(self, point: str) -> None:
        if self.crash.random() < self.risk:
            self.kills += 1
            raise Killed(point)

    def launch(self, name: str, mode: str = "on-demand", bid: float | None = None, **more: Any) -> str:
        """Launch one card. Return the id of the queued launch if it waits."""
        tenant = self.installation.tenant
        order = Order(
            name=name,
            shape=ShapeWish(gpu="V100", gpus=more.pop("gpus", 1)),
            mode=mode,
            bid_micros_per_hour=None if bid is None else round(bid * DOLLAR),
            **more,
        )
        _, queued = self.installation.service.launch_or_queue(tenant.actor, tenant.project, order)
        return queued.id if queued else ""

    def fill(self, count: int, mode: str = "on-demand", **more: Any) -> None:
        for number in range(count):
            self.launch(f"{mode}-{number}", mode, **more)
        self.pass_time(5)

    def bid(self, name: str, dollars: float) -> None:
        tenant = self.installation.tenant
        self.installation.service.bids.change(tenant.actor, tenant.project, name, round(dollars * DOLLAR))

    def ask(self, verb: str, name: str) -> None:
        tenant = self.installation.tenant
        getattr(self.installation.service, verb)(tenant.actor, tenant.project, name)

    def pass_time(self, seconds: float, step: float = 5) -> None:
        for _ in range(max(1, round(seconds / step))):
            for act in ("beat", "look", "turn"):
                self._survive(act)
            self.installation.wait(step)
            self.check_cards()

    def _survive(self, act: str) -> None:
        try:
            getattr(self.installation.workers[0], act)()
        except Killed:
            risk, self.risk = self.risk, 0.0
            self.installation.workers[0] = self.installation.hire()
            self.risk = risk

    def seen(self, name: str) -> Instance:
        return self.installation.service.view(self.installation.tenant.project.id, name).instance

    def phases(self, *names: str) -> tuple[Phase, ...]:
        return tuple(self.seen(name).phase for name in names)

    def price(self, name: str) -> float:
        how = self.seen(name).preemptible
        assert how is not None
        return how.card_micros_per_hour / DOLLAR

    def file(self, name: str, path: str) -> str:
        view = self.installation.service.view(self.installation.tenant.project.id, name)
        handle = Handle(view.instance.id, view.host_name or "")
        ran = self.installation.engine.run(handle, ("cat", path), stdin=b"", seconds_max=1)
        return ran.stdout.decode()

    def check_cards(self) -> None:
        """No card is sold twice: what instances hold is what the cards' rows say, and no more than there are."""
        with self.installation.database.read() as tx:
            held = tx.all(
                "SELECT g.slot, g.host_id, i.phase FROM host_gpu g JOIN instance i ON i.id = g.instance_id"
            )
            wanted = tx.all(
                "SELECT host_id, SUM(gpus) FROM instance WHERE phase IN ('running', 'starting') GROUP BY host_id"
            )
        assert all(phase not in ("stopped", "gone", "failed") for *_, phase in held)
        assert all(count <= 2 for _, count in wanted)

    def is_sound(self) -> bool:
        for _ in range(3):
            self.billing.turn()
        verdict = verify(self.installation.database)
        assert verdict.faults == ()
        return True


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard()
    yield made
    made.installation.database.close()


def test_launch_on_demand_takes_the_card_of_a_spot_instance_with_notice(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("cheap", "spot")
    yard.pass_time(5)
    assert yard.seen("cheap").phase == Phase.RUNNING
    assert yard.launch("urgent"), "it waits in the queue until the card is free"
    yard.pass_time(10)
    leaving = yard.seen("cheap")
    assert leaving.phase == Phase.RUNNING
    assert leaving.preemptible is not None
    assert leaving.preemptible.leaving_at is not None
    assert "it stops" in leaving.notice
    assert yard.file("cheap", NOTICE_FILE) == f"{leaving.preemptible.leaving_at.isoformat()}\n"
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    assert yard.phases("cheap", "urgent") == (Phase.STOPPED, Phase.RUNNING)
    assert not yard.seen("cheap").held.gpus
    assert yard.seen("cheap").held.disk_bytes > 0
    yard.ask("delete", "urgent")
    yard.pass_time(REST.total_seconds() + STOPPING)
    assert yard.seen("cheap").phase == Phase.RUNNING
    assert yard.seen("cheap").notice == ""
    assert yard.is_sound()


def test_higher_bid_wins_and_pays_the_highest_losing_bid(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("low", "bid", 1.5)
    yard.pass_time(FIRM_FOR.total_seconds() + 60, step=60)
    assert yard.price("low") == 1.0, "without a rival, the floor"
    assert yard.launch("high", "bid", 2.5)
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    assert yard.phases("low", "high") == (Phase.STOPPED, Phase.RUNNING)
    assert yard.price("high") == 1.5
    yard.bid("low", 2.0)
    yard.pass_time(10)
    assert yard.price("high") == 2.0
    yard.pass_time(FIRM_FOR.total_seconds(), step=60)
    yard.bid("low", 3.0)
    yard.pass_time(NOTICE.total_seconds() + STOPPING + REST.total_seconds())
    assert yard.phases("low", "high") == (Phase.RUNNING, Phase.STOPPED)
    assert yard.price("low") == 2.5
    with yard.installation.database.read() as tx:
        prices = tx.all("SELECT price_micros FROM auction ORDER BY id")
    assert {1_000_000, 1_500_000, 2_000_000, 2_500_000} <= {row[0] for row in prices}
    assert yard.is_sound()


def test_bid_is_charged_exactly_also_when_its_price_changes_inside_a_day(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("low", "bid", 1.5)
    yard.pass_time(FIRM_FOR.total_seconds() + 60, step=60)
    yard.launch("high", "bid", 2.5)
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    yard.pass_time(1800, step=60)
    yard.bid("low", 2.25)
    yard.pass_time(1800, step=60)
    yard.ask("stop", "high")
    yard.pass_time(STOPPING)
    assert yard.is_sound()
    with yard.installation.database.read() as tx:
        rows = tx.all(
            "SELECT card_micros_per_hour, until_us - from_us FROM meter_interval WHERE name = 'high' AND gpus = 1"
        )
        charged = tx.all("SELECT SUM(gpu_micros), SUM(minimum_micros) FROM charge WHERE name = 'high'")
        lost = tx.all("SELECT SUM(minimum_micros) FROM charge WHERE name = 'low'")
    assert {price for price, _ in rows} >= {1_500_000, 2_250_000}
    assert charged[0][0] == sum(price * us // 3_600_000_000 for price, us in rows)
    assert lost[0][0] == 0, "who lost its card pays no minimum"


def test_equal_bids_and_fresh_winners_do_not_displace_each_other(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("first", "bid", 2.0)
    yard.pass_time(FIRM_FOR.total_seconds() + 60, step=60)
    with pytest.raises(NoCapacity):
        yard.launch("same", "bid", 2.0)
    yard.launch("more", "bid", 2.1)
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    assert yard.seen("more").phase == Phase.RUNNING
    yard.bid("first", 9.0)
    yard.pass_time(60)
    assert yard.phases("first", "more") == (Phase.STOPPED, Phase.RUNNING), "it began to run a short while ago"
    yard.pass_time(FIRM_FOR.total_seconds() + NOTICE.total_seconds() + STOPPING, step=20)
    assert yard.phases("first", "more") == (Phase.RUNNING, Phase.STOPPED)
    assert yard.is_sound()


def test_launch_on_demand_takes_the_lowest_bid(yard: Yard) -> None:
    for number, price in enumerate((5.0, 3.0, 2.0, 4.0)):
        yard.launch(f"bid-{number}", "bid", price)
    yard.pass_time(5)
    yard.launch("urgent")
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    assert yard.phases("bid-0", "bid-1", "bid-2", "bid-3").count(Phase.STOPPED) == 1
    assert yard.seen("bid-2").phase == Phase.STOPPED


def test_launch_with_a_volume_takes_only_cards_of_its_host(yard: Yard) -> None:
    with yard.installation.database.read() as tx:
        first, second = [each for each in fleet.hosts(tx, limit=9) if each.gpus]
    tenant, service = yard.installation.tenant, yard.installation.service
    disk = service.volumes.create(tenant.actor, tenant.project, "disk", GIB).volume
    placed = replace(disk, site=first.site, host_id=first.id)
    yard.installation.database.write(lambda tx: volumes.put(tx, placed))
    for number in range(2):
        yard.launch(f"busy-{number}", host=first.name)
        yard.launch(f"cheap-{number}", "spot", host=second.name)
    yard.pass_time(5)
    with pytest.raises(NoCapacity):
        yard.launch("urgent", volumes=("disk",))
    assert yard.launch("patient", volumes=("disk",), queue=True)
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    assert yard.phases("cheap-0", "cheap-1") == (Phase.RUNNING, Phase.RUNNING)


def test_project_without_budget_takes_no_cards(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("cheap", "spot")
    yard.pass_time(5)
    project = yard.installation.tenant.project.id
    budget = Budget(project_id=project, currency="USD", micros=1_000, levels=(), hard_stop=True)
    yard.bills.budgets.set(budget)
    with pytest.raises(NoCapacity):
        yard.launch("urgent")
    yard.launch("later", queue=True)
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    assert yard.seen("cheap").notice == ""


def test_cancelled_launch_withdraws_the_notice(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("cheap", "spot")
    yard.pass_time(5)
    queued = yard.launch("urgent")
    yard.pass_time(10)
    tenant = yard.installation.tenant
    yard.installation.service.queue.cancel(tenant.actor, tenant.project, queued)
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    cheap = yard.seen("cheap")
    assert (cheap.phase, cheap.notice) == (Phase.RUNNING, "")
    assert yard.file("cheap", NOTICE_FILE) == ""
    assert cheap.preemptible is not None
    assert cheap.preemptible.leaving_at is None


def test_stop_by_the_tenant_ends_the_wait_for_cards(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("cheap", "spot")
    yard.pass_time(5)
    yard.launch("urgent")
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    yard.ask("stop", "cheap")
    yard.ask("delete", "urgent")
    yard.pass_time(REST.total_seconds() + STOPPING)
    assert yard.seen("cheap").phase == Phase.STOPPED


def test_instance_returns_also_if_its_disk_was_lost_while_it_waited(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("cheap", "spot")
    yard.pass_time(5)
    assert yard.launch("urgent")
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    assert yard.seen("cheap").phase == Phase.STOPPED
    yard.installation.trouble.deleted_by_hand(yard.seen("cheap").id)
    yard.pass_time(60)
    yard.ask("delete", "urgent")
    yard.pass_time(REST.total_seconds() + STOPPING)
    assert yard.seen("cheap").phase == Phase.RUNNING
    assert yard.is_sound()


def test_silent_guests_do_not_hold_up_auctions(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.fill(4, "spot")
    told: list[str] = []

    def run(handle: Handle, *_: object, **__: object) -> None:
        told.append(handle.instance_id)
        yard.installation.wait(5)
        raise EngineDown("the guest does not answer")

    monkeypatch.setattr(yard.installation.engine, "run", run)
    notices = BidNotices(yard.installation.workers[0].around)
    now = yard.clock.now()
    leaving = [noticed(yard.seen(f"spot-{number}"), now) for number in range(4)]
    notices.tell(leaving)
    assert len(told) == 1, "the others wait for the next turn"
    for _ in range(3):
        notices.tell(leaving)
    assert len(set(told)) == 4


def test_new_spot_launch_does_not_pass_an_instance_that_waits(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("old", "bid", 2.0)
    yard.pass_time(5)
    yard.launch("urgent")
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    yard.ask("delete", "urgent")
    yard.pass_time(10)
    with pytest.raises(NoCapacity, match="others with an equal or higher bid are waiting"):
        yard.launch("new", "spot", host=_host_of(yard, "old"))


def _host_of(yard: Yard, name: str) -> str:
    return yard.installation.service.view(yard.installation.tenant.project.id, name).host_name or ""


def test_wrong_bids_get_a_sentence(yard: Yard) -> None:
    with pytest.raises(BadInput, match=r"costs at least 1\.00 USD per card and hour"):
        yard.launch("low", "bid", 0.5)
    with pytest.raises(BadInput, match="`--mode bid` needs a price per hour"):
        yard.launch("none", "bid")
    with pytest.raises(BadInput, match="not possible"):
        yard.launch("huge", "bid", 10**7)
    yard.launch("plain")
    yard.pass_time(5)
    with pytest.raises(Refused, match="no bid that can be changed"):
        yard.bid("plain", 2.0)
    yard.launch("one", "bid", 2.0)
    with pytest.raises(BadInput, match="too low"):
        yard.bid("one", 0.1)


def test_instance_event_names_the_end_of_the_notice(yard: Yard) -> None:
    yard.fill(3)
    yard.launch("cheap", "spot")
    yard.pass_time(5)
    yard.launch("urgent")
    yard.pass_time(NOTICE.total_seconds() + STOPPING)
    with yard.installation.database.read() as tx:
        events = events_of_project(tx, yard.installation.tenant.project.id, None, limit=1000)
    kinds = [event.kind for event in events if event.subject == yard.seen("cheap").id]
    assert kinds.index("instance.leaving") < kinds.index("instance.preempted")
    leaving = next(event for event in events if event.kind == "instance.leaving")
    assert "T09:" in str(leaving.details["leaving_at"])


@pytest.mark.parametrize("seeds", counted(2, 12, because="many random markets"))
def test_market_with_crashes_sells_no_card_twice_and_bills_exactly(seeds: int) -> None:
    """Random launches, bids, stops and deletions, while the server dies before and after its transactions."""
    for seed in range(seeds):
        yard = Yard(seed)
        draw, names = Random(seed), list[str]()
        yard.risk = 0.02
        for number in range(40):
            with suppress(TeraflockError, Killed):
                _strike(yard, draw, names, number)
            yard.pass_time(draw.choice((5, 30, 90)), step=15)
        yard.risk = 0.0
        yard.pass_time(FIRM_FOR.total_seconds() + 300, step=60)
        assert yard.kills > 3
        _check_ranks(yard, names)
        assert yard.is_sound()
        yard.installation.database.close()


def _strike(yard: Yard, draw: Random, names: list[str], number: int) -> None:
    lot = draw.random()
    if lot < 0.5:
        mode = draw.choice(("on-demand", "spot", "bid", "bid"))
        name = f"n{number}"
        names.append(name)
        yard.launch(name, mode, round(draw.uniform(1, 4), 2) if mode == "bid" else None)
    elif lot < 0.75 and names:
        yard.bid(draw.choice(names), round(draw.uniform(1, 5), 2))
    elif names:
        yard.ask(draw.choice(("stop", "start", "delete")), draw.choice(names))


def _check_ranks(yard: Yard, names: list[str]) -> None:
    """When all is quiet, nobody waits on a host where a lower bid runs."""
    found = []
    for name in names:
        with suppress(TeraflockError):
            found.append(yard.seen(name))
    waiting = [each for each in found if each.preemptible and each.preemptible.waits_since]
    for loser in waiting:
        for winner in found:
            if winner.host_id == loser.host_id and winner.phase == Phase.RUNNING and winner.preemptible:
                mine, theirs = loser.preemptible, winner.preemptible
                assert mine is not None
                assert (mine.bid_micros_per_hour or DOLLAR) <= (theirs.bid_micros_per_hour or DOLLAR)
