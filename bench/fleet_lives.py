"""Seeded lives of a fleet: partitions, slow and lying hosts, clocks that jump, servers that die. Each life is checked.

`TERA_FLEET_LIVES` sets how many, and `TERA_FLEET_FIRST` the first seed. A life that fails stops the benchmark and
prints its seed.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from time import perf_counter
from typing import Final

from tests.simulation.fleet_walk import live

from bench.figures import Figure, Section
from bench.processes import Fault

LIVES: Final = int(os.environ.get("TERA_FLEET_LIVES", "250"))
FIRST: Final = int(os.environ.get("TERA_FLEET_FIRST", "1000"))


def measure() -> Iterator[Section]:
    logging.getLogger("teraflock").setLevel(logging.CRITICAL)
    totals: Counter[str] = Counter()
    seconds = []
    for seed in range(FIRST, FIRST + LIVES):
        began = perf_counter()
        try:
            totals += live(seed)
        except AssertionError as wrong:
            raise Fault(f"the life with seed {seed} failed: {wrong}") from wrong
        seconds.append(perf_counter() - began)
    tried = ", ".join(f"{count:,} {name}" for name, count in sorted(totals.items()))
    yield Section(
        title=f"failing hosts: {LIVES:,} lives, no errors",
        figures=(Figure(what="one life with its checks", unit="s", samples=tuple(seconds)),),
        notes=(tried,),
    )
