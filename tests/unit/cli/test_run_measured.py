"""Earlier runs of the same script on the same GPU narrow the next estimate, and no others do."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from teraflock.cli.run.measured import measured_on, narrowed
from teraflock.wire.run import RunAnswer, RunEstimateBody, RunProgressAnswer

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SCRIPT = "ab" * 32
ESTIMATE = RunEstimateBody(
    source="trace", script=SCRIPT, gpu="V100", step_seconds=(1.0, 2.0, 4.0), steps=3600
)


def run(step_seconds: float | None, **more: Any) -> RunAnswer:
    progress = RunProgressAnswer(step=9, of=9, loss=None, step_seconds=step_seconds, ends_at=None, at=NOW)
    fields: dict[str, Any] = {
        "id": "run_1", "name": "job", "project_id": "prj", "state": "done", "wanted": "done", "command": ("a",),
        "image": "base", "environment": {}, "secrets": (), "attempt": 1, "attempts_max": 10, "instance_id": "",
        "instances": (), "exit_code": 0, "problem": "", "progress": progress, "log_bytes": 0, "outputs_bytes": None,
        "created_at": NOW, "created_by": "", "since": NOW, "running_since": None, "ended_at": None, "deadline": None,
        "late": False, "budget_micros": None, "estimate": ESTIMATE, "cost_micros": 0, "currency": "",
    }  # fmt: skip
    return RunAnswer(**{**fields, **more})


def test_only_runs_of_the_same_script_that_ended_well_count() -> None:
    runs = [
        run(2.5),
        run(2.7),
        run(None),
        run(9.0, state="failed"),
        run(9.0, estimate=replace(ESTIMATE, script="cd" * 32)),
        run(9.0, estimate=None),
        run(3.0, estimate=replace(ESTIMATE, gpu="A100")),
    ]
    assert measured_on(runs, SCRIPT) == {"V100": [2.5, 2.7], "A100": [3.0]}
    assert measured_on(runs, "") == {}


def test_estimate_becomes_narrower_with_every_run() -> None:
    once, often = narrowed(ESTIMATE, [2.5]), narrowed(ESTIMATE, [2.5, 2.52, 2.51])
    widths = [
        each.step_seconds[2] - each.step_seconds[0] for each in (ESTIMATE, once, often) if each.step_seconds
    ]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3
    assert often.source == "measured"
    assert often.hours == pytest.approx((2.425, 2.51, 2.5956))
    assert narrowed(replace(ESTIMATE, steps=None), [2.5]).hours is None
