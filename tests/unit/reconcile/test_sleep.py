"""A worker that was suspended longer than its lease calls no engine and writes nothing, wherever it was
suspended."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.faults.checker import faults
from tests.faults.house import House

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.model import Operation
from teraflock.instance.orders import Order
from teraflock.instance.steps import STEPS
from teraflock.reconcile.loops import WORKER_TIME
from teraflock.storage.open import open_database

STEPS_OF_LAUNCH = [step.name for step in STEPS[Operation.LAUNCH]]
LONG = WORKER_TIME.total_seconds() + 1


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    database = open_database(f"sqlite:///{tmp_path / 'cloud.db'}", clock)
    house = House(database, MemoryWorld(), clock)
    house.service.launch(house.tenant.actor, house.tenant.project, Order(name="one"))
    yield house
    database.close()


def asleep_at(house: House, point: str, meanwhile: Callable[[], None]) -> Callable[[str], None]:
    """Return a hook that suspends the worker once, at this point, while others work."""
    left = [point]

    def reach(here: str) -> None:
        if here in left:
            left.remove(here)
            house.wait(LONG)
            meanwhile()

    return reach


@pytest.mark.parametrize("step", STEPS_OF_LAUNCH)
def test_worker_suspended_before_a_call_does_not_make_it(
    house: House, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    sleeper, other = house.workers

    def after_waking() -> None:
        original = getattr(house.engine, step)

        def call(*words: object) -> object:
            called.append(step)
            return original(*words)

        monkeypatch.setattr(house.engine, step, call)

    monkeypatch.setattr(sleeper.instances, "_fault", asleep_at(house, f"launch.{step}:before", after_waking))
    sleeper.turn()
    assert called == []
    house.wait(1)
    other.turn()
    assert step in called, "the next worker creates it"
    house.settle()
    assert faults(house.database, house.world, house.clock.now()) == []


@pytest.mark.parametrize("step", STEPS_OF_LAUNCH)
def test_worker_suspended_during_another_s_work_changes_nothing(
    house: House, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker started and stopped the instance in the meantime: the pending call could undo that."""
    sleeper, other = house.workers

    def brought_up_and_stopped() -> None:
        for _ in range(3):
            other.turn()
            house.wait(1)
        house.service.stop(house.tenant.actor, house.tenant.project, "one")
        other.turn()

    reach = asleep_at(house, f"launch.{step}:before", brought_up_and_stopped)
    monkeypatch.setattr(sleeper.instances, "_fault", reach)
    sleeper.turn()
    (sighting,) = house.engine.sightings()
    assert sighting.seen == "stopped"
    assert faults(house.database, house.world, house.clock.now()) == []


def test_thread_overtaken_by_its_own_process_does_nothing(house: House) -> None:
    """It was suspended, another worker leased the row and died, and its own process leased it again at the
    same step."""
    sleeper, other = house.workers
    sleeper.lease()
    (old,) = sleeper.in_hand
    house.wait(LONG)
    other.beat()
    other.lease()
    assert other.in_hand
    house.wait(LONG)
    sleeper.beat()
    sleeper.lease()
    _, new = sleeper.in_hand
    before = house.service.view(house.tenant.project.id, "one")
    sleeper.instances.advance(old)
    assert list(house.engine.sightings()) == []
    assert house.service.view(house.tenant.project.id, "one") == before
    sleeper.instances.advance(new)
    assert list(house.engine.sightings())
    house.settle()
    assert faults(house.database, house.world, house.clock.now()) == []
