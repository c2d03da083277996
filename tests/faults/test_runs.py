"""Runs on simulated hosts: each ends with the result of an uninterrupted one, whatever happens on the way."""

import io
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.faults.run_house import RunHouse

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.states import Phase, Wanted
from teraflock.run.model import Run
from teraflock.run.states import RunPhase
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate

BEGAN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[RunHouse]:
    clock = FixedClock(BEGAN)
    database = MemoryDatabase()
    migrate(database, clock)
    made = RunHouse(database, MemoryWorld(), clock, tmp_path)
    yield made
    made.database.close()


def result(house: RunHouse, run: Run) -> str:
    with tarfile.open(fileobj=io.BytesIO(house.outputs(run))) as archive:
        content = archive.extractfile("outputs/result")
        assert content is not None
        return content.read().decode()


def test_run_leads_from_the_command_to_its_outputs(house: RunHouse) -> None:
    run = house.finish(house.ask("train", "20", "1", "5"))
    assert (run.phase, run.exit_code, run.attempt, run.problem) == (RunPhase.DONE, 0, 1, "")
    assert result(house, run) == chain(20).hex()
    assert house.text(run) == "".join(f"step {each}\n" for each in range(1, 21))
    instance = house.service.view(house.tenant.project.id, run.instance_id).instance
    assert (instance.phase, instance.wanted) == (Phase.GONE, Wanted.GONE)
