"""Run the long simulation of the bill: many random runs, each checked to the micro-unit.

A run that finds an error stops the benchmark and prints its seed.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from tests.simulation.cloud import Cloud
from tests.simulation.intake import Intake, installed
from tests.simulation.walk import walk

from bench.figures import Figure, Section
from bench.processes import Fault

LIVES: Final = int(os.environ.get("TERA_SIMULATIONS", "250"))
FIRST: Final = int(os.environ.get("TERA_SIMULATION_FIRST", "0"))
"""The seed of the first run. The others use the seeds after it."""
MOVES_PER_LIFE: Final = 80
SHOWN: Final = (
    "launched", "stopped", "gone", "failed", "changing", "hosts lost", "away", "away in work", "kills", "clock steps",
    "delayed events", "doubled events", "price changes", "region changes", "readings", "days of traffic", "purchases",
    "renewals", "upgrades", "refunds", "budget stops", "stops of what was paid ahead", "invoices", "events", "charges",
    "reversals", "entries", "checks", "checks while late",
)  # fmt: skip


def measure() -> Iterator[Section]:
    totals: Counter[str] = Counter()
    current = [Intake()]
    seconds = []
    logging.getLogger("teraflock").setLevel(logging.CRITICAL)
    with pytest.MonkeyPatch.context() as patch:
        installed(patch, lambda: current[0])
        for seed in range(FIRST, FIRST + LIVES):
            began = time.perf_counter()
            totals += _life(seed, current)
            seconds.append(time.perf_counter() - began)
    tried = ", ".join(f"{totals[name]:,} {name}" for name in SHOWN)
    yield Section(
        title=f"simulation of the bill: {LIVES:,} runs, {totals['moves']:,} moves, no errors",
        figures=(Figure(what="one run with its checks", unit="s", samples=tuple(seconds)),),
        notes=(tried,),
    )


def _life(seed: int, current: list[Intake]) -> Counter[str]:
    cloud = Cloud(seed=seed)
    current[0] = cloud.intake
    try:
        walk(cloud, seed, MOVES_PER_LIFE)
    except AssertionError as wrong:
        raise Fault(f"the run with seed {seed} failed after {cloud.count['moves']} moves: {wrong}") from wrong
    cloud.count["delayed events"], cloud.count["doubled events"] = cloud.intake.delayed, cloud.intake.doubled
    cloud.database.close()
    return cloud.count
