"""A server with many simulated hosts in this process: its services and loops, without the API, with SQLite on disk."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from bench.figures import Figure, Section
from teraflock.base.clock import Clock
from teraflock.drivers.opening import Opening
from teraflock.drivers.registry import open_site
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.image.service import ImageService
from teraflock.instance.engines import Engines
from teraflock.instance.orders import Order
from teraflock.instance.service import InstanceService
from teraflock.reconcile.loops import Loops
from teraflock.storage.open import open_database
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.service import TenantService

GPUS: Final = 8
"""Of each host."""
PER_ORDER: Final = 100
LOOK_AGAIN_SECONDS: Final = 0.5  # counting ten thousand rows takes milliseconds of the server's time
SECONDS_MAX: Final = 3600.0


class DataCenter:
    def __init__(self, home: Path, clock: Clock, *, hosts: int, projects: int, boot_seconds: str) -> None:
        self._hosts, self._projects = hosts, projects
        self.clock = clock
        self.database = open_database(f"sqlite:///{home / 'cloud.db'}", clock)
        self.tenants = TenantService(self.database, clock)
        mark = self.tenants.install().installation_id
        options = {"hosts": f"{hosts}x{GPUS}xV100", "boot_seconds": boot_seconds}
        opening = Opening(name="simulated", options=options, folder=home, mark=mark, clock=clock)
        engine = open_site("simulated", opening)
        assert isinstance(engine, SimulatedEngine), "opened as one"
        self.engine = engine
        engines = Engines([engine])
        self.loops = Loops(self.database, clock, engines, alone=True)
        self.instances = InstanceService(self.database, clock, engines, wake=self.loops.wake)
        self.images = ImageService(self.database, clock, publish=self.instances.publish)

    def start(self) -> tuple[Actor, list[Project]]:
        """Start the loops, make the projects, and wait for the hosts and the first image."""
        self.loops.start()
        actor = self.tenants.authenticate(self.tenants.operator_key().secret)
        for number in range(1, self._projects):
            self.tenants.projects.make(actor, f"project-{number}")
        projects = list(self.tenants.projects.page(actor, limit=self._projects))
        self.images.build(actor, projects[0], "base", "base")
        self.until("SELECT COUNT(*) FROM image WHERE state = 'ready'", 1)
        self.until("SELECT COUNT(*) FROM host", self._hosts)
        return actor, projects

    def launch(
        self, actor: Actor, projects: list[Project], order: Order, instances: int, *, bar: float
    ) -> Section:
        """Launch many instances and wait until all run. `bar`: the seconds that this may take."""
        order = msgspec.structs.replace(order, instances=PER_ORDER)
        began, began_cpu = time.perf_counter(), time.process_time()
        samples = []
        for number in range(instances // PER_ORDER):
            asked = time.perf_counter()
            self.instances.launch(actor, projects[number % len(projects)], order)
            samples.append(1000 * (time.perf_counter() - asked))
        ordered = time.perf_counter() - began
        self.until("SELECT COUNT(*) FROM instance WHERE phase = 'running'", PER_ORDER * len(samples))
        return Section(
            title=f"{instances:,} instances, from the first launch",
            figures=(
                seconds("all running", time.perf_counter() - began, bar=bar),
                seconds("processor time of the server", time.process_time() - began_cpu),
                seconds("all launches accepted", ordered),
                Figure(what=f"a request for {PER_ORDER}", unit="ms", samples=tuple(samples)),
            ),
        )

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

    def close(self) -> None:
        self.loops.stop()
        self.database.close()


def by_turn(title: str, samples: dict[str, list[float]], *more: Figure, bar: float) -> Section:
    """The milliseconds of each loop in some turns, and of all together. `bar`: of all."""
    every = [sum(each) for each in zip(*samples.values(), strict=True)]
    return Section(
        title=title,
        figures=(
            Figure(what="all loops", unit="ms", samples=tuple(every), bar=bar),
            *(Figure(what=f"  {name}", unit="ms", samples=tuple(taken)) for name, taken in samples.items()),
            *more,
        ),
    )


def timed(turns: Iterable[tuple[str, Callable[[], object]]], samples: dict[str, list[float]]) -> None:
    """Run a turn of each loop, and add its milliseconds."""
    for name, turn in turns:
        began = time.perf_counter()
        turn()
        samples.setdefault(name, []).append(1000 * (time.perf_counter() - began))


def seconds(what: str, seconds: float, *, bar: float | None = None) -> Figure:
    return Figure(what=what, unit="s", samples=(seconds,), bar=bar)
