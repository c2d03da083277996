"""Seeded runs of a whole installation, billed to the micro-unit. `TERA_SIMULATIONS` sets the number in the
long part."""

import os
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.long import counted, sampled
from tests.simulation.cloud import Cloud
from tests.simulation.intake import Intake, installed
from tests.simulation.machine import CloudMachine
from tests.simulation.walk import walk
from tests.unit.bill.world import START

from teraflock.base.clock import FixedClock
from teraflock.storage.open import open_database

LIVES = counted(2, int(os.environ.get("TERA_SIMULATIONS", "16")), because="many lives")
TRIED = (
    "launched", "kills", "clock steps", "price changes", "region changes", "budget stops", "away", "away in work",
    "changing", "gone", "renewals", "reversals", "upgrades", "refunds", "days of traffic", "charges in the north",
    "stops of what was paid ahead", "checks while late", "power cuts", "ran on", "stood still",
    "rented", "trouble in the sky", "interruptions", "charges at the cloud", "balancers that sent",
)  # fmt: skip
LATE_MIN = 100
SEEDS = (*range(300, 310), 11, 14)
MOVES = 75
POSTGRES_SEEDS = (1, 3, 4)
POSTGRES_MOVES = 25
STEPS = int(os.environ.get("TERA_SIMULATION_STEPS", "60"))


def _current() -> Intake:
    return CloudMachine.current


@pytest.mark.parametrize("seed", sampled(POSTGRES_SEEDS, every=3, because="seconds each"))
def test_every_second_is_charged_once_on_postgres(
    postgres_address: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(postgres_address, FixedClock(START))
    cloud = Cloud(database, seed=seed)
    installed(monkeypatch, lambda: cloud.intake)
    walk(cloud, seed, POSTGRES_MOVES)
    assert cloud.count["charges"]
    database.close()


@pytest.mark.parametrize("lives", LIVES)
def test_every_second_is_charged_once(monkeypatch: pytest.MonkeyPatch, lives: int) -> None:
    installed(monkeypatch, _current)
    CloudMachine.totals = {}
    run_state_machine_as_test(
        CloudMachine,
        settings=settings(
            max_examples=lives, stateful_step_count=STEPS, deadline=None, derandomize=True, print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    _print(CloudMachine.totals)
    assert CloudMachine.totals["moves"] > lives


@pytest.mark.long("ten lives, seconds each")
def test_seeded_runs_cover_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis draws different runs each time; these runs are always the same, and cover everything."""
    totals: Counter[str] = Counter()
    for seed in SEEDS:
        cloud = Cloud(seed=seed)
        with monkeypatch.context() as patch:
            installed(patch, lambda: cloud.intake)  # noqa: B023 - used up before the next
            walk(cloud, seed, MOVES)
        cloud.count.update(late=cloud.intake.delayed, doubled=cloud.intake.doubled)
        totals += cloud.count
        cloud.database.close()
    _print(totals)
    for what in TRIED:
        assert totals[what], f"not covered: {what}"
    assert totals["late"] >= LATE_MIN
    assert totals["doubled"] >= LATE_MIN


def _print(totals: Mapping[str, int]) -> None:
    print("; ".join(f"{count} {name}" for name, count in sorted(totals.items())))
