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

from bench.figures import Figure, Section
from teraflock.base.clock import SystemClock
from teraflock.drivers.opening import Opening
from teraflock.drivers.registry import open_site
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.model import Guest, Weather
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import weather
from teraflock.image.service import ImageService
from teraflock.instance.engines import Engines
from teraflock.instance.model import RestartPolicy
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.service import InstanceService
from teraflock.reconcile.loops import Loops
from teraflock.storage.open import open_database
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.service import TenantService

HOSTS: Final = int(os.environ.get("TERA_FLEET_HOSTS", "12500"))
GPUS: Final = 8
LOST_PERCENT: Final = int(os.environ.get("TERA_FLEET_LOST", "1"))
INSTANCES: Final = HOSTS * 8 // 5
PER_ORDER: Final = 100
PROJECTS: Final = 8  # the network of a project has about 4,000 addresses
TURNS: Final = 3
MINUTES: Final = int(os.environ.get("TERA_FLEET_MINUTES", "10"))
TURN_SECONDS: Final = 5
TURNS_TO_RETURN_MAX: Final = 60
LOOK_AGAIN_SECONDS: Final = 0.5
SECONDS_MAX: Final = 3600.0


class MovedClock:
    """The system's clock, moved forward by hand."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._by = timedelta(0)

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def move(self, by: timedelta) -> None:
        self._by += by


class Server:
    def __init__(self, home: Path) -> None:
        self.clock = MovedClock()
        self.database = open_database(f"sqlite:///{home / 'cloud.db'}", self.clock)
        self.tenants = TenantService(self.database, self.clock)
        mark = self.tenants.install().installation_id
        options = {"hosts": f"{HOSTS}x{GPUS}xV100", "boot_seconds": "0"}
        opening = Opening(name="simulated", options=options, folder=home, mark=mark, clock=self.clock)
        engine = open_site("simulated", opening)
        assert isinstance(engine, SimulatedEngine), "opened as one"
        self.engine = engine
        engines = Engines([engine])
        self.loops = Loops(self.database, self.clock, engines, alone=True)
        self.instances = InstanceService(self.database, self.clock, engines, wake=self.loops.wake)
        self.images = ImageService(self.database, self.clock, publish=self.instances.publish)

    def set_up(self) -> tuple[Actor, list[Project]]:
        actor = self.tenants.authenticate(self.tenants.operator_key().secret)
        for number in range(1, PROJECTS):
            self.tenants.projects.make(actor, f"project-{number}")
        projects = list(self.tenants.projects.page(actor, limit=PROJECTS))
        self.images.build(actor, projects[0], "base", "base")
        self.until("SELECT COUNT(*) FROM image WHERE state = 'ready'", 1)
        self.until("SELECT COUNT(*) FROM host", HOSTS)
        return actor, projects

    def count(self, sql: str) -> int:
        with self.database.read() as tx:
            row = tx.one(sql)
        return int(row[0]) if row else 0

    def until(self, sql: str, number: int) -> None:
        began = time.perf_counter()
        while self.count(sql) != number:
            if time.perf_counter() - began > SECONDS_MAX:
                raise TimeoutError(f"timed out after {SECONDS_MAX:g} seconds: {sql}")
            time.sleep(LOOK_AGAIN_SECONDS)


def measure() -> Iterator[Section]:
    logging.getLogger("teraflock").setLevel(logging.ERROR)  # thousands of lines about lost hosts
    with tempfile.TemporaryDirectory(prefix="tera-fleet-") as home:
        server = Server(Path(home))
        try:
            began = time.perf_counter()
            server.loops.start()
            actor, projects = server.set_up()
            yield Section(
                title=f"Start with {HOSTS:,} hosts, {HOSTS * GPUS:,} GPUs",
                figures=(_seconds("hosts known, first image built", time.perf_counter() - began),),
            )
            yield _launch(server, actor, projects)
            server.loops.stop()
            yield _idle(server)
            if MINUTES:
                yield _failures(server)
        finally:
            server.loops.stop()
            server.database.close()


def _launch(server: Server, actor: Actor, projects: list[Project]) -> Section:
    order = Order(shape=ShapeWish(gpu="V100"), instances=PER_ORDER, restart_policy=RestartPolicy.ELSEWHERE)
    began, began_cpu = time.perf_counter(), time.process_time()
    samples = []
    for number in range(INSTANCES // PER_ORDER):
        asked = time.perf_counter()
        server.instances.launch(actor, projects[number % PROJECTS], order)
        samples.append(1000 * (time.perf_counter() - asked))
    ordered = time.perf_counter() - began
    server.until("SELECT COUNT(*) FROM instance WHERE phase = 'running'", INSTANCES // PER_ORDER * PER_ORDER)
    return Section(
        title=f"{INSTANCES:,} instances, from the first launch",
        figures=(
            _seconds("all running", time.perf_counter() - began, bar=180),
            _seconds("processor time of the server", time.process_time() - began_cpu),
            _seconds("all launches accepted", ordered),
            Figure(what=f"a request for {PER_ORDER}", unit="ms", samples=tuple(samples)),
        ),
    )


def _turns(server: Server) -> dict[str, Callable[[], object]]:
    loops = server.loops
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


def _idle(server: Server) -> Section:
    turns = _turns(server)
    samples: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(TURNS + 1):
        if number == 1:
            began_cpu = time.process_time()
        for name, turn in turns.items():
            began = time.perf_counter()
            turn()
            samples[name].append(1000 * (time.perf_counter() - began))
    processor = 1000 * (time.process_time() - began_cpu) / TURNS
    every = [sum(each) for each in zip(*(taken[1:] for taken in samples.values()), strict=True)]
    return Section(
        title=f"A turn with nothing to do, {INSTANCES:,} instances running",
        figures=(
            Figure(what="all loops", unit="ms", samples=tuple(every), bar=2000),
            Figure(what="all loops, processor time", unit="ms", samples=(processor,)),
            *(
                Figure(what=f"  {name}", unit="ms", samples=tuple(taken[1:]))
                for name, taken in samples.items()
            ),
            Figure(what="largest resident size so far", unit="MB", samples=(_resident_mb(),), bar=1000),
        ),
    )


def _failures(server: Server) -> Section:
    chance, trouble = Random(1), Trouble(server.engine.world)
    left = [report.name for report in server.engine.hosts()]
    chance.shuffle(left)
    turns, samples, lost = _turns(server), [], []
    for _ in range(MINUTES):
        count = HOSTS * LOST_PERCENT // 100
        gone, left = left[:count], left[count:]
        lost += gone
        _hosts_go(server, gone)
        for _ in range(60 // TURN_SECONDS):
            server.clock.move(timedelta(seconds=TURN_SECONDS))
            samples.append(_timed(turns))
    moved = server.count("SELECT COUNT(*) FROM left_behind")
    away = server.count("SELECT COUNT(*) FROM instance WHERE phase = 'away'")
    with server.engine.world.write() as turn:
        turn.put(Weather())
    returned = 0
    while returned < TURNS_TO_RETURN_MAX and (returned < 6 or not _is_sound(server)):
        server.clock.move(timedelta(seconds=TURN_SECONDS))
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
            f"{returned} turns after all hosts are back: {_verdict(server)}",
        ),
    )


def _timed(turns: dict[str, Callable[[], object]]) -> float:
    began = time.perf_counter()
    for turn in turns.values():
        turn()
    return 1000 * (time.perf_counter() - began)


def _hosts_go(server: Server, names: list[str]) -> None:
    """Many hosts at once: one change of the world."""
    with server.engine.world.write() as turn:
        under = weather(turn)
        turn.put(Weather(away=under.away | set(names), faults=under.faults))


def _is_sound(server: Server) -> bool:
    """Whether each instance runs once, on its own host, and no copy is left anywhere."""
    with server.engine.world.read() as turn:
        guests = Counter((guest.machine.id, guest.host) for guest in turn.every(Guest) if guest.running)
    with server.database.read() as tx:
        rows = tx.all(
            "SELECT i.id, h.name FROM instance i JOIN host h ON h.id = i.host_id WHERE i.phase = 'running'"
        )
        [(copies,)] = tx.all("SELECT COUNT(*) FROM left_behind")
    wanted = INSTANCES // PER_ORDER * PER_ORDER
    is_once = sum(guests.values()) == len(guests) and set(guests) == {(row[0], row[1]) for row in rows}
    return is_once and len(rows) == wanted and not copies


def _verdict(server: Server) -> str:
    with server.database.read() as tx:
        phases: dict[str, int] = dict(
            tx.all("SELECT phase, COUNT(*) FROM instance GROUP BY phase ORDER BY phase")
        )
        problems = tx.all("SELECT DISTINCT problem FROM instance WHERE phase <> 'running' LIMIT 5")
    counts = ", ".join(f"{count:,} {phase}" for phase, count in phases.items())
    if _is_sound(server):
        return f"each instance runs once ({counts})"
    return f"NOT AS IT SHOULD BE ({counts}): {'; '.join(str(row[0]) for row in problems)}"


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _seconds(what: str, seconds: float, *, bar: float | None = None) -> Figure:
    return Figure(what=what, unit="s", samples=(seconds,), bar=bar)
