"""All loops of one process: one thread each, and for each site a thread pool for the instances' steps.

Any number of processes may run these loops on one PostgreSQL: due work is leased by row, and a process
without a heartbeat for some seconds loses its leases. On SQLite there is one process, which takes over
everything when it starts.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Final

from teraflock.base.clock import Clock
from teraflock.fleet.placement import Policy
from teraflock.instance.changes import Admits
from teraflock.instance.engines import Engines
from teraflock.instance.lease import store as leases
from teraflock.instance.model import Instance, InstanceId
from teraflock.reconcile.apart import Apart
from teraflock.reconcile.commands import CommandLoop
from teraflock.reconcile.draining import DrainLoop
from teraflock.reconcile.drift import DriftLoop
from teraflock.reconcile.fabric import FabricLoop
from teraflock.reconcile.hosts import HostLoop
from teraflock.reconcile.images import ImageLoop
from teraflock.reconcile.instances import LEASES_PER_TURN, InstanceLoop, no_faults
from teraflock.reconcile.moving import MoveLoop
from teraflock.reconcile.names import NameLoop
from teraflock.reconcile.networks import NetworkLoop
from teraflock.reconcile.slices import SliceLoop
from teraflock.reconcile.surroundings import Surroundings
from teraflock.reconcile.time_limits import TimeLimitLoop
from teraflock.reconcile.walls import WallLoop
from teraflock.storage.database import Database

LOG: Final = logging.getLogger("teraflock.reconcile")
STEPS_AT_ONCE: Final = 32
WORKER_TIME: Final = timedelta(seconds=6)
"""How long a worker keeps its leases without a heartbeat."""
WORKER_MARGIN: Final = timedelta(seconds=1)
"""A worker starts no engine call in this time before its leases end, so that the call arrives in time."""
HEARTBEAT_SECONDS: Final = 2.0
DUE_SECONDS_MAX: Final = 0.5
"""How long the instance loop sleeps at most: another process may have made something due."""
FAILED_SECONDS: Final = 2.0
"""How long a loop pauses after a failed turn, so that a lasting error does not flood the log."""
HOSTS_SECONDS: Final = 5.0
OVERDUE_SECONDS: Final = 1.0
DRIFT_SECONDS: Final = 3.0
COMMANDS_SECONDS: Final = 1.0
TIME_LIMITS_SECONDS: Final = 1.0
IMAGES_SECONDS: Final = 1.0
FIRST: Final = ("heartbeat", "hosts")
"""These loops start at once. All others start when the hosts were read once."""
DRIFT_REST_PARTS: Final = 9
"""The drift loop pauses for this many times the duration of its turn, so that it takes a tenth of the time at
any size."""
WOKEN_REST_PARTS: Final = 3
"""The same for a loop that changes wake: each launch wakes some that read all instances."""
REST_SECONDS_MAX: Final = 15.0
NETWORKS_SECONDS: Final = 5.0
MOVES_SECONDS: Final = 5.0
SLICES_SECONDS: Final = 2.0
FABRIC_SECONDS: Final = 2.0
DRAINS_SECONDS: Final = 5.0
WALLS_SECONDS: Final = 1.0
"""How soon a change of security groups by another process is loaded. Changes by this process wake the loop."""
WALLS_SITE_SECONDS_MAX: Final = 0.2
"""A change holds on every host within two seconds, also while one of them hangs."""
STOP_SECONDS_MAX: Final = 5.0
"""How long `stop` waits for a site that does not answer."""


class Loops:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        engines: Engines,
        *,
        alone: bool,
        random_bytes: Callable[[int], bytes] = os.urandom,
        fault: Callable[[str], None] = no_faults,
        policy: Policy | None = None,
        admits: Admits = lambda tx, project_id: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._alone = alone
        self.worker = f"{os.getpid()}-{random_bytes(6).hex()}"
        self._due = threading.Event()
        self._walls_due = threading.Event()
        self._ending = threading.Event()
        self._looked = threading.Event()
        """Set once hosts were read. Before that, it is unknown what kept running without a server."""
        self._threads: list[threading.Thread] = []
        self._more: list[tuple[str, Callable[[], None], float, threading.Event | None]] = []
        self._in_hand = threading.Semaphore(LEASES_PER_TURN)
        self._pools: dict[str, ThreadPoolExecutor] = {}
        """By site: one that answers slowly, or never, takes no thread of another."""
        self.turns: dict[str, int] = {}
        """Completed turns by loop, for the metrics."""
        self._alive_until = (clock.now(), time.monotonic())
        """When our leases end for other workers; also on a clock that cannot be set back."""
        self._failed: set[InstanceId] = set()
        """Leased instances whose thread ended with an error. Their leases must end, or nobody continues with them."""
        self._waiting: set[str] = set()
        """Leased instances that wait for a thread."""
        self.around = around = Surroundings(
            database=database,
            clock=clock,
            engines=engines,
            random_bytes=random_bytes,
            policy=policy or Policy(),
            admits=admits,
            wake=self.wake,
        )
        self.instances = InstanceLoop(
            around,
            worker=self.worker,
            fault=fault,
            crowded=lambda: bool(self._waiting),
            alive=self._is_alive,
        )
        self.hosts = HostLoop(around)
        self.drift = DriftLoop(around)
        self._hosts_apart = Apart(engines, self.hosts.turn_of, "hosts", alone_inline=False)
        self._drift_apart = Apart(engines, self.drift.turn_of, "drift")
        self.commands = CommandLoop(around)
        self.time_limits = TimeLimitLoop(around)
        self.images = ImageLoop(around)
        self.networks = NetworkLoop(around)
        self.moves = MoveLoop(around)
        self.drains = DrainLoop(around)
        self.walls = WallLoop(around)
        self._walls_apart = Apart(engines, self.walls.turn_of, "walls", seconds_max=WALLS_SITE_SECONDS_MAX)
        self.slices = SliceLoop(around)
        self.fabric = FabricLoop(around)
        self.names = NameLoop(around)

    def also(
        self,
        name: str,
        turn: Callable[[], None],
        seconds: float,
        *,
        woken: threading.Event | None = None,
    ) -> None:
        """Add a loop, which starts with the others. `woken`: an event that `wake` sets."""
        self._more.append((name, turn, seconds, woken))

    def wake(self) -> None:
        """Wake the loops for instances, security groups and balancers: something is due now."""
        self._due.set()
        self._walls_due.set()
        self._wake_more()

    def _wake_more(self) -> None:
        for *_, woken in self._more:
            if woken is not None:
                woken.set()

    def start(self) -> None:
        if self._alone:
            self._database.write(leases.let_go_all)
        with self._database.read() as tx:
            if not leases.is_another_alive(tx, self.worker, self._clock.now()):
                self.hosts.take_over()
        self.beat()
        self._run("heartbeat", self.beat, HEARTBEAT_SECONDS)
        self._run("hosts", self._turn_of_hosts, HOSTS_SECONDS)
        self._run("overdue", self.hosts.give_up_overdue, OVERDUE_SECONDS)
        self._run("images", self.images.turn, IMAGES_SECONDS)
        self._run("networks", self.networks.turn, NETWORKS_SECONDS)
        self._run("drift", self._drift_apart.turn, DRIFT_SECONDS, rest_parts=DRIFT_REST_PARTS)
        self._run("slices", self.slices.turn, SLICES_SECONDS)
        self._run("moves", self.moves.turn, MOVES_SECONDS)
        self._run("drains", self.drains.turn, DRAINS_SECONDS)
        self._run("walls", self._turn_of_walls, WALLS_SECONDS, woken=self._walls_due)
        self._run("fabric", self.fabric.turn, FABRIC_SECONDS)
        self._run("names", self.names.turn, FABRIC_SECONDS)
        self._run("commands", self.commands.turn, COMMANDS_SECONDS)
        self._run("time_limits", self.time_limits.turn, TIME_LIMITS_SECONDS)
        for name, turn, seconds, woken in self._more:
            self._run(name, turn, seconds, woken=woken)
        thread = threading.Thread(target=self._serve_instances, name="instances", daemon=True)
        thread.start()
        self._threads.append(thread)

    def stop(self) -> None:
        """Stop after the current steps. Unfinished operations continue at the next start."""
        self._ending.set()
        self._due.set()
        self._walls_due.set()
        self._wake_more()
        self._looked.set()
        for thread in self._threads:
            thread.join()
        for apart in (self._hosts_apart, self._drift_apart, self._walls_apart):
            apart.join(STOP_SECONDS_MAX)
        for pool in self._pools.values():
            pool.shutdown(wait=True)
        self._database.write(lambda tx: leases.end_worker(tx, self.worker))

    def _run(
        self,
        name: str,
        turn: Callable[[], None],
        seconds: float,
        *,
        rest_parts: int = 0,
        woken: threading.Event | None = None,
    ) -> None:
        """`woken`: an event that ends the pause early."""
        pause = woken or self._ending

        def run() -> None:
            if name not in FIRST:
                self._looked.wait()
            while not self._ending.is_set():
                began = time.monotonic()
                if woken:
                    woken.clear()
                self._guarded(name, turn)
                worked = time.monotonic() - began
                if woken:  # at any size and rate of changes, it takes a quarter of the time at most
                    self._ending.wait(min(WOKEN_REST_PARTS * worked, REST_SECONDS_MAX))
                pause.wait(max(seconds, min(rest_parts * worked, REST_SECONDS_MAX)))

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _guarded(self, name: str, turn: Callable[[], None]) -> None:
        """Run a turn. No error ends a loop: after a pause, the next turn reads again what is wanted."""
        try:
            turn()
        except Exception:
            LOG.exception("a turn of %s failed", name)
            self._ending.wait(FAILED_SECONDS)
        self.turns[name] = self.turns.get(name, 0) + 1

    def _turn_of_hosts(self) -> None:
        try:
            self.hosts.count_turn()
            self._hosts_apart.turn()
        finally:
            if self.hosts.has_looked:
                self._looked.set()

    def _turn_of_walls(self) -> None:
        self.walls.read()
        self._walls_apart.turn()

    def _serve_instances(self) -> None:
        self._looked.wait()
        while not self._ending.is_set():
            self._guarded("instances", self._turn_of_instances)

    def _turn_of_instances(self) -> None:
        self._due.clear()
        self._put_off_failed()
        leased = self.instances.lease()
        for instance in leased:
            self._in_hand.acquire()
            self._waiting.add(instance.id)
            self._pool(instance.site).submit(self._advance, instance).add_done_callback(self._release)
        if len(leased) < LEASES_PER_TURN:
            self._due.wait(self._seconds_until_due())

    def _pool(self, site: str) -> ThreadPoolExecutor:
        if site not in self._pools:
            self._pools[site] = ThreadPoolExecutor(STEPS_AT_ONCE, thread_name_prefix=f"step-{site}")
        return self._pools[site]

    def _seconds_until_due(self) -> float:
        due = self.instances.next_due()
        if due is None:
            return DUE_SECONDS_MAX
        return min(max((due - self._clock.now()).total_seconds(), 0.0), DUE_SECONDS_MAX)

    def _advance(self, instance: Instance) -> None:
        self._waiting.discard(instance.id)
        if self._ending.is_set():
            return
        try:
            self.instances.advance(instance)
        except Exception:  # the database failed, so the step could not be recorded
            LOG.exception("%s is put off", instance.id)
            self._failed.add(instance.id)

    def _put_off_failed(self) -> None:
        until = self._clock.now() + timedelta(seconds=FAILED_SECONDS)
        for id in tuple(self._failed):
            self._database.write_one(partial(leases.put_off, id=id, worker=self.worker, until=until))
            self._failed.discard(id)

    def _release(self, future: Future[None]) -> None:
        self._in_hand.release()

    def beat(self) -> None:
        now, passed = self._clock.now(), time.monotonic()
        self._database.write(lambda tx: leases.heartbeat(tx, self.worker, now + WORKER_TIME, now))
        lasts = WORKER_TIME - WORKER_MARGIN
        self._alive_until = (now + lasts, passed + lasts.total_seconds())

    def _is_alive(self) -> bool:
        until, passed = self._alive_until
        return self._clock.now() < until and time.monotonic() < passed
