"""Measure what metering and billing add to a launch: the same launches with and without them, in turns in one process.

Without billing, the bill and traffic loops do not run and launches check no budget. With billing, they run with a price
book; the remaining metering and charging at the end of each turn counts too. A project with a budget and a hard stop is
measured separately. Processor time is that of the whole process, including the simulated engine, but without polling
for the state. On a busy machine it is steadier than wall time. Steadier still is the processor time of billing alone:
its loops, their writes, and its checks during a launch, without commits.
"""

import json
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from threading import local
from time import perf_counter, process_time, sleep, thread_time
from typing import Any, Final, TypeVar
from unittest import mock

from bench.bill import BOOK
from bench.figures import Figure, Section
from bench.processes import run_task
from teraflock.app import wiring
from teraflock.app.settings import Place, Settings
from teraflock.app.wiring import Cloud
from teraflock.bill.budget.admission import admission
from teraflock.bill.budget.model import Budget
from teraflock.bill.service import BillService
from teraflock.image.model import ImageState
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.reconcile.bills import BillLoop
from teraflock.reconcile.traffic import TrafficLoop
from teraflock.storage.database import Transaction
from teraflock.storage.group_commit import GroupCommit

T = TypeVar("T")

LAUNCHES: Final = 25
ROUNDS: Final = 12
LXD_ROUNDS: Final = 9
MORE_PERCENT_MAX: Final = 5.0


class Switch:
    on = True
    used = 0.0
    """Turns billing on and off, and counts its processor time."""


def measure() -> Iterator[Section]:
    taken = run_task("bench.bill_launch", "simulated")
    yield Section(
        title=f"launches with metering on the simulated engine, {LAUNCHES} in sequence per turn",
        figures=(
            Figure(what="a launch without metering", unit="ms", samples=tuple(taken["without_ms"])),
            Figure(what="metered", unit="ms", samples=tuple(taken["with_ms"])),
            _more("added by metering, wall time", taken["without_ms"], taken["with_ms"], MORE_PERCENT_MAX),
            _more(
                "added by metering, processor time",
                taken["without_cpu_ms"],
                taken["with_cpu_ms"],
                MORE_PERCENT_MAX,
            ),
            Figure(
                what="processor time of billing, compared with the rest", unit="%",
                samples=tuple(
                    100 * own / (whole - own)
                    for own, whole in zip(taken["with_own_ms"], taken["with_cpu_ms"], strict=True)
                ),
                bar=MORE_PERCENT_MAX,
            ),
            _more("added with a budget, wall time", taken["without_ms"], taken["budget_ms"]),
            _more("added with a budget, processor time", taken["without_cpu_ms"], taken["budget_cpu_ms"]),
        ),
        notes=("Guests answer immediately, so only the work of the server is measured.",),
    )  # fmt: skip
    yield on_lxd()


def _more(what: str, without: list[float], with_it: list[float], bar: float | None = None) -> Figure:
    """Compare each turn with the one without billing, in percent."""
    pairs = zip(without, with_it, strict=True)
    samples = tuple(100 * (after / before - 1) for before, after in pairs)
    return Figure(what=what, unit="%", samples=samples, bar=bar)


@contextmanager
def switchable_metering() -> Iterator[Switch]:
    """Make every server that is created in this context meter only while the switch is on."""
    switch, here = Switch(), local()
    write, turn = GroupCommit.write, BillService.turn

    def counted(act: Callable[..., T], *words: Any) -> T:
        began, here.is_counted = thread_time(), True
        try:
            return act(*words)
        finally:
            switch.used += thread_time() - began
            here.is_counted = False

    def if_on(act: Callable[..., None]) -> Callable[..., None]:
        return lambda *words: counted(act, *words) if switch.on else None

    def write_counted(writer: GroupCommit, work: Callable[[Transaction], T]) -> T:
        return write(writer, partial(counted, work) if getattr(here, "is_counted", False) else work)

    with (
        mock.patch.object(GroupCommit, "write", write_counted),
        mock.patch.object(BillService, "turn", lambda bills: counted(turn, bills)),
        mock.patch.object(BillLoop, "turn", if_on(BillLoop.turn)),
        mock.patch.object(TrafficLoop, "turn", if_on(TrafficLoop.turn)),
        mock.patch.object(wiring, "admission", lambda clock: if_on(admission(clock))),
    ):
        yield switch


def simulated() -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {}
    with switchable_metering() as switch, tempfile.TemporaryDirectory(prefix="bench-bill-") as folder:
        cloud = Cloud(
            Place(Path(folder)),
            Settings(
                engine="simulated", simulated_hosts="4x8xV100", simulated_boot_seconds=0.0, rate_per_second=0
            ),
        )
        server = _Server(cloud, switch)
        for turn in range(-1, ROUNDS):  # the first turn is a warm-up
            for words in ("without", "with", "budget"):
                switch.on = words != "without"
                server.set_budget(words == "budget")
                switch.used = 0.0
                seconds, used = server.launches(LAUNCHES)
                own = switch.used
                server.catch_up()  # so that unmetered launches do not slow down the next turn
                if turn >= 0:
                    taken.setdefault(f"{words}_ms", []).append(1000 * seconds / LAUNCHES)
                    taken.setdefault(f"{words}_cpu_ms", []).append(1000 * used / LAUNCHES)
                    taken.setdefault(f"{words}_own_ms", []).append(1000 * own / LAUNCHES)
        cloud.stop()
    return taken


class _Server:
    def __init__(self, cloud: Cloud, switch: Switch) -> None:
        self._switch = switch
        self._asking = 0.0
        self._nouns = nouns = cloud.services.nouns
        self._actor = nouns.tenants.authenticate(str(cloud.installed.secret))
        self._project = nouns.tenants.projects.show(self._actor, None)
        nouns.images.build(self._actor, self._project, "base", "base")
        nouns.bills.prices.take(BOOK, name="book", member="")
        cloud.start()
        while nouns.images.image(self._project.id, "base").state != ImageState.READY:
            sleep(0.1)

    def set_budget(self, is_set: bool) -> None:
        budgets, project_id = self._nouns.bills.budgets, self._project.id
        if is_set:
            budgets.set(
                Budget(project_id=project_id, currency="", micros=10**15, hard_stop=True, notice_seconds=3600)
            )
        else:
            budgets.remove(project_id)

    def catch_up(self) -> None:
        self._nouns.bills.turn()

    def launches(self, count: int) -> tuple[float, float]:
        """Launch in sequence, wait until each runs, and delete it. Return wall and processor time."""
        order = Order(shape=ShapeWish(gpu="V100", vcpus=1, ram_bytes=1 << 30, disk_bytes=1 << 30))
        began, used = perf_counter(), process_time()
        self._asking = 0.0
        for _ in range(count):
            (made,) = self._nouns.instances.launch(self._actor, self._project, order)
            self._wait_for(made.id, Phase.RUNNING)
            self._nouns.instances.delete(self._actor, self._project, made.id)
            self._wait_for(made.id, Phase.GONE)
        if self._switch.on:
            self._nouns.bills.turn()
        return perf_counter() - began, process_time() - used - self._asking

    def _wait_for(self, id: str, phase: Phase) -> None:
        began = thread_time()
        while self._nouns.instances.view(self._project.id, id).instance.phase != phase:
            sleep(0.002)
        self._asking += thread_time() - began


def on_lxd() -> Section:
    from tests.engine.sandbox import NoSandbox, Sandbox, mark_cgroups  # needs an engine on this machine

    from bench import cloud_lxd
    from teraflock.drivers.lxd import build
    from teraflock.image import recipe

    title = "launches with metering on a real engine, until SSH answers"
    try:
        build.build(recipe.read("base"), cloud_lxd.IMAGES, created_at=1)
        host = Sandbox("bench-")
    except (NoSandbox, build.BuildFailed) as reason:
        return Section(title=title, notes=(f"not measured: {reason}",))
    mark_cgroups(host.folder, f"tera-{cloud_lxd.INSTALLATION}")
    logging.getLogger("teraflock").setLevel(logging.ERROR)
    without: list[float] = []
    with_it: list[float] = []
    try:
        with switchable_metering() as switch, host.inside(), tempfile.TemporaryDirectory() as folder:
            bench = cloud_lxd.OnLxd(host, Path(folder))
            for turn in range(-1, LXD_ROUNDS):
                for taken, on in ((without, False), (with_it, True)):
                    switch.on = on
                    seconds = bench.launched(1)
                    if turn >= 0:
                        taken.append(1000 * seconds)
            bench.close()
    finally:
        host.close()
    return Section(
        title=title,
        figures=(
            Figure(what="a launch without metering", unit="ms", samples=tuple(without)),
            Figure(what="metered", unit="ms", samples=tuple(with_it)),
            Figure(
                what="added by metering", unit="%", samples=(100 * (median(with_it) / median(without) - 1),),
                bar=MORE_PERCENT_MAX,
            ),
        ),
        notes=("The engine takes a second or more, and its time varies, so medians are compared.",),
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps({"simulated": simulated}[sys.argv[1]]()))
