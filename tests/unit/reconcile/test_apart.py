"""A site that hangs does not delay others, and gets no new request until it has answered."""

import threading
from collections import Counter
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from tests.unit.instance.samples import queued

from teraflock.base.clock import FixedClock
from teraflock.base.size import Size
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.instance.model import Instance, InstanceId
from teraflock.network.walls import Walls
from teraflock.reconcile.apart import Apart
from teraflock.reconcile.loops import STEPS_AT_ONCE, Loops
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate


def engine(site: str) -> SimulatedEngine:
    return SimulatedEngine(
        MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)), fleet("1x0"), site=site
    )


def test_hanging_site_does_not_delay_others() -> None:
    answered, turns = threading.Event(), Counter[str]()

    def turn_of(driver: ComputeDriver) -> None:
        turns[driver.site] += 1
        if driver.site == "slow":
            answered.wait()

    apart = Apart(Engines([engine("slow"), engine("quick")]), turn_of, "test", seconds_max=0.05)
    for _ in range(3):
        apart.turn()
    assert turns == {"slow": 1, "quick": 3}
    answered.set()
    apart.join(10)
    apart.turn()
    apart.join(10)
    assert turns == {"slow": 2, "quick": 4}


def test_single_site_needs_no_thread() -> None:
    threads = []
    Apart(Engines([engine("only")]), lambda driver: threads.append(threading.current_thread()), "test").turn()
    assert threads == [threading.current_thread()]


def test_hosts_of_a_single_hanging_site_do_not_stop_the_loop() -> None:
    answered = threading.Event()

    def turn_of(driver: ComputeDriver) -> None:
        answered.wait()

    apart = Apart(Engines([engine("only")]), turn_of, "test", seconds_max=0.05, alone_inline=False)
    apart.turn()  # returns, although the site does not answer
    answered.set()
    apart.join(10)


def test_steps_on_a_site_that_hangs_take_no_thread_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    database = MemoryDatabase()
    migrate(database, clock)
    loops = Loops(database, clock, Engines([engine("slow"), engine("quick")]), alone=True)
    answered, done = threading.Event(), threading.Event()
    made = queued(Size(gpu="", gpus=0, vcpus=1, ram_bytes=1, disk_bytes=1))
    slow = [replace(made, id=InstanceId(f"ins_{number}"), site="slow") for number in range(2 * STEPS_AT_ONCE)]

    def advance(instance: Instance) -> None:
        if instance.site == "quick":
            done.set()
        else:
            answered.wait(10)

    monkeypatch.setattr(loops.instances, "lease", lambda: (*slow, replace(made, site="quick")))
    monkeypatch.setattr(loops.instances, "advance", advance)
    loops._turn_of_instances()
    assert done.wait(5)
    answered.set()
    loops.stop()
    database.close()


def test_walls_change_on_other_hosts_while_one_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    database = MemoryDatabase()
    migrate(database, clock)
    slow, quick = engine("slow"), engine("quick")
    answered, loads = threading.Event(), Counter[str]()

    def enforce_slowly(walls: Walls) -> None:
        loads["slow"] += 1
        answered.wait(10)

    def enforce(walls: Walls) -> None:
        loads["quick"] += 1

    monkeypatch.setattr(slow, "enforce", enforce_slowly)
    monkeypatch.setattr(quick, "enforce", enforce)
    loops = Loops(database, clock, Engines([slow, quick]), alone=True)
    for _ in range(2):
        loops._turn_of_walls()
    assert loads == {"slow": 1, "quick": 2}
    answered.set()
    loops.stop()
    database.close()
