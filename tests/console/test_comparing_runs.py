"""Estimates beside measurements of a run, and idle cards with their cost."""

from datetime import UTC, datetime, timedelta
from typing import Any

from teraflock.console.pages.host_cards import idle_cards
from teraflock.console.pages.run_comparison import TITLES, comparison
from teraflock.wire.host import HostCostAnswer
from teraflock.wire.run import RunAnswer, RunEstimateBody, RunProgressAnswer
from teraflock.wire.telemetry import CardReadingAnswer, HostReadingAnswer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ESTIMATE = RunEstimateBody(
    step_seconds=(0.5, 1.0, 2.0), hours=(0.5, 1.0, 2.0), cost_micros=(1, 2_000_000, 3_000_000),
    currency="USD", memory_bytes=1 << 30,
)  # fmt: skip


def run(**more: Any) -> RunAnswer:
    given: dict[str, Any] = {
        "id": "run_1", "name": "x", "project_id": "prj_1", "state": "running", "wanted": "done", "command": ("x",),
        "image": "base", "environment": {}, "secrets": (), "attempt": 1, "attempts_max": 1, "instance_id": "",
        "instances": (), "exit_code": None, "problem": "", "progress": None, "log_bytes": 0, "outputs_bytes": None,
        "created_at": NOW, "created_by": "mem_1", "since": NOW, "running_since": None, "ended_at": None,
        "deadline": None, "late": False, "budget_micros": None, "estimate": ESTIMATE, "cost_micros": 0,
        "currency": "USD",
    }  # fmt: skip
    return RunAnswer(**{**given, **more})


def test_totals_are_compared_when_the_run_is_done() -> None:
    progress = RunProgressAnswer(step=5, of=10, loss=None, step_seconds=1.5, ends_at=None, at=None)
    began = NOW - timedelta(hours=2)
    going = comparison(run(progress=progress, running_since=began, cost_micros=1_000_000), NOW)
    assert [each.title for each in going] == list(TITLES)
    assert [each.difference for each in going] == ["+50%", "", "", ""]
    done = comparison(run(state="done", running_since=began, ended_at=NOW, cost_micros=1_000_000), NOW)
    assert [each.difference for each in done] == ["", "+100%", "-50%", ""]
    assert done[1].measured == "2h"


def test_a_run_without_estimate_or_measurement_compares_nothing() -> None:
    assert comparison(run(estimate=None), NOW) == ()
    assert all(each.measured == each.difference == "" for each in comparison(run(), NOW))
    zero = RunEstimateBody(step_seconds=(0.0, 0.0, 0.0))
    progress = RunProgressAnswer(step=5, of=10, loss=None, step_seconds=1.5, ends_at=None, at=None)
    assert comparison(run(estimate=zero, progress=progress), NOW)[0].difference == ""


def test_idle_cards_cost_their_part_of_the_newest_cost_of_the_host() -> None:
    card = dict.fromkeys(CardReadingAnswer.__struct_fields__)
    cards = tuple(
        CardReadingAnswer(**{**card, "slot": str(slot), "utilisation_percent": use})  # type: ignore[arg-type]
        for slot, use in enumerate((0, 4, 90, None))
    )
    host = HostReadingAnswer(
        host_id="hst_1", host="lab", at=NOW, simulated=False, clock_off_seconds=0, cards=cards, lost=(), instances=()
    )  # fmt: skip
    costs = [
        HostCostAnswer(
            number=number, host_id="hst_1", host="lab", starts_at=NOW + timedelta(hours=hours), micros_per_hour=micros,
            currency="USD", recorded_at=NOW,
        )
        for number, hours, micros in ((1, -2, 100), (2, -1, 3_000_000), (3, 1, 9_000_000))
    ]  # fmt: skip
    (found,) = idle_cards([host], costs, NOW)
    assert (found.cards, found.micros_per_hour) == (2, 2_000_000)
    (unknown,) = idle_cards([host], [], NOW)
    assert unknown.micros_per_hour is None
