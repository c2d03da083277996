"""Idle cards are listed with the start of their idle time, while a running instance holds them. On both databases."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.faults.installation import Installation

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
def installation(database: Database) -> Installation:
    return Installation(database, MemoryWorld(), FixedClock(START))


def host_of(installation: Installation, name: str) -> Host:
    with installation.database.read() as tx:
        found = host_named(tx, name)
    assert found is not None
    return found


def reported(installation: Installation, name: str, idle: set[str]) -> None:
    """Report the host again, with these cards idle."""
    report = next(each for each in installation.engine.hosts() if each.name == name)
    changed: HostReport = replace(
        report, gpus=tuple(replace(gpu, idle=gpu.slot in idle) for gpu in report.gpus)
    )
    installation.database.write(
        lambda tx: put_report(
            tx, "simulated", changed, HostId(""), simulated=True, now=installation.clock.now()
        )
    )


def test_idle_cards_are_listed_with_the_start_of_their_idle_time(installation: Installation) -> None:
    fleet, project = FleetService(installation.database, installation.clock), installation.tenant.project.id
    made = installation.service.launch(
        installation.tenant.actor, installation.tenant.project, Order(shape=ShapeWish(gpu="V100", gpus=2))
    )[0]
    installation.settle()
    view = installation.service.view(project, made.id)
    assert (view.instance.phase, view.host_name is not None) == (Phase.RUNNING, True)
    name, slots = str(view.host_name), [card.slot for card in view.instance.held.gpus]
    assert fleet.idle(project) == {}

    began = installation.clock.now()
    reported(installation, name, set(slots))
    installation.clock.move(IDLE_MIN - timedelta(seconds=1))
    reported(installation, name, set(slots))
    assert fleet.idle(project) == {}, "the instance may only be waiting for its data"
    installation.clock.move(timedelta(seconds=1))
    reported(installation, name, set(slots))
    assert fleet.idle(project) == {made.id: Idle(2, began)}

    reported(installation, name, {slots[0]})
    assert fleet.idle(project) == {made.id: Idle(1, began)}

    reported(installation, name, set())
    assert fleet.idle(project) == {}


def test_idle_time_starts_no_earlier_than_the_instance(installation: Installation) -> None:
    fleet, project = FleetService(installation.database, installation.clock), installation.tenant.project.id
    for host in installation.engine.hosts():
        reported(installation, host.name, {gpu.slot for gpu in host.gpus})
    installation.clock.move(timedelta(hours=1))
    installation.service.launch(
        installation.tenant.actor, installation.tenant.project, Order(shape=ShapeWish(gpu="V100"))
    )
    installation.workers[
        0
    ].turn()  # without the loop for hosts, because simulated hosts never report idle cards
    assert fleet.idle(project) == {}
    installation.clock.move(IDLE_MIN)
    (idle,) = fleet.idle(project).values()
    assert idle.since >= START + timedelta(hours=1)
    assert idle.gpus == 1
