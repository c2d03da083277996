"""A site that hangs does not delay others, and gets no new request until it has answered."""

import threading
from collections import Counter
from datetime import UTC, datetime

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.reconcile.apart import Apart


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
