"""Seeded lives of a whole cloud, billed to the micro-unit. `TERA_SIMULATIONS` says how many, else some."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.simulation.intake import Intake, installed
from tests.simulation.machine import CloudMachine

LIVES = int(os.environ.get("TERA_SIMULATIONS", "24"))
STEPS = int(os.environ.get("TERA_SIMULATION_STEPS", "60"))


def _current() -> Intake:
    return CloudMachine.current


def test_whatever_happens_every_second_is_charged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, _current)
    CloudMachine.totals = {}
    run_state_machine_as_test(
        CloudMachine,
        settings=settings(
            max_examples=LIVES, stateful_step_count=STEPS, deadline=None, derandomize=True, print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    totals = CloudMachine.totals
    print("; ".join(f"{count} {name}" for name, count in sorted(totals.items())))
    for what in (
        "launched",
        "kills",
        "clock steps",
        "price changes",
        "budget stops",
        "away",
        "changing",
        "gone",
    ):
        assert totals.get(what), f"nothing was tried of: {what}"
