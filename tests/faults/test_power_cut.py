"""Server and guests go down together, at every point of every operation. Nobody is charged until they are
back.

A guest that kept running while only the server was down is charged for that time. `verify` proves both.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.faults.checker import faults
from tests.faults.installation import HOSTS, Installation, Worker
from tests.faults.test_lost_host import SCENES, WALK, ask, launched, one
from tests.long import sampled

from teraflock.base.clock import microseconds
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.faults import FOREVER, Killed, Kind, SimulatedFault
from teraflock.drivers.simulated.fleet import fleet
from teraflock.instance.driver import Handle
from teraflock.instance.lease import store as leases
from teraflock.instance.model import Operation
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.meter import store as meter_store
from teraflock.meter.model import Interval
from teraflock.meter.rules import latest
from teraflock.meter.service import MeterService

OUTAGE = timedelta(hours=60)
READING_SECONDS = 5


@pytest.fixture
def installation() -> Iterator[Installation]:
    installation = Installation.in_memory(datetime(2026, 11, 15, tzinfo=UTC))
    installation.workers.pop()  # one server, as on SQLite
    yield installation
    installation.database.close()


def turn(installation: Installation) -> None:
    installation.workers[0].look()
    installation.workers[0].turn()
    installation.wait(READING_SECONDS)


def work(installation: Installation) -> None:
    for _ in range(9):
        turn(installation)


def power_cut(installation: Installation) -> None:
    for report in fleet(HOSTS):
        installation.trouble.host_comes_back(report.name, rebooted=True)


def restart(installation: Installation, outage: timedelta = OUTAGE) -> Worker:
    """Start a new process after the outage. No other process watches."""
    installation.wait(outage.total_seconds())
    installation.database.write(leases.let_go_all)
    installation.workers[:] = [installation.hire()]
    installation.workers[0].hosts.take_over()
    return installation.workers[0]


def set_clock_back(installation: Installation, by: timedelta) -> None:
    installation.wait(-by.total_seconds())


def intervals(installation: Installation) -> tuple[Interval, ...]:
    MeterService(installation.database, installation.clock).catch_up()
    with installation.database.read() as tx:
        return latest(meter_store.intervals_of(tx, one(installation).id))


def seen_us(installation: Installation) -> int:
    with installation.database.read() as tx:
        row = tx.one("SELECT MAX(seen_at_us) FROM host")
    assert row
    return int(row[0])


def is_sound(installation: Installation) -> bool:
    MeterService(installation.database, installation.clock).catch_up()
    return verify(installation.database).is_sound


@pytest.mark.parametrize("outage", [timedelta(seconds=3), timedelta(hours=60)], ids=["short", "long"])
def test_charges_end_at_the_last_reading_and_resume_with_the_guest(
    installation: Installation, outage: timedelta
) -> None:
    launched(installation)
    for _ in range(3):
        turn(installation)
    last_us = seen_us(installation)
    power_cut(installation)
    restart(installation, outage)
    back_us = microseconds(installation.clock.now())
    turn(installation)
    installation.settle()
    assert one(installation).phase == Phase.RUNNING
    (before,) = intervals(installation)
    assert before.until_us == last_us
    assert before.operator_fault
    with installation.database.read() as tx:
        meter = meter_store.meter(tx, one(installation).id)
    assert meter
    assert meter.open
    assert meter.open.from_us >= back_us
    assert is_sound(installation)


def test_guest_that_kept_running_is_charged_without_a_gap(installation: Installation) -> None:
    launched(installation)
    began_us = microseconds(one(installation).running_since or installation.clock.now())
    restart(installation)
    for _ in range(3):
        turn(installation)
    assert one(installation).phase == Phase.RUNNING
    assert intervals(installation) == ()
    with installation.database.read() as tx:
        meter = meter_store.meter(tx, one(installation).id)
    assert meter
    assert meter.open
    assert meter.open.from_us == began_us
    assert is_sound(installation)


def test_guest_that_restarted_is_not_charged_for_the_outage(installation: Installation) -> None:
    launched(installation)
    turn(installation)
    last_us = seen_us(installation)
    installation.wait(3600)
    power_cut(installation)
    (view,) = installation.service.page(installation.tenant.project.id, limit=9)
    found = next(iter(installation.engine.sightings()))
    installation.engine.start(Handle(view.instance.id, found.host))
    restart(installation)
    for _ in range(3):
        turn(installation)
    assert one(installation).phase == Phase.RUNNING
    assert [each.until_us for each in intervals(installation)] == [last_us]
    assert is_sound(installation)


def test_an_engine_that_is_still_down_when_the_server_is_back_changes_nothing(
    installation: Installation,
) -> None:
    launched(installation)
    turn(installation)
    last_us = seen_us(installation)
    power_cut(installation)
    installation.trouble.engine_goes_down()
    worker = restart(installation)
    worker.hosts.turn()
    assert worker.hosts.has_looked
    assert one(installation).phase == Phase.AWAY
    installation.trouble.engine_comes_back()
    installation.settle()
    assert [each.until_us for each in intervals(installation)] == [last_us]
    assert is_sound(installation)


def test_an_engine_that_cannot_show_its_guests_is_asked_again(installation: Installation) -> None:
    launched(installation)
    turn(installation)
    last_us = seen_us(installation)
    power_cut(installation)
    installation.trouble.faults(SimulatedFault(call="sightings", kind=Kind.BUSY, times=2))
    worker = restart(installation)
    worker.hosts.turn()
    assert not worker.hosts.has_looked
    worker.hosts.turn()
    worker.hosts.turn()
    assert worker.hosts.has_looked
    installation.settle()
    assert [each.until_us for each in intervals(installation)] == [last_us]


def test_an_engine_that_never_shows_its_guests_does_not_hold_up_the_other_loops(
    installation: Installation,
) -> None:
    launched(installation)
    installation.trouble.faults(SimulatedFault(call="sightings", kind=Kind.BUSY, times=FOREVER))
    worker = restart(installation)
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
def test_verify_finds_a_guest_charged_for_an_outage_without_proof(
    installation: Installation, damage: str
) -> None:
    launched(installation)
    restart(installation)
    for _ in range(3):
        turn(installation)
    assert is_sound(installation)
    installation.database.write(lambda tx: tx.run(damage))
    assert not is_sound(installation)


def test_verify_finds_an_outage_missing_from_events(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charges rely on events; heartbeats do not."""
    launched(installation)
    turn(installation)
    power_cut(installation)
    monkeypatch.setattr("teraflock.reconcile.outage.settle", lambda *words: 0)
    restart(installation)
    installation.settle()
    assert not is_sound(installation)


@pytest.mark.parametrize("back", [timedelta(seconds=8), timedelta(hours=20)], ids=["a little", "far"])
def test_a_guest_launched_after_the_clock_was_set_back_into_an_outage_is_charged(
    installation: Installation, back: timedelta
) -> None:
    """The time of the outage repeats, and this time the site is watched."""
    restart(installation)
    turn(installation)
    set_clock_back(installation, back)
    ask(installation, "launch", Order(name="one", shape=ShapeWish(gpu="V100")))
    work(installation)
    assert one(installation).phase == Phase.RUNNING
    assert is_sound(installation)
    installation.wait(back.total_seconds())
    work(installation)
    assert is_sound(installation)


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
    installation: Installation, back: timedelta, wish: tuple[Any, ...]
) -> None:
    """Its run began before the outage, so watching that time later proves nothing, and neither does a change
    made then."""
    launched(installation)
    work(installation)
    restart(installation)
    turn(installation)
    set_clock_back(installation, back)
    ask(installation, *wish)
    work(installation)
    assert is_sound(installation)
    installation.database.write(lambda tx: tx.run("DELETE FROM ran_unwatched"))
    assert not is_sound(installation)


def test_the_next_outage_after_the_clock_was_set_back_is_not_charged(installation: Installation) -> None:
    restart(installation)
    turn(installation)
    set_clock_back(installation, timedelta(hours=20))
    ask(installation, "launch", Order(name="one", shape=ShapeWish(gpu="V100")))
    work(installation)
    last_us = seen_us(installation)
    power_cut(installation)
    restart(installation)
    installation.settle()
    assert [each.until_us for each in intervals(installation)] == [last_us]
    assert is_sound(installation)


@pytest.mark.parametrize(
    ("operation", "point"), sampled(WALK, every=12, because="every point", id=lambda case: str(case[1]))
)
def test_power_cut_is_not_charged_and_stays_consistent(
    installation: Installation, operation: Operation, point: str
) -> None:
    set_up, wish, turn_back = SCENES[operation]
    set_up(installation)
    installation.workers[1:] = []
    if ":undo:" in point:
        assert turn_back is not None
        installation.trouble.faults(turn_back)
    wish(installation)
    installation.workers[0].dies_at = point
    with pytest.raises(Killed):
        work(installation)
    cut_us = microseconds(installation.clock.now())
    power_cut(installation)
    installation.trouble.no_more_faults()
    restart(installation)
    back_us = microseconds(installation.clock.now())
    for _ in range(3):
        turn(installation)
    installation.settle()
    assert faults(installation.database, installation.world, installation.clock.now()) == []
    for each in intervals(installation):
        if each.run_us is not None:
            assert each.until_us <= cut_us or each.from_us >= back_us
    assert is_sound(installation)
