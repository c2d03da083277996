"""Measure a data centre on the simulated engine: 10,000 instances on 2,000 hosts with 8 cards each.

One process runs the services and all loops of a server, without the API, with SQLite on disk. It measures the time from
the first launch until every instance runs, then loops without work, then the time until everything is deleted.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.data_center import GPUS, DataCenter, by_turn, seconds, timed
from bench.figures import Section
from teraflock.base.clock import SystemClock
from teraflock.instance.orders import Order, ShapeWish
from teraflock.tenant.model import Actor, Project

HOSTS: Final = 2_000
INSTANCES: Final = 10_000
PROJECTS: Final = 4  # the network of a project has about 4,000 addresses
TURNS: Final = 7


def measure() -> Iterator[Section]:
    with tempfile.TemporaryDirectory(prefix="tera-scale-") as home:
        center = DataCenter(Path(home), SystemClock(), hosts=HOSTS, projects=PROJECTS, boot_seconds="0.5")
        try:
            began = time.perf_counter()
            actor, projects = center.start()
            yield Section(
                title=f"Start of a server with {HOSTS:,} hosts of {GPUS} cards",
                figures=(seconds("hosts known, first image built", time.perf_counter() - began),),
            )
            yield center.launch(actor, projects, Order(shape=ShapeWish(gpu="V100")), INSTANCES, bar=60)
            yield _idle(center)
            yield _delete(center, actor, projects)
        finally:
            center.close()


def _idle(center: DataCenter) -> Section:
    """Measure turns of a second set of loops, besides the running ones, when nothing has changed."""
    loops = center.loops
    turns = {
        "instances": loops.instances.lease,
        "drift": loops.drift.turn,
        "hosts": loops.hosts.turn,
        "commands": loops.commands.turn,
        "images": loops.images.turn,
    }
    samples: dict[str, list[float]] = {}
    for _ in range(TURNS):
        timed(turns.items(), samples)
    return by_turn(f"A turn with nothing to do, {INSTANCES:,} instances running", samples, bar=1000)


def _delete(center: DataCenter, actor: Actor, projects: list[Project]) -> Section:
    service = center.instances
    began = time.perf_counter()
    for project in projects:
        after = ""
        while page := service.page(project.id, after=after, limit=200):
            for view in page:
                service.delete(actor, project, view.instance.id)
            after = page[-1].instance.id
    center.until("SELECT COUNT(*) FROM instance WHERE phase <> 'gone'", 0)
    gone = time.perf_counter() - began
    left = [
        center.count(f"SELECT COUNT(*) FROM {table} WHERE instance_id IS NOT NULL")
        for table in ("host_gpu", "host_port")
    ]
    return Section(
        title=f"{INSTANCES:,} instances deleted one by one",
        figures=(seconds("all gone", gone),),
        notes=(
            f"left over: {left[0]} cards, {left[1]} ports, {len(list(center.engine.sightings()))} guests",
        ),
    )
