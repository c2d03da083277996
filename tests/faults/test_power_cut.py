"""Server and guests go down together, at every point of every operation. Nobody is charged until they are
back.

A guest that kept running while only the server was down is charged for that time. `verify` proves both.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.faults.checker import faults
from tests.faults.house import HOSTS, House, Worker
from tests.faults.test_lost_host import SCENES, WALK, ask, launched, one
from tests.long import sampled

from teraflock.base.clock import FixedClock, microseconds
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.faults import FOREVER, Killed, Kind, SimulatedFault
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.driver import Handle
from teraflock.instance.lease import store as leases
from teraflock.instance.model import Operation
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.meter import store as meter_store
from teraflock.meter.model import Interval
from teraflock.meter.rules import latest
from teraflock.meter.service import MeterService
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate

OUTAGE = timedelta(hours=60)
READING_SECONDS = 5


@pytest.fixture
def house() -> Iterator[House]:
    clock, database = FixedClock(datetime(2026, 11, 15, tzinfo=UTC)), MemoryDatabase()
    migrate(database, clock)
    house = House(database, MemoryWorld(), clock)
    house.workers.pop()  # one server, as on SQLite
    yield house
    database.close()


def turn(house: House) -> None:
    house.workers[0].look()
    house.workers[0].turn()
    house.wait(READING_SECONDS)


def work(house: House) -> None:
    for _ in range(9):
        turn(house)


def power_cut(house: House) -> None:
    for report in fleet(HOSTS):
        house.trouble.host_comes_back(report.name, rebooted=True)


def restart(house: House, outage: timedelta = OUTAGE) -> Worker:
    """Start a new process after the outage. No other process watches."""
    house.wait(outage.total_seconds())
    house.database.write(leases.let_go_all)
    house.workers[:] = [house.hire()]
    house.workers[0].hosts.take_over()
    return house.workers[0]


def set_clock_back(house: House, by: timedelta) -> None:
    house.wait(-by.total_seconds())


def intervals(house: House) -> tuple[Interval, ...]:
    MeterService(house.database, house.clock).catch_up()
    with house.database.read() as tx:
        return latest(meter_store.intervals_of(tx, one(house).id))


def seen_us(house: House) -> int:
    with house.database.read() as tx:
        row = tx.one("SELECT MAX(seen_at_us) FROM host")
    assert row
    return int(row[0])


def is_sound(house: House) -> bool:
    MeterService(house.database, house.clock).catch_up()
    return verify(house.database).is_sound


@pytest.mark.parametrize("outage", [timedelta(seconds=3), timedelta(hours=60)], ids=["short", "long"])
def test_charges_end_at_the_last_reading_and_resume_with_the_guest(house: House, outage: timedelta) -> None:
    launched(house)
    for _ in range(3):
        turn(house)
    last_us = seen_us(house)
    power_cut(house)
    restart(house, outage)
    back_us = microseconds(house.clock.now())
    turn(house)
    house.settle()
    assert one(house).phase == Phase.RUNNING
    (before,) = intervals(house)
    assert before.until_us == last_us
    assert before.house_fault
    with house.database.read() as tx:
        meter = meter_store.meter(tx, one(house).id)
    assert meter
    assert meter.open
    assert meter.open.from_us >= back_us
    assert is_sound(house)


def test_guest_that_kept_running_is_charged_without_a_gap(house: House) -> None:
    launched(house)
    began_us = microseconds(one(house).running_since or house.clock.now())
    restart(house)
    for _ in range(3):
        turn(house)
    assert one(house).phase == Phase.RUNNING
    assert intervals(house) == ()
    with house.database.read() as tx:
        meter = meter_store.meter(tx, one(house).id)
    assert meter
    assert meter.open
    assert meter.open.from_us == began_us
    assert is_sound(house)


def test_guest_that_restarted_is_not_charged_for_the_outage(house: House) -> None:
    launched(house)
    turn(house)
    last_us = seen_us(house)
    house.wait(3600)
    power_cut(house)
    (view,) = house.service.page(house.tenant.project.id, limit=9)
    found = next(iter(house.engine.sightings()))
    house.engine.start(Handle(view.instance.id, found.host))
    restart(house)
    for _ in range(3):
        turn(house)
    assert one(house).phase == Phase.RUNNING
    assert [each.until_us for each in intervals(house)] == [last_us]
    assert is_sound(house)


def test_an_engine_that_is_still_down_when_the_server_is_back_changes_nothing(house: House) -> None:
    launched(house)
    turn(house)
    last_us = seen_us(house)
    power_cut(house)
    house.trouble.engine_goes_down()
    worker = restart(house)
    worker.hosts.turn()
    assert worker.hosts.has_looked
    assert one(house).phase == Phase.AWAY
    house.trouble.engine_comes_back()
    house.settle()
    assert [each.until_us for each in intervals(house)] == [last_us]
    assert is_sound(house)


def test_an_engine_that_cannot_show_its_guests_is_asked_again(house: House) -> None:
    launched(house)
    turn(house)
    last_us = seen_us(house)
    power_cut(house)
    house.trouble.faults(SimulatedFault(call="sightings", kind=Kind.BUSY, times=2))
    worker = restart(house)
    worker.hosts.turn()
    assert not worker.hosts.has_looked
    worker.hosts.turn()
    worker.hosts.turn()
    assert worker.hosts.has_looked
    house.settle()
    assert [each.until_us for each in intervals(house)] == [last_us]


def test_an_engine_that_never_shows_its_guests_does_not_hold_up_the_other_loops(house: House) -> None:
    launched(house)
    house.trouble.faults(SimulatedFault(call="sightings", kind=Kind.BUSY, times=FOREVER))
    worker = restart(house)
    for _ in range(4):
        worker.hosts.turn()
    assert worker.hosts.has_looked


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM ran_unwatched",
        "UPDATE ran_unwatched SET started_us = at_us",
        "UPDATE ran_unwatched SET at_us = at_us + 1",
    ],
)
def test_verify_finds_a_guest_charged_for_an_outage_without_proof(house: House, damage: str) -> None:
    launched(house)
    restart(house)
    for _ in range(3):
        turn(house)
    assert is_sound(house)
    house.database.write(lambda tx: tx.run(damage))
    assert not is_sound(house)


def test_verify_finds_an_outage_missing_from_events(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charges rely on events; heartbeats do not."""
    launched(house)
    turn(house)
    power_cut(house)
    monkeypatch.setattr("teraflock.reconcile.outage.settle", lambda *words: 0)
    restart(house)
    house.settle()
    assert not is_sound(house)


@pytest.mark.parametrize("back", [timedelta(seconds=8), timedelta(hours=20)], ids=["a little", "far"])
def test_a_guest_launched_after_the_clock_was_set_back_into_an_outage_is_charged(
    house: House, back: timedelta
) -> None:
    """The time of the outage repeats, and this time the site is watched."""
    restart(house)
    turn(house)
    set_clock_back(house, back)
    ask(house, "launch", Order(name="one", shape=ShapeWish(gpu="V100")))
    work(house)
    assert one(house).phase == Phase.RUNNING
    assert is_sound(house)
    house.wait(back.total_seconds())
    work(house)
    assert is_sound(house)


@pytest.mark.parametrize(
    ("back", "wish"),
    [
        (timedelta(hours=20), ("label", "one", {"team": "vision"})),
        (timedelta(hours=20), ("stop", "one")),
        (OUTAGE + timedelta(seconds=25), ("label", "one", {"team": "vision"})),
    ],
    ids=["changed in it", "stopped in it", "changed before it"],
)
def test_a_guest_charged_for_an_outage_is_found_after_the_clock_was_set_back(
    house: House, back: timedelta, wish: tuple[Any, ...]
) -> None:
    """Its run began before the outage, so watching that time later proves nothing, and neither does a change
    made then."""
    launched(house)
    work(house)
    restart(house)
    turn(house)
    set_clock_back(house, back)
    ask(house, *wish)
    work(house)
    assert is_sound(house)
    house.database.write(lambda tx: tx.run("DELETE FROM ran_unwatched"))
    assert not is_sound(house)


def test_the_next_outage_after_the_clock_was_set_back_is_not_charged(house: House) -> None:
    restart(house)
    turn(house)
    set_clock_back(house, timedelta(hours=20))
    ask(house, "launch", Order(name="one", shape=ShapeWish(gpu="V100")))
    work(house)
    last_us = seen_us(house)
    power_cut(house)
    restart(house)
    house.settle()
    assert [each.until_us for each in intervals(house)] == [last_us]
    assert is_sound(house)


@pytest.mark.parametrize(
    ("operation", "point"), sampled(WALK, every=12, because="every point", id=lambda case: str(case[1]))
)
def test_power_cut_is_not_charged_and_stays_consistent(
    house: House, operation: Operation, point: str
) -> None:
    set_up, wish, turn_back = SCENES[operation]
    set_up(house)
    house.workers[1:] = []
    if ":undo:" in point:
        assert turn_back is not None
        house.trouble.faults(turn_back)
    wish(house)
    house.workers[0].dies_at = point
    with pytest.raises(Killed):
        work(house)
    cut_us = microseconds(house.clock.now())
    power_cut(house)
    house.trouble.no_more_faults()
    restart(house)
    back_us = microseconds(house.clock.now())
    for _ in range(3):
        turn(house)
    house.settle()
    assert faults(house.database, house.world, house.clock.now()) == []
    for each in intervals(house):
        if each.run_us is not None:
            assert each.until_us <= cut_us or each.from_us >= back_us
    assert is_sound(house)
