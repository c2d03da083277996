"""The process of a server that may be killed at any moment, and is then started again."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from tests.simulation.crashing_database import CrashingDatabase

from teraflock.base.clock import FixedClock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.simulated.faults import Killed
from teraflock.instance.engines import Engines
from teraflock.instance.lease import store as leases
from teraflock.reconcile.drift import DriftLoop
from teraflock.reconcile.hosts import HostLoop
from teraflock.reconcile.instances import InstanceLoop
from teraflock.reconcile.loops import WORKER_TIME
from teraflock.reconcile.surroundings import Surroundings


class MortalProcess(ABC):
    clock: FixedClock
    database: CrashingDatabase
    random_bytes: Callable[[int], bytes]
    count: Counter[str]
    worker: str
    alive_until: datetime
    instances: InstanceLoop
    hosts: HostLoop
    drift: DriftLoop

    @abstractmethod
    def boot(self) -> None:
        """Create everything that lives in memory."""

    def hire(self, engines: Engines, worker: str) -> Surroundings:
        """A worker with the loops that every server has. On SQLite the only process takes over all leases."""
        around = Surroundings(
            database=self.database, clock=self.clock, engines=engines, random_bytes=self.random_bytes
        )
        self.worker, self.alive_until = worker, self.clock.now()
        self.instances = InstanceLoop(
            around, worker=worker, pause=self.wait, alive=lambda: self.clock.now() < self.alive_until
        )
        self.hosts, self.drift = HostLoop(around), DriftLoop(around)
        self.hosts.take_over()
        self.database.write(leases.let_go_all)
        return around

    def serve(self) -> None:
        if self.hosts.has_looked:
            for instance in self.instances.lease():
                self.instances.advance(instance)

    def wait(self, seconds: float) -> None:
        self.clock.move(timedelta(seconds=seconds))

    def survives(self, act: Callable[[], object]) -> bool:
        """Run it. If the process dies, start another."""
        try:
            act()
        except Killed:
            self.count["kills"] += 1
            self.boot()
            return False
        return True

    def ask(self, act: Callable[[], object]) -> object:
        """Make a request. It may be refused with a sentence. If the server dies, it is not repeated."""
        try:
            return act()
        except TeraflockError:
            self.count["refused"] += 1
        except Killed:
            self.count["kills"] += 1
            self.boot()
        return None

    def beat(self) -> None:
        now = self.clock.now()
        self.database.write(lambda tx: leases.heartbeat(tx, self.worker, now + WORKER_TIME, now))
        self.alive_until = now + WORKER_TIME
