"""Measure readings: 100 hosts with 8 cards each and 400 instances, as processor time of the server per 10 s.

A turn reads the simulated engine, stores the readings and checks for alerts. What the simulated engine itself takes is
measured apart and subtracted: a real host does that work. One turn in 30 also joins the samples of five minutes.
"""

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

from bench.figures import Figure, Section
from teraflock.api.card_metrics import readings_text
from teraflock.base.clock import FixedClock, SystemClock
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.telemetry.model import ReadingPeriod
from teraflock.fleet.telemetry.rules import FINE_SECONDS
from teraflock.instance.engines import Engines
from teraflock.instance.telemetry.service import TelemetryService
from teraflock.reconcile.hosts import HostLoop
from teraflock.reconcile.surroundings import Surroundings
from teraflock.reconcile.telemetry import TelemetryLoop
from teraflock.storage.open import open_database

HOSTS: Final = "100x8xV100"
TURNS: Final = 90
PERCENT_MAX: Final = 2.0


def measure() -> Iterator[Section]:
    clock = FixedClock(SystemClock().now())
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(str(Path(folder) / "bench.db"), clock)
        try:
            engine = SimulatedEngine(MemoryWorld(), clock, fleet(HOSTS), mark="bench")
            around = Surroundings(
                database=database,
                clock=clock,
                engines=Engines([engine]),
                random_bytes=lambda size: bytes(size),
            )
            HostLoop(around).turn()
            yield _turns(TelemetryLoop(around), engine, clock)
            yield _reading(TelemetryService(database, clock))
            size = (Path(folder) / "bench.db").stat().st_size
        finally:
            database.close()
    yield Section(title="size", figures=(Figure(f"database after {TURNS} turns", size / 1e6, "MB"),))


def _turns(loop: TelemetryLoop, engine: SimulatedEngine, clock: FixedClock) -> Section:
    total = engine_only = 0.0
    for _ in range(TURNS):
        clock.move(timedelta(seconds=FINE_SECONDS))
        began = process_time()
        engine.readings()
        engine_only += process_time() - began
        began = process_time()
        loop.turn()
        total += process_time() - began
    seconds = (total - engine_only) / TURNS
    return Section(
        title="readings of 100 hosts × 8 cards, every 10 s",
        figures=(
            Figure("processor time of a turn", seconds * 1000, "ms"),
            Figure("share of one core", seconds * 100 / FINE_SECONDS, "%", at_most=PERCENT_MAX),
            Figure("the simulated engine itself, subtracted", engine_only / TURNS * 1000, "ms"),
        ),
    )


def _reading(service: TelemetryService) -> Section:
    def timed(act: object) -> float:
        began = perf_counter()
        assert callable(act)
        act()
        return (perf_counter() - began) * 1000

    return Section(
        title="questions",
        figures=(
            Figure("/metrics of all hosts", timed(lambda: readings_text(service.last_of_hosts())), "ms"),
            Figure(
                "an hour of one host",
                timed(lambda: service.of_host("simulated-0001", ReadingPeriod.HOUR, None)),
                "ms",
            ),
        ),
    )
