"""Measure a fleet of 12,500 simulated hosts with 100,000 GPUs: launches, idle turns, memory, and hosts that fail.

One process runs the services and loops of a server, without the API, with SQLite on disk. 20,000 instances are launched
with all loops running. Then the loops are called by hand on a clock that is moved: for ten minutes, 1 % of the hosts
are lost in each minute, with their guests, and instances are created again elsewhere. At the end all hosts come back.

`TERA_FLEET_HOSTS` sets another number of hosts; instances are in proportion. `TERA_FLEET_LOST` sets another part of the
hosts, in percent, that is lost in each minute: a smaller fleet needs more for the same rare coincidences.
`TERA_FLEET_MINUTES` sets another number of minutes. 0: only launches and idle turns.
"""

import logging
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from bench.data_center import GPUS, PER_ORDER, DataCenter, by_turn, seconds, timed
from bench.figures import Figure, Section
from teraflock.base.clock import SystemClock
from teraflock.drivers.simulated.model import Guest, Weather
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import weather
from teraflock.instance.model import RestartPolicy
from teraflock.instance.orders import Order, ShapeWish
from teraflock.reconcile.loops import Loops

HOSTS: Final = int(os.environ.get("TERA_FLEET_HOSTS", "12500"))
LOST_PERCENT: Final = int(os.environ.get("TERA_FLEET_LOST", "1"))
INSTANCES: Final = HOSTS * 8 // 5
PROJECTS: Final = 8  # the network of a project has about 4,000 addresses
TURNS: Final = 3
MINUTES: Final = int(os.environ.get("TERA_FLEET_MINUTES", "10"))
TURN_SECONDS: Final = 5
TURNS_TO_RETURN_MAX: Final = 60


class MovedClock:
    """The system's clock, moved forward by hand."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._by = timedelta(0)

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def move(self, by: timedelta) -> None:
        self._by += by


def measure() -> Iterator[Section]:
    logging.getLogger("teraflock").setLevel(logging.ERROR)  # thousands of lines about lost hosts
    clock = MovedClock()
    with tempfile.TemporaryDirectory(prefix="tera-fleet-") as home:
        center = DataCenter(Path(home), clock, hosts=HOSTS, projects=PROJECTS, boot_seconds="0")
        try:
            began = time.perf_counter()
            actor, projects = center.start()
            yield Section(
                title=f"Start with {HOSTS:,} hosts, {HOSTS * GPUS:,} GPUs",
                figures=(seconds("hosts known, first image built", time.perf_counter() - began),),
            )
            order = Order(shape=ShapeWish(gpu="V100"), restart_policy=RestartPolicy.ELSEWHERE)
            yield center.launch(actor, projects, order, INSTANCES, bar=180)
            center.loops.stop()
            yield _idle(center)
            if MINUTES:
                yield _failures(center, clock)
        finally:
            center.close()


def _turns(center: DataCenter) -> dict[str, Callable[[], object]]:
    loops = center.loops
    return {
        "hosts": loops.hosts.turn,
        "drift": loops.drift.turn,
        "moves": loops.moves.turn,
        "drains": loops.drains.turn,
        "instances": lambda: _serve(loops),
        "commands": loops.commands.turn,
        "time limits": loops.time_limits.turn,
    }


def _serve(loops: Loops) -> None:
    loops.beat()
    while leased := loops.instances.lease():
        for instance in leased:
            loops.beat()  # a worker without a heartbeat calls no engine
            loops.instances.advance(instance)


def _idle(center: DataCenter) -> Section:
    turns = _turns(center)
    timed(turns.items(), {})
    samples: dict[str, list[float]] = {}
    began_cpu = time.process_time()
    for _ in range(TURNS):
        timed(turns.items(), samples)
    processor = 1000 * (time.process_time() - began_cpu) / TURNS
    return by_turn(
        f"A turn with nothing to do, {INSTANCES:,} instances running",
        samples,
        Figure(what="all loops, processor time", unit="ms", samples=(processor,)),
        Figure(what="largest resident size so far", unit="MB", samples=(_resident_mb(),), bar=1000),
        bar=2000,
    )


def _failures(center: DataCenter, clock: MovedClock) -> Section:
    chance, trouble = Random(1), Trouble(center.engine.world)
    left = [report.name for report in center.engine.hosts()]
    chance.shuffle(left)
    turns, samples, lost = _turns(center), [], []
    for _ in range(MINUTES):
        count = HOSTS * LOST_PERCENT // 100
        gone, left = left[:count], left[count:]
        lost += gone
        _hosts_go(center, gone)
        for _ in range(60 // TURN_SECONDS):
            clock.move(timedelta(seconds=TURN_SECONDS))
            samples.append(_timed(turns))
    moved = center.count("SELECT COUNT(*) FROM left_behind")
    away = center.count("SELECT COUNT(*) FROM instance WHERE phase = 'away'")
    with center.engine.world.write() as turn:
        turn.put(Weather())
    returned = 0
    while returned < TURNS_TO_RETURN_MAX and (returned < 6 or not _is_sound(center)):
        clock.move(timedelta(seconds=TURN_SECONDS))
        samples.append(_timed(turns))
        returned += 1
    assert trouble.faults_left() == ()
    return Section(
        title=f"{LOST_PERCENT} % of the hosts lost in each of {MINUTES} minutes, a turn every {TURN_SECONDS} s",
        figures=(
            Figure(what="a turn of all loops", unit="ms", samples=tuple(samples), bar=1000 * TURN_SECONDS),
            Figure(what="largest resident size", unit="MB", samples=(_resident_mb(),), bar=1000),
        ),
        notes=(
            f"{len(lost):,} hosts lost, {moved:,} instances created elsewhere, {away:,} waiting",
            f"{returned} turns after all hosts are back: {_verdict(center)}",
        ),
    )


def _timed(turns: dict[str, Callable[[], object]]) -> float:
    began = time.perf_counter()
    for turn in turns.values():
        turn()
    return 1000 * (time.perf_counter() - began)


def _hosts_go(center: DataCenter, names: list[str]) -> None:
    """Many hosts at once: one change of the world."""
    with center.engine.world.write() as turn:
        under = weather(turn)
        turn.put(Weather(away=under.away | set(names), faults=under.faults))


def _is_sound(center: DataCenter) -> bool:
    """Whether each instance runs once, on its own host, and no copy is left anywhere."""
    with center.engine.world.read() as turn:
        guests = Counter((guest.machine.id, guest.host) for guest in turn.every(Guest) if guest.running)
    with center.database.read() as tx:
        rows = tx.all(
            "SELECT i.id, h.name FROM instance i JOIN host h ON h.id = i.host_id WHERE i.phase = 'running'"
        )
        [(copies,)] = tx.all("SELECT COUNT(*) FROM left_behind")
    wanted = INSTANCES // PER_ORDER * PER_ORDER
    is_once = sum(guests.values()) == len(guests) and set(guests) == {(row[0], row[1]) for row in rows}
    return is_once and len(rows) == wanted and not copies


def _verdict(center: DataCenter) -> str:
    with center.database.read() as tx:
        phases: dict[str, int] = dict(
            tx.all("SELECT phase, COUNT(*) FROM instance GROUP BY phase ORDER BY phase")
        )
        problems = tx.all("SELECT DISTINCT problem FROM instance WHERE phase <> 'running' LIMIT 5")
    counts = ", ".join(f"{count:,} {phase}" for phase, count in phases.items())
    if _is_sound(center):
        return f"each instance runs once ({counts})"
    return f"NOT AS IT SHOULD BE ({counts}): {'; '.join(str(row[0]) for row in problems)}"


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
