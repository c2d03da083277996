"""The progress of a run, from reports that a guest controls."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

import teraflock
from teraflock.api.convert.run import run_answer
from teraflock.run.guest import GuestState, progress_of
from teraflock.run.model import Run, RunEstimate, RunId, RunSpec
from teraflock.run.rules import RunCost
from teraflock.run.states import RunPhase
from teraflock.tenant.model import MemberId, ProjectId
from teraflock.words.run import live_text, memory_text

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
RUN = Run(
    id=RunId("run-1"), project_id=ProjectId("prj"), name="job", spec=RunSpec(command=("true",)), created_at=NOW,
    created_by=MemberId("mem"), since=NOW, due_at=NOW,
)  # fmt: skip
COST = RunCost(currency="USD", micros=1_000_000, micros_per_hour=2_000_000)


def seen(log: bytes = b"", progress: str = "") -> GuestState:
    return GuestState(state="running", exit_code=None, log_bytes=len(log), progress=progress, log=log)


@pytest.mark.parametrize(
    ("log", "step"),
    [
        (b'{"step": 7, "loss": 0.5}\n', 7),
        (b'starting\n{"step": 7}\n{"step": 8, "lr": 0.1}\nsaved\n', 8),
        (b'{"step": 7}\n{"step": 8', 7),
        (b'{"step": "many"}\n', None),
        (b'{"step": -1}\n', None),
        (b'{"epoch": 7}\n', None),
        (b'["step"]\n', None),
        (b'{"step": 7} trailing\n', None),
        (b'\xff{"step": 7}\n', None),
        (b'{"step": 1e400}\n', None),
        (b'{"step": 7}\n{"step": "many"}\n{"step": -1}\n', 7),
        (b'{"step": 7, "loss": NaN}\n', 7),
        (b'{"step": ' + b"[" * 8000 + b"\n", None),
        (b'{"step": ' + b"9" * 8000 + b"}\n", None),
        (b'{"step": 3}\n' + b"x" * 20_000 + b"\n", None),
    ],
)
def test_a_line_of_json_in_the_output_is_a_report(log: bytes, step: int | None) -> None:
    found = progress_of(seen(log), RUN, NOW)
    assert (found.step if found else None) == step


def test_the_helper_counts_more_than_the_output() -> None:
    found = progress_of(seen(b'{"step": 7}\n', json.dumps({"step": 9, "of": 10})), RUN, NOW)
    assert found is not None
    assert (found.step, found.of) == (9, 10)


class Tensor:
    """With one element. JSON has no such thing."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)


def test_the_helper_takes_tensors_and_losses_that_diverged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERA_PROGRESS", str(tmp_path / "progress"))
    run = RUN
    for step, loss in ((5, 0.25), (6, float("nan")), (7, float("inf"))):
        teraflock.progress(Tensor(step), Tensor(10), Tensor(loss))  # type: ignore[arg-type]
        line = (tmp_path / "progress").read_text().splitlines()[-1]
        run = replace(run, progress=progress_of(seen(progress=line), run, NOW))
        assert run.progress is not None
        assert (run.progress.step, run.progress.of) == (step, 10)
    assert run.progress is not None
    assert (run.progress.loss, run.progress.losses) == (None, ((5, 0.25),))


def test_the_helper_does_not_end_a_command_whose_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERA_PROGRESS", "/dev/full")
    teraflock.progress(5, 10)


def test_the_helper_reports_the_memory_of_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: True, max_memory_reserved=lambda: 3 << 30)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setenv("TERA_PROGRESS", str(tmp_path / "progress"))
    teraflock.progress(5, 10, 0.25)
    found = progress_of(seen(progress=(tmp_path / "progress").read_text().strip()), RUN, NOW)
    assert found is not None
    assert found.memory_bytes == 3 << 30
    less = progress_of(seen(progress='{"step": 6, "memory_bytes": 5}'), replace(RUN, progress=found), NOW)
    assert less is not None
    assert less.memory_bytes == 3 << 30, "the most over all reports"
    estimate = RunEstimate(memory_bytes=4 << 30)
    run = replace(RUN, progress=less, spec=replace(RUN.spec, estimate=estimate))
    assert memory_text(run_answer(run, COST, NOW, simulated=False)) == "3 GB measured, 4 GB estimated, -25%"


def test_end_and_cost_are_expected_by_progress_otherwise_by_the_estimate() -> None:
    spec = replace(RUN.spec, estimate=RunEstimate(hours=(1.0, 2.0, 3.0)))
    run = replace(RUN, phase=RunPhase.RUNNING, running_since=NOW, spec=spec)
    guessed = run_answer(run, COST, NOW + timedelta(hours=1), simulated=False)
    assert (guessed.ends_at, guessed.expected_cost_micros) == (NOW + timedelta(hours=2), 3_000_000)
    for step, minutes in ((0, 0), (10, 30)):
        at = NOW + timedelta(minutes=minutes)
        run = replace(run, progress=progress_of(seen(progress=f'{{"step": {step}, "of": 100}}'), run, at))
    measured = run_answer(run, COST, NOW + timedelta(minutes=30), simulated=False)
    assert measured.ends_at == NOW + timedelta(hours=5)
    assert measured.expected_cost_micros == 10_000_000
    assert (
        live_text(measured)
        == "job: running, step 10/100 (10%), ends 2026-11-16 14:00:00 UTC, 10.00 USD at its end"
    )
    over = run_answer(replace(run, phase=RunPhase.DONE), COST, NOW, simulated=False)
    assert (over.ends_at, over.expected_cost_micros) == (None, None)
