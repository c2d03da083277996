"""A worker that was suspended longer than its lease calls no engine and writes nothing, wherever it was
suspended."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.faults.checker import faults
from tests.faults.installation import Installation

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
def installation(tmp_path: Path) -> Iterator[Installation]:
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    database = open_database(f"sqlite:///{tmp_path / 'cloud.db'}", clock)
    installation = Installation(database, MemoryWorld(), clock)
    installation.service.launch(installation.tenant.actor, installation.tenant.project, Order(name="one"))
    yield installation
    database.close()


def asleep_at(installation: Installation, point: str, meanwhile: Callable[[], None]) -> Callable[[str], None]:
    """Return a hook that suspends the worker once, at this point, while others work."""
    left = [point]

    def reach(here: str) -> None:
        if here in left:
            left.remove(here)
            installation.wait(LONG)
            meanwhile()

    return reach


@pytest.mark.parametrize("step", STEPS_OF_LAUNCH)
def test_worker_suspended_before_a_call_does_not_make_it(
    installation: Installation, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    sleeper, other = installation.workers

    def after_waking() -> None:
        original = getattr(installation.engine, step)

        def call(*words: object) -> object:
            called.append(step)
            return original(*words)

        monkeypatch.setattr(installation.engine, step, call)

    monkeypatch.setattr(
        sleeper.instances, "_fault", asleep_at(installation, f"launch.{step}:before", after_waking)
    )
    sleeper.turn()
    assert called == []
    installation.wait(1)
    other.turn()
    assert step in called, "the next worker creates it"
    installation.settle()
    assert faults(installation.database, installation.world, installation.clock.now()) == []


@pytest.mark.parametrize("step", STEPS_OF_LAUNCH)
def test_worker_suspended_during_another_s_work_changes_nothing(
    installation: Installation, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker started and stopped the instance in the meantime: the pending call could undo that."""
    sleeper, other = installation.workers

    def brought_up_and_stopped() -> None:
        for _ in range(3):
            other.turn()
            installation.wait(1)
        installation.service.stop(installation.tenant.actor, installation.tenant.project, "one")
        other.turn()

    reach = asleep_at(installation, f"launch.{step}:before", brought_up_and_stopped)
    monkeypatch.setattr(sleeper.instances, "_fault", reach)
    sleeper.turn()
    (sighting,) = installation.engine.sightings()
    assert sighting.seen == "stopped"
    assert faults(installation.database, installation.world, installation.clock.now()) == []


def test_thread_overtaken_by_its_own_process_does_nothing(installation: Installation) -> None:
    """It was suspended, another worker leased the row and died, and its own process leased it again at the
    same step."""
    sleeper, other = installation.workers
    sleeper.lease()
    (old,) = sleeper.in_hand
    installation.wait(LONG)
    other.beat()
    other.lease()
    assert other.in_hand
    installation.wait(LONG)
    sleeper.beat()
    sleeper.lease()
    _, new = sleeper.in_hand
    before = installation.service.view(installation.tenant.project.id, "one")
    sleeper.instances.advance(old)
    assert list(installation.engine.sightings()) == []
    assert installation.service.view(installation.tenant.project.id, "one") == before
    sleeper.instances.advance(new)
    assert list(installation.engine.sightings())
    installation.settle()
    assert faults(installation.database, installation.world, installation.clock.now()) == []
