"""Readings are stored within a fixed size, and tenants see only their own. On both databases."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.faults.installation import Installation

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
def installation(database: Database) -> Installation:
    installation = Installation(database, MemoryWorld(), FixedClock(START))
    installation.settle()
    return installation


def loop_of(installation: Installation) -> TelemetryLoop:
    return TelemetryLoop(
        Surroundings(
            database=installation.database,
            clock=installation.clock,
            engines=installation.engines,
            random_bytes=installation.random_bytes,
        )
    )


def launched(installation: Installation, gpus: int = 1) -> Instance:
    order = Order(shape=ShapeWish(gpu="V100", gpus=gpus))
    made = installation.service.launch(installation.tenant.actor, installation.tenant.project, order)[0]
    installation.settle()
    return made


def read(installation: Installation, loop: TelemetryLoop, times: int, seconds: int = FINE_SECONDS) -> None:
    for _ in range(times):
        installation.clock.move(timedelta(seconds=seconds))
        loop.turn()


def rows(installation: Installation, step: int) -> int:
    with installation.database.read() as tx:
        found = tx.one("SELECT COUNT(*) FROM reading_past WHERE step_seconds = :step", step=step)
    assert found is not None
    return int(found[0])


def test_a_tenant_sees_a_card_only_while_the_instance_holds_it(installation: Installation) -> None:
    project, loop = installation.tenant.project.id, loop_of(installation)
    service = TelemetryService(installation.database, installation.clock)
    read(installation, loop, 2)
    made = launched(installation)
    read(installation, loop, 3)
    (now,) = service.last_of_instances(project)
    assert (now.placed.id, now.simulated, len(now.cards)) == (made.id, True, 1)
    assert (now.cards[0].utilisation_percent or 0) >= 60
    assert now.guest.cpu_millicores
    mine = service.of_instance(project, made.id, ReadingPeriod.HOUR, None)
    assert {(each.instance_id, len(each.times)) for each in mine.series} == {(made.id, 3)}
    assert sorted(bool(each.slot) for each in mine.series) == [False, True]

    installation.service.delete(installation.tenant.actor, installation.tenant.project, made.id)
    installation.settle()
    second = launched(installation)
    read(installation, loop, 2)
    other = service.of_instance(project, second.id, ReadingPeriod.HOUR, None)
    assert {each.instance_id for each in other.series} == {second.id}
    with pytest.raises(NotFound):
        service.of_instance(ProjectId("prj_other"), second.id, ReadingPeriod.HOUR, None)
    assert service.last_of_instances(ProjectId("prj_other")) == ()


def test_old_readings_are_joined_and_deleted(installation: Installation) -> None:
    loop, service = loop_of(installation), TelemetryService(installation.database, installation.clock)
    read(installation, loop, 65)
    assert rows(installation, FINE_SECONDS) == 3 * len(installation.engine.hosts())
    assert rows(installation, COARSE_SECONDS) == len(installation.engine.hosts())
    day = service.of_host("simulated-0001", ReadingPeriod.DAY, None)
    assert {len(each.times) for each in day.series} == {2}
    assert {
        len(each.times) for each in service.of_host("simulated-0001", ReadingPeriod.MONTH, None).series
    } == {1}
    installation.clock.move(timedelta(days=31))
    loop_of(installation).turn()
    assert rows(installation, FINE_SECONDS) == len(installation.engine.hosts())
    for until in (START, datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=EAST)):
        assert service.of_host("simulated-0001", ReadingPeriod.MONTH, until).series == ()
    latest = service.of_host("simulated-0001", ReadingPeriod.HOUR, datetime.max.replace(tzinfo=EAST))
    assert latest.until == installation.clock.now()


def test_two_servers_store_one_sample_per_step(installation: Installation) -> None:
    first, second = loop_of(installation), loop_of(installation)
    read(installation, first, 2)
    second.turn()
    service = TelemetryService(installation.database, installation.clock)
    history = service.of_host("simulated-0001", ReadingPeriod.HOUR, None)
    assert {len(each.times) for each in history.series} == {2}


def test_an_engine_that_is_down_keeps_the_last_reading(installation: Installation) -> None:
    loop = loop_of(installation)
    read(installation, loop, 1)
    first = installation.clock.now()
    installation.trouble.engine_goes_down()
    read(installation, loop, 2)
    with installation.database.read() as tx:
        assert {each.reading.at for each in store.last_of_own_hosts(tx)} == {first}
