"""Readings are stored within a fixed size, and tenants see only their own. On both databases."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.faults.house import House

from teraflock.base.clock import FixedClock
from teraflock.base.errors import NotFound
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.telemetry import store
from teraflock.fleet.telemetry.model import ReadingPeriod
from teraflock.fleet.telemetry.rules import COARSE_SECONDS, FINE_SECONDS
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.telemetry.service import TelemetryService
from teraflock.reconcile.surroundings import Surroundings
from teraflock.reconcile.telemetry import TelemetryLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import ProjectId

EAST = timezone(timedelta(hours=14))
START = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture
def house(database: Database) -> House:
    house = House(database, MemoryWorld(), FixedClock(START))
    house.settle()
    return house


def loop_of(house: House) -> TelemetryLoop:
    return TelemetryLoop(
        Surroundings(
            database=house.database, clock=house.clock, engines=house.engines, random_bytes=house.random_bytes
        )
    )


def launched(house: House, gpus: int = 1) -> Instance:
    order = Order(shape=ShapeWish(gpu="V100", gpus=gpus))
    made = house.service.launch(house.tenant.actor, house.tenant.project, order)[0]
    house.settle()
    return made


def read(house: House, loop: TelemetryLoop, times: int, seconds: int = FINE_SECONDS) -> None:
    for _ in range(times):
        house.clock.move(timedelta(seconds=seconds))
        loop.turn()


def rows(house: House, step: int) -> int:
    with house.database.read() as tx:
        found = tx.one("SELECT COUNT(*) FROM reading_past WHERE step_seconds = :step", step=step)
    assert found is not None
    return int(found[0])


def test_a_tenant_sees_a_card_only_while_the_instance_holds_it(house: House) -> None:
    project, loop = house.tenant.project.id, loop_of(house)
    service = TelemetryService(house.database, house.clock)
    read(house, loop, 2)
    made = launched(house)
    read(house, loop, 3)
    (now,) = service.last_of_instances(project)
    assert (now.placed.id, now.simulated, len(now.cards)) == (made.id, True, 1)
    assert (now.cards[0].utilisation_percent or 0) >= 60
    assert now.guest.cpu_millicores
    mine = service.of_instance(project, made.id, ReadingPeriod.HOUR, None)
    assert {(each.instance_id, len(each.times)) for each in mine.series} == {(made.id, 3)}
    assert sorted(bool(each.slot) for each in mine.series) == [False, True]

    house.service.delete(house.tenant.actor, house.tenant.project, made.id)
    house.settle()
    second = launched(house)
    read(house, loop, 2)
    other = service.of_instance(project, second.id, ReadingPeriod.HOUR, None)
    assert {each.instance_id for each in other.series} == {second.id}
    with pytest.raises(NotFound):
        service.of_instance(ProjectId("prj_other"), second.id, ReadingPeriod.HOUR, None)
    assert service.last_of_instances(ProjectId("prj_other")) == ()


def test_old_readings_are_joined_and_deleted(house: House) -> None:
    loop, service = loop_of(house), TelemetryService(house.database, house.clock)
    read(house, loop, 65)
    assert rows(house, FINE_SECONDS) == 3 * len(house.engine.hosts())
    assert rows(house, COARSE_SECONDS) == len(house.engine.hosts())
    day = service.of_host("simulated-0001", ReadingPeriod.DAY, None)
    assert {len(each.times) for each in day.series} == {2}
    assert {
        len(each.times) for each in service.of_host("simulated-0001", ReadingPeriod.MONTH, None).series
    } == {1}
    house.clock.move(timedelta(days=31))
    loop_of(house).turn()
    assert rows(house, FINE_SECONDS) == len(house.engine.hosts())
    for until in (START, datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=EAST)):
        assert service.of_host("simulated-0001", ReadingPeriod.MONTH, until).series == ()
    latest = service.of_host("simulated-0001", ReadingPeriod.HOUR, datetime.max.replace(tzinfo=EAST))
    assert latest.until == house.clock.now()


def test_two_servers_store_one_sample_per_step(house: House) -> None:
    first, second = loop_of(house), loop_of(house)
    read(house, first, 2)
    second.turn()
    service = TelemetryService(house.database, house.clock)
    history = service.of_host("simulated-0001", ReadingPeriod.HOUR, None)
    assert {len(each.times) for each in history.series} == {2}


def test_an_engine_that_is_down_keeps_the_last_reading(house: House) -> None:
    loop = loop_of(house)
    read(house, loop, 1)
    first = house.clock.now()
    house.trouble.engine_goes_down()
    read(house, loop, 2)
    with house.database.read() as tx:
        assert {each.reading.at for each in store.last_of_own_hosts(tx)} == {first}
