"""What hosts cost us beside what tenants pay: own and rented hosts, idle ones, corrections. On both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from tests.faults.installation import SKY, Installation
from tests.unit.bill.world import BOOK, RATES, World

from teraflock.base.clock import FixedClock, microseconds
from teraflock.base.errors import BadInput, UnknownName
from teraflock.bill.margin.report import Margin, MarginRow
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostKind
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.storage.database import Database

START = datetime(2026, 11, 15, tzinfo=UTC)
HOUR = 3600 * 10**6


class Lab:
    """A installation with bills, whose loops turn as time passes."""

    def __init__(self, database: Database) -> None:
        self.installation = Installation(database, MemoryWorld(), FixedClock(START), sky=MemoryWorld())
        self.bills = BillService(database, self.installation.clock, RATES)
        self.installation.settle()
        self.installation.clock.move(START + timedelta(hours=1) - self.installation.clock.now())
        self.bills.turn()

    def hosts(self, kind: HostKind = HostKind.OWN) -> list[Host]:
        with self.installation.database.read() as tx:
            return list(fleet.hosts(tx, limit=99, kind=kind))

    def ask(self, act: str, *words: object) -> None:
        tenant = self.installation.tenant
        getattr(self.installation.service, act)(tenant.actor, tenant.project, *words)
        self.installation.settle()

    def wait(self, **time: float) -> None:
        """Time in which the server watches. A day is two looks: the loops need no more to see nothing change."""
        self.installation.clock.move(timedelta(**time))
        self.installation.workers[0].look()
        self.bills.turn()

    def margin(self, by: str = "host", month: str = "2026-11") -> Margin:
        return self.bills.margin(month, by)  # type: ignore[arg-type]

    def row(self, id: str, by: str = "host", month: str = "2026-11") -> MarginRow:
        (found,) = [row for row in self.margin(by, month).rows if row.id == id]
        return found

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with self.installation.database.read() as tx:
            return tx.all(sql)


@pytest.fixture
def lab(database: Database) -> Lab:
    return Lab(database)


def test_an_idle_own_host_is_cost_without_revenue(lab: Lab) -> None:
    host = lab.hosts()[0]
    lab.bills.host_costs.set(host, 1_200_000, "USD")
    lab.wait(hours=10)
    row = lab.row(host.id)
    assert (row.name, row.currency) == (host.name, "USD")
    assert (row.revenue_micros, row.cost_micros, row.idle_micros) == (0, 12_000_000, 12_000_000)
    assert lab.row("", "project").idle_micros == 12_000_000
    assert not lab.rows("SELECT 1 FROM cost"), "a day is booked when it is over"
    lab.wait(days=2)
    assert lab.rows("SELECT kind, SUM(micros) FROM cost GROUP BY kind") == [("idle", 47 * 1_200_000)]
    assert lab.row(host.id).cost_micros == 58 * 1_200_000


def test_a_rented_host_costs_from_made_to_gone_also_while_the_tenant_pays_nothing(lab: Lab) -> None:
    lab.bills.prices.take(BOOK, name="prices.yaml", member="mem_1")
    lab.ask("launch", Order(name="one", site=SKY, type="gpu"))
    lab.wait(hours=2)
    lab.ask("delete", "one")
    lab.wait(hours=3)
    (host,) = lab.hosts(HostKind.RENTED)
    assert host.made_at is not None
    assert host.gone_at is not None
    us = microseconds(host.gone_at) - microseconds(host.made_at)
    row = lab.row(host.id)
    assert row.cost_micros == 900_000 * us // HOUR
    assert row.idle_micros == 0
    assert row.revenue_micros == lab.margin("instance").rows[0].revenue_micros > 0
    charged = lab.rows("SELECT SUM(micros), MIN(from_us), MAX(until_us) FROM charge")[0]
    assert row.revenue_micros == charged[0]
    assert us > int(str(charged[2])) - int(str(charged[1])), "booting and deleting cost us, not the tenant"
    project = lab.row(lab.installation.tenant.project.id, "project")
    assert project.margin_micros == row.revenue_micros - row.cost_micros
    assert project.name == "operator:default", "many organisations have a project with the same name"
    lab.wait(days=3)
    assert lab.row(host.id).cost_micros == row.cost_micros
    assert lab.bills.verify().faults == ()


def test_cards_divide_an_own_host_and_the_rest_is_idle(lab: Lab) -> None:
    lab.ask("launch", Order(name="one", shape=ShapeWish(gpu="V100", gpus=1)))
    ((instance_id, host_id),) = lab.rows("SELECT id, host_id FROM instance WHERE name = 'one'")
    host = next(each for each in lab.hosts() if each.id == host_id)
    lab.bills.host_costs.set(host, 2_000_000, "USD")
    lab.wait(hours=10)
    assert lab.row(str(instance_id), "instance").cost_micros == 10_000_000
    row = lab.row(host.id)
    assert (row.cost_micros, row.idle_micros) == (20_000_000, 10_000_000)
    lab.wait(days=2)
    row = lab.row(host.id)
    assert (row.cost_micros, row.idle_micros) == (58 * 2_000_000, 58 * 1_000_000)
    assert lab.bills.verify().faults == ()


def test_a_rented_host_costs_what_the_provider_reports_from_then_on(lab: Lab) -> None:
    lab.ask("launch", Order(name="one", site=SKY, type="gpu"))
    lab.wait(hours=2)
    before = lab.margin("instance").rows[0]
    lab.installation.sky_trouble.price_changes(
        "gpu", "east", "on-demand", 500_000, lab.installation.clock.now()
    )
    lab.wait(seconds=0)
    lab.wait(hours=10)
    after = lab.margin("instance").rows[0]
    assert after.cost_micros - before.cost_micros == 5_000_000
    assert (after.name, after.idle_micros) == ("one", 0)
    lab.wait(days=1)
    assert lab.bills.verify().faults == ()


def test_revenue_on_a_host_whose_cost_nobody_set_is_pointed_out(lab: Lab) -> None:
    lab.bills.prices.take(BOOK, name="prices.yaml", member="mem_1")
    lab.ask("launch", Order(name="one", shape=ShapeWish(gpu="V100", gpus=1)))
    lab.wait(minutes=1)
    assert lab.margin().hosts_without_cost == 1
    for host in lab.hosts():
        lab.bills.host_costs.set(host, 1_000_000, "USD")
    lab.wait(minutes=1)
    assert lab.margin().hosts_without_cost == 0


def test_a_change_that_comes_late_books_its_day_again(database: Database) -> None:
    """A clock that was set back, or an event that was seen late, adds a use to a day that is booked."""
    world = World(database)
    host = world.own_host("hst_1", gpus=4, vcpus=64, ram_bytes=1 << 40)
    world.costs.set(host, 4_000_000, "USD")
    world.wait(days=3)
    world.book()
    idle = world.rows("SELECT SUM(micros) FROM cost WHERE kind = 'idle'")
    world.wait(days=-2)
    world.move("ins_1", Phase.RUNNING)
    world.wait(hours=2)
    world.move("ins_1", Phase.STOPPED)
    world.wait(days=2, hours=-2)
    world.book()
    used = world.rows("SELECT SUM(micros) FROM cost WHERE instance_id = 'ins_1'")
    assert int(used[0][0]) == 2_000_000, "one card of four, for two hours"
    total = world.rows("SELECT SUM(micros) FROM cost")
    assert int(total[0][0]) == int(idle[0][0]), "the host cost what it cost"
    assert verify(database).faults == ()


def test_several_servers_book_each_day_once(lab: Lab) -> None:
    for host in lab.hosts():
        lab.bills.host_costs.set(host, 1_000_000, "USD")
    lab.installation.clock.move(timedelta(days=5))
    others = [
        BillService(lab.installation.database, lab.installation.clock, RATES).host_costs for _ in range(4)
    ]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(each.catch_up) for each in others]:
            done.result()
    assert lab.rows("SELECT 1 FROM cost WHERE kind = 'reversal'") == []
    assert lab.bills.verify().faults == ()


def test_a_cost_that_starts_in_the_past_books_those_days_again(lab: Lab) -> None:
    host = lab.hosts()[0]
    costs = lab.bills.host_costs
    costs.set(host, 1_000_000, "USD")
    lab.wait(days=4)
    costs.set(host, 3_000_000, "USD", start=START + timedelta(days=1, hours=12))
    wanted = 35 * 1_000_000 + 61 * 3_000_000
    assert lab.row(host.id).cost_micros == wanted, "before it is booked"
    lab.wait(hours=1)
    assert lab.row(host.id).cost_micros == wanted + 3_000_000
    assert lab.rows("SELECT 1 FROM cost WHERE kind = 'reversal'")
    costs.set(host, None, start=START + timedelta(days=1))
    lab.wait(hours=1)
    assert lab.row(host.id).cost_micros == 23 * 1_000_000, "all days since are taken back"
    assert lab.bills.verify().faults == ()


def test_other_currencies_are_converted_by_the_book_or_shown_apart(lab: Lab) -> None:
    one, two = lab.hosts()[:2]
    lab.bills.host_costs.set(one, 1_000_000, "EUR")
    lab.wait(hours=23)
    assert lab.row(one.id).currency == "EUR", "there is no price book with a rate"
    lab.bills.prices.take(BOOK, name="prices.yaml", member="mem_1")
    lab.bills.host_costs.set(two, 1_000_000, "USD")
    lab.wait(hours=10)
    totals = {row.currency: row.cost_micros for row in lab.margin().totals}
    rate = lab.bills.prices.now().prices.rates["EUR"]
    assert totals["EUR"] == 23_000_000, "of the day before the book"
    assert totals["USD"] == 10_000_000 + round(10_000_000 * 10**6 / rate)


def test_a_bad_cost_is_refused(lab: Lab) -> None:
    host = lab.hosts()[0]
    with pytest.raises(UnknownName, match="currency"):
        lab.bills.host_costs.set(host, 1, "XXX")
    with pytest.raises(BadInput, match="out of range"):
        lab.bills.host_costs.set(host, 10**13, "USD")
    with pytest.raises(BadInput, match="cannot begin before"):
        lab.bills.host_costs.set(host, 1, "USD", start=START - timedelta(days=1))
    assert lab.bills.host_costs.history(limit=9) == []
