"""Measure a data centre on the simulated engine: 10,000 instances on 2,000 hosts with 8 cards each.

One process runs the services and all loops of a server, without the API, with SQLite on disk. It measures the time from
the first launch until every instance runs, then loops without work, then the time until everything is deleted.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench.figures import Figure, Section
from teraflock.base.clock import SystemClock
from teraflock.drivers.opening import Opening
from teraflock.drivers.registry import open_site
from teraflock.image.service import ImageService
from teraflock.instance.engines import Engines
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.service import InstanceService
from teraflock.reconcile.loops import Loops
from teraflock.storage.open import open_database
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.service import TenantService

HOSTS: Final = 2_000
GPUS: Final = 8
INSTANCES: Final = 10_000
PER_ORDER: Final = 100
BOOT_SECONDS: Final = "0.5"
PROJECTS: Final = 4  # the network of a project has about 4,000 addresses
TURNS: Final = 7
LOOK_AGAIN_SECONDS: Final = 0.5  # counting ten thousand rows takes milliseconds of the server's time
SECONDS_MAX: Final = 900.0


class Server:
    def __init__(self, home: Path) -> None:
        clock = SystemClock()
        self.database = open_database(f"sqlite:///{home / 'cloud.db'}", clock)
        self.tenants = TenantService(self.database, clock)
        mark = self.tenants.install().installation_id
        options = {"hosts": f"{HOSTS}x{GPUS}xV100", "boot_seconds": BOOT_SECONDS}
        opening = Opening(name="simulated", options=options, folder=home, mark=mark, clock=clock)
        self.engine = open_site("simulated", opening)
        engines = Engines([self.engine])
        self.loops = Loops(self.database, clock, engines, alone=True)
        self.instances = InstanceService(self.database, clock, engines, wake=self.loops.wake)
        self.images = ImageService(self.database, clock, publish=self.instances.publish)

    def set_up(self) -> tuple[Actor, list[Project]]:
        actor = self.tenants.authenticate(self.tenants.operator_key().secret)
        for number in range(1, PROJECTS):
            self.tenants.projects.make(actor, f"project-{number}")
        projects = list(self.tenants.projects.page(actor, limit=PROJECTS))
        self.images.build(actor, projects[0], "base", "base")
        _until(lambda: self.count("SELECT COUNT(*) FROM image WHERE state = 'ready'") == 1)
        _until(lambda: self.count("SELECT COUNT(*) FROM host") == HOSTS)
        return actor, projects

    def count(self, sql: str) -> int:
        with self.database.read() as tx:
            row = tx.one(sql)
        return int(row[0]) if row else 0

    def close(self) -> None:
        self.loops.stop()
        self.database.close()


def measure() -> Iterator[Section]:
    with tempfile.TemporaryDirectory(prefix="tera-scale-") as home:
        server = Server(Path(home))
        try:
            began = time.perf_counter()
            server.loops.start()
            actor, projects = server.set_up()
            yield Section(
                title=f"Start of a server with {HOSTS:,} hosts of {GPUS} cards",
                figures=(_seconds("hosts known, first image built", time.perf_counter() - began),),
            )
            yield _launch(server, actor, projects)
            yield _idle(server)
            yield _delete(server, actor, projects)
        finally:
            server.close()


def _launch(server: Server, actor: Actor, projects: list[Project]) -> Section:
    order = Order(shape=ShapeWish(gpu="V100"), instances=PER_ORDER)
    began, began_cpu = time.perf_counter(), time.process_time()
    orders = []
    for number in range(INSTANCES // PER_ORDER):
        asked = time.perf_counter()
        server.instances.launch(actor, projects[number % PROJECTS], order)
        orders.append(time.perf_counter() - asked)
    ordered = time.perf_counter() - began
    _until(lambda: server.count("SELECT COUNT(*) FROM instance WHERE phase = 'running'") == INSTANCES)
    return Section(
        title=f"{INSTANCES:,} instances, from the first launch",
        figures=(
            _seconds("all running", time.perf_counter() - began, bar=60),
            _seconds("processor time of the server", time.process_time() - began_cpu),
            _seconds("all launches accepted", ordered),
            Figure(
                what=f"a request for {PER_ORDER}", unit="ms", samples=tuple(1000 * each for each in orders)
            ),
        ),
    )


def _idle(server: Server) -> Section:
    """Measure turns of a second set of loops, besides the running ones, when nothing has changed."""
    loops = server.loops
    turns: dict[str, Callable[[], object]] = {
        "instances": loops.instances.lease,
        "drift": loops.drift.turn,
        "hosts": loops.hosts.turn,
        "commands": loops.commands.turn,
        "images": loops.images.turn,
    }
    samples: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(TURNS):
        for name, turn in turns.items():
            began = time.perf_counter()
            turn()
            samples[name].append(time.perf_counter() - began)
    every = [sum(each) for each in zip(*samples.values(), strict=True)]
    return Section(
        title=f"A turn with nothing to do, {INSTANCES:,} instances running",
        figures=(
            Figure(what="all loops", unit="ms", samples=tuple(1000 * each for each in every), bar=1000),
            *(
                Figure(what=f"  {name}", unit="ms", samples=tuple(1000 * each for each in taken))
                for name, taken in samples.items()
            ),
        ),
    )


def _delete(server: Server, actor: Actor, projects: list[Project]) -> Section:
    service = server.instances
    began = time.perf_counter()
    for project in projects:
        after = ""
        while page := service.page(project.id, after=after, limit=200):
            for view in page:
                service.delete(actor, project, view.instance.id)
            after = page[-1].instance.id
    _until(lambda: server.count("SELECT COUNT(*) FROM instance WHERE phase <> 'gone'") == 0)
    gone = time.perf_counter() - began
    left = [
        server.count(f"SELECT COUNT(*) FROM {table} WHERE instance_id IS NOT NULL")
        for table in ("host_gpu", "host_port")
    ]
    return Section(
        title=f"{INSTANCES:,} instances deleted one by one",
        figures=(_seconds("all gone", gone),),
        notes=(
            f"left over: {left[0]} cards, {left[1]} ports, {len(list(server.engine.sightings()))} guests",
        ),
    )


def _until(holds: Callable[[], bool]) -> None:
    began = time.perf_counter()
    while not holds():
        if time.perf_counter() - began > SECONDS_MAX:
            raise TimeoutError(f"timed out after {SECONDS_MAX:g} seconds")
        time.sleep(LOOK_AGAIN_SECONDS)


def _seconds(what: str, seconds: float, *, bar: float | None = None) -> Figure:
    return Figure(what=what, unit="s", samples=(seconds,), bar=bar)
