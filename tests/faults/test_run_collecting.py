"""A command that ended well is not done before its outputs are kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.run_installation import RunInstallation
from tests.faults.test_runs import BEGAN, result

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Unavailable
from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.run.guest import RunGuest
from teraflock.run.model import Run
from teraflock.run.states import RunPhase
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[RunInstallation]:
    clock = FixedClock(BEGAN)
    database = MemoryDatabase()
    migrate(database, clock)
    yield RunInstallation(database, MemoryWorld(), clock, tmp_path)
    database.close()


def test_run_whose_guest_is_made_again_before_its_outputs_are_copied_runs_again(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new guest has an empty disk: its missing outputs are not the result."""
    outputs, struck = RunPulls.outputs, list[str]()

    def late(self: RunPulls, run: Run, guest: RunGuest, folder: str) -> int | None:
        if not struck:
            struck.append(run.id)
            installation.trouble.deleted_by_hand(run.instance_id)
            raise Unavailable("the guest is gone", hint="")
        return outputs(self, run, guest, folder)

    monkeypatch.setattr(RunPulls, "outputs", late)
    run = installation.finish(installation.ask("train", "30", "1", "5"))
    assert struck
    assert (run.phase, run.exit_code, run.attempt) == (RunPhase.DONE, 0, 2)
    assert result(installation, run) == chain(30).hex()


def test_done_run_says_which_checkpoint_could_not_be_kept(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted with the instance: nobody would look for it otherwise."""
    monkeypatch.setattr(RunPulls, "checkpoints", lambda *_: "`big`: The folder has more than 10,000 files")
    run = installation.finish(installation.ask("train", "3", "1", "100"))
    assert run.phase == RunPhase.DONE
    assert "`big`" in run.problem
