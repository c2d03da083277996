"""Whatever a guest answers, or does not: a run that has to stop ends soon."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.faults.run_installation import RunInstallation

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.engine_errors import EngineRefused
from teraflock.run.files import LOG_BYTES_MAX
from teraflock.run.guest import LOG_PIECE_BYTES, GuestState, RunGuest
from teraflock.run.model import Run
from teraflock.run.rules import is_over
from teraflock.run.states import RunPhase
from teraflock.storage.database import Database

BEGAN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
ANSWERING = RunGuest.state


@pytest.fixture
def installation(database: Database, tmp_path: Path) -> RunInstallation:
    return RunInstallation(database, MemoryWorld(), FixedClock(BEGAN), tmp_path)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """When it has an item, no guest answers."""
    switched: list[bool] = []

    def state(self: RunGuest, key: str, log_offset: int) -> GuestState:
        if switched:
            raise EngineRefused("The guest could not state: no reason given")
        return ANSWERING(self, key, log_offset)

    monkeypatch.setattr(RunGuest, "state", state)
    return switched


def running(installation: RunInstallation, budget_micros: int | None = None) -> Run:
    run = installation.ask("train", "10000", "1", "5", budget_micros=budget_micros)
    return installation.until(run, lambda seen: seen.phase == RunPhase.RUNNING and seen.progress is not None)


def ended(installation: RunInstallation, run: Run, *, turns: int) -> Run:
    for _ in range(turns):
        installation.turn()
        if is_over(seen := installation.seen(run)):
            return seen
    raise AssertionError(f"{seen.phase} after {turns} s: {seen.problem}")


def test_output_that_never_ends_puts_off_no_end(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, piece = running(installation), b"y\n" * (LOG_PIECE_BYTES // 2)

    def state(guest: RunGuest, key: str, log_offset: int) -> GuestState:
        more = log_offset + (1 << 40)
        return GuestState(state="running", exit_code=None, progress="", log_bytes=more, log=piece)

    monkeypatch.setattr(RunGuest, "state", state)
    tenant = installation.tenant
    for _ in range(LOG_BYTES_MAX // LOG_PIECE_BYTES):
        installation.turn()
    installation.runs.cancel(tenant.actor, tenant.project, run.id)
    stopped = ended(installation, run, turns=120)
    assert stopped.phase == RunPhase.CANCELLED
    assert stopped.log_guest_bytes > 1 << 40, "the newest output is read, where the progress is"
    assert installation.text(run).startswith("y\n")


def test_progress_is_read_from_the_end_of_a_log_that_is_full(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = running(installation)
    size = 3 * LOG_BYTES_MAX
    lines = b"x" * (LOG_PIECE_BYTES - 1) + b"\n"
    whole = lines * (size // LOG_PIECE_BYTES) + b'{"step": 77, "of": 10000}\n'

    def state(guest: RunGuest, key: str, log_offset: int) -> GuestState:
        piece = whole[log_offset : log_offset + LOG_PIECE_BYTES]
        return GuestState(state="running", exit_code=None, progress="", log_bytes=len(whole), log=piece)

    monkeypatch.setattr(RunGuest, "state", state)
    for _ in range(LOG_BYTES_MAX // LOG_PIECE_BYTES + 10):
        installation.turn()
    progress = installation.seen(run).progress
    assert progress is not None
    assert progress.step == 77


def test_cancelled_run_ends_although_its_guest_does_not_answer(
    installation: RunInstallation, silent: list[bool]
) -> None:
    run, tenant = running(installation), installation.tenant
    silent.append(True)
    installation.runs.cancel(tenant.actor, tenant.project, run.id)
    assert ended(installation, run, turns=15).phase == RunPhase.CANCELLED


def test_budget_ends_a_run_whose_guest_does_not_answer(
    installation: RunInstallation, silent: list[bool]
) -> None:
    run = running(installation, budget_micros=10)
    silent.append(True)
    installation.spent = lambda run: 10
    stopped = ended(installation, run, turns=15)
    assert (stopped.phase, stopped.attempt) == (RunPhase.FAILED, 2)
    assert stopped.problem.startswith("It reached its budget")
    assert len(stopped.instances) == 1, "nothing is launched for the next attempt"


def test_budget_counts_also_if_the_guest_is_silent_after_the_signal(
    installation: RunInstallation, silent: list[bool]
) -> None:
    run = running(installation, budget_micros=10)
    installation.spent = lambda run: 10
    installation.until(run, lambda seen: seen.phase == RunPhase.STOPPING, seconds=0.1)
    silent.append(True)
    stopped = ended(installation, run, turns=15)
    assert (stopped.phase, stopped.attempt) == (RunPhase.FAILED, 1)
    assert stopped.problem.startswith("It reached its budget")
