"""Seeded lives of a fleet: partitions, slow and lying hosts, clocks that jump, servers that die. Each life is checked.

`python -m bench fleet_lives --seeds 5000..6999` lives these lives. All are lived, and the seeds of those that failed
are printed with the reason.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from time import process_time
from typing import Final

from tests import databases

from bench.figures import Figure, Section
from bench.processes import Fault

REASON_CHARACTERS_MAX: Final = 300
SEEDS: Final = range(1000, 1250)


def measure(seeds: range | None = None) -> Iterator[Section]:
    databases.install()  # before anything is imported that migrates
    from tests.simulation.fleet_walk import live

    logging.getLogger("teraflock").setLevel(logging.CRITICAL)
    totals: Counter[str] = Counter()
    samples, wrong = [], []
    for seed in seeds or SEEDS:
        began = process_time()
        try:
            totals += live(seed)
        except Exception as error:
            wrong.append(f"seed {seed}: {type(error).__name__}: {str(error)[:REASON_CHARACTERS_MAX]}")
        samples.append(process_time() - began)
    tried = ", ".join(f"{count:,} {name}" for name, count in sorted(totals.items()))
    yield Section(
        title=f"failing hosts: {len(samples):,} lives, {len(wrong)} with errors",
        figures=(Figure(what="one life with its checks, processor time", unit="s", samples=tuple(samples)),),
        notes=(tried,),
    )
    if wrong:
        raise Fault("\n".join(wrong))
