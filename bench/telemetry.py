"""Measure readings: 100 hosts with 8 cards each, as processor time of the server per 10 s.

A turn reads the simulated engine, stores the readings and checks for alerts. What the simulated engine itself takes is
measured apart and subtracted: a real host does that work. One turn in 30 also joins the samples of five minutes.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from typing import Final

from msgspec.structs import replace

from bench.figures import Figure, Section
from teraflock.api.card_metrics import readings_text
from teraflock.base.clock import FixedClock, SystemClock
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.telemetry.model import CardReading, HostReading, ReadingPeriod
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
QUESTIONS: Final = 5
HOST: Final = "simulated-0001"


class BusyEngine(SimulatedEngine):
    """All cards are busy: values that change all the time are the hardest to store."""

    _random = Random(7)

    def readings(self) -> Sequence[HostReading]:
        return [
            replace(host, cards=tuple(self._busy(card) for card in host.cards)) for host in super().readings()
        ]

    def _busy(self, card: CardReading) -> CardReading:
        number = self._random.randrange
        return replace(
            card,
            utilisation_percent=number(100),
            memory_utilisation_percent=number(100),
            memory_used_bytes=number(16 << 30),
            power_milliwatts=number(700_000),
            energy_millijoules=number(2**40),
            temperature_celsius=30 + number(50),
            sm_clock_mhz=number(2000),
        )


def measure() -> Iterator[Section]:
    clock = FixedClock(SystemClock().now())
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(str(Path(folder) / "bench.db"), clock)
        try:
            engine = BusyEngine(MemoryWorld(), clock, fleet(HOSTS), mark="bench")
            around = Surroundings(
                database=database,
                clock=clock,
                engines=Engines([engine]),
                random_bytes=os.urandom,
            )
            HostLoop(around).turn()
            yield _turns(TelemetryLoop(around), engine, clock)
            yield _questions(TelemetryService(database, clock))
            size = (Path(folder) / "bench.db").stat().st_size
        finally:
            database.close()
    yield Section(
        title="size",
        figures=(Figure(what=f"database after {TURNS} turns", unit="MB", samples=(size / 1e6,)),),
    )


def _turns(loop: TelemetryLoop, engine: SimulatedEngine, clock: FixedClock) -> Section:
    turns: list[float] = []
    engine_only: list[float] = []
    for _ in range(TURNS):
        clock.move(timedelta(seconds=FINE_SECONDS))
        began = process_time()
        engine.readings()
        engine_only.append(process_time() - began)
        began = process_time()
        loop.turn()
        turns.append(process_time() - began - engine_only[-1])
    mean = sum(turns) / TURNS
    return Section(
        title="readings of 100 hosts × 8 cards, every 10 s",
        figures=(
            Figure(what="processor time of a turn", unit="ms", samples=_ms(turns)),
            Figure(
                what="share of one core, mean of all turns",
                unit="%",
                samples=(mean * 100 / FINE_SECONDS,),
                bar=PERCENT_MAX,
            ),
            Figure(what="the simulated engine itself, subtracted", unit="ms", samples=_ms(engine_only)),
        ),
    )


def _questions(service: TelemetryService) -> Section:
    def timed(act: Callable[[], object]) -> float:
        began = perf_counter()
        act()
        return perf_counter() - began

    metrics = [timed(lambda: readings_text(service.last_of_hosts())) for _ in range(QUESTIONS)]
    hour = [timed(lambda: service.of_host(HOST, ReadingPeriod.HOUR, None)) for _ in range(QUESTIONS)]
    return Section(
        title="questions",
        figures=(
            Figure(what="/metrics of all hosts", unit="ms", samples=_ms(metrics)),
            Figure(what="an hour of one host", unit="ms", samples=_ms(hour)),
        ),
    )


def _ms(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(each * 1000 for each in seconds)
