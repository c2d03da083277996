"""Idle cards are listed with the start of their idle time, while a running instance holds them. On both databases."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.faults.house import House

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.model import Host, HostId, HostReport, Idle
from teraflock.fleet.service import IDLE_MIN, FleetService
from teraflock.fleet.store import host as host_named
from teraflock.fleet.store import put_report
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.storage.database import Database

START = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.fixture
def house(database: Database) -> House:
    return House(database, MemoryWorld(), FixedClock(START))


def host_of(house: House, name: str) -> Host:
    with house.database.read() as tx:
        found = host_named(tx, name)
    assert found is not None
    return found


def reported(house: House, name: str, idle: set[str]) -> None:
    """Report the host again, with these cards idle."""
    report = next(each for each in house.engine.hosts() if each.name == name)
    changed: HostReport = replace(
        report, gpus=tuple(replace(gpu, idle=gpu.slot in idle) for gpu in report.gpus)
    )
    house.database.write(
        lambda tx: put_report(tx, "simulated", changed, HostId(""), simulated=True, now=house.clock.now())
    )


def test_idle_cards_are_listed_with_the_start_of_their_idle_time(house: House) -> None:
    fleet, project = FleetService(house.database, house.clock), house.tenant.project.id
    made = house.service.launch(
        house.tenant.actor, house.tenant.project, Order(shape=ShapeWish(gpu="V100", gpus=2))
    )[0]
    house.settle()
    view = house.service.view(project, made.id)
    assert (view.instance.phase, view.host_name is not None) == (Phase.RUNNING, True)
    name, slots = str(view.host_name), [card.slot for card in view.instance.held.gpus]
    assert fleet.idle(project) == {}

    began = house.clock.now()
    reported(house, name, set(slots))
    house.clock.move(IDLE_MIN - timedelta(seconds=1))
    reported(house, name, set(slots))
    assert fleet.idle(project) == {}, "the instance may only be waiting for its data"
    house.clock.move(timedelta(seconds=1))
    reported(house, name, set(slots))
    assert fleet.idle(project) == {made.id: Idle(2, began)}

    reported(house, name, {slots[0]})
    assert fleet.idle(project) == {made.id: Idle(1, began)}

    reported(house, name, set())
    assert fleet.idle(project) == {}


def test_idle_time_starts_no_earlier_than_the_instance(house: House) -> None:
    fleet, project = FleetService(house.database, house.clock), house.tenant.project.id
    for host in house.engine.hosts():
        reported(house, host.name, {gpu.slot for gpu in host.gpus})
    house.clock.move(timedelta(hours=1))
    house.service.launch(house.tenant.actor, house.tenant.project, Order(shape=ShapeWish(gpu="V100")))
    house.workers[0].turn()  # without the loop for hosts, because simulated hosts never report idle cards
    assert fleet.idle(project) == {}
    house.clock.move(IDLE_MIN)
    (idle,) = fleet.idle(project).values()
    assert idle.since >= START + timedelta(hours=1)
    assert idle.gpus == 1
