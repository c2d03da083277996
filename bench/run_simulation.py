"""Carry many runs through failures, preemptions and deaths of the server, and check each of them.

None is lost, none runs twice, none is late that the guard could save, and each instance costs what an oracle computes
from what it observed. `TERA_RUNS=10000 python -m bench run_simulation` runs ten thousand.
"""

import logging
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.simulation.test_runs import simulated

from bench.figures import Figure, Section
from bench.processes import Fault

RUNS: Final = int(os.environ.get("TERA_RUNS", "240"))
FIRST: Final = int(os.environ.get("TERA_RUNS_FIRST", "0"))
"""The seed of the first storm. The others use the seeds after it."""
RUNS_PER_STORM: Final = 12


def measure() -> Iterator[Section]:
    logging.getLogger("teraflock").setLevel(logging.CRITICAL)
    totals: Counter[str] = Counter()
    seconds = []
    for seed in range(FIRST, FIRST + -(-RUNS // RUNS_PER_STORM)):
        began = time.perf_counter()
        totals += _storm(seed)
        seconds.append(time.perf_counter() - began)
    tried = ", ".join(f"{count:,} {name}" for name, count in totals.items() if name != "runs")
    yield Section(
        title=f"simulation of runs: {totals['runs']:,} runs, no errors",
        figures=(Figure(what=f"{RUNS_PER_STORM} runs with their checks", unit="s", samples=tuple(seconds)),),
        notes=(tried,),
    )


def _storm(seed: int) -> Counter[str]:
    memory = Path("/dev/shm")  # every checkpoint is flushed to the disk
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        try:
            return simulated(seed, Path(folder), runs=RUNS_PER_STORM, spot=seed % 3 > 0).count
        except AssertionError as wrong:
            raise Fault(f"the storm with seed {seed} failed: {wrong}") from wrong
