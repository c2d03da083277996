"""The process of a server that may be killed at any moment, and is then started again."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from tests.simulation.crashing_database import CrashingDatabase

from teraflock.base.clock import FixedClock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.simulated.faults import Killed
from teraflock.instance.lease import store as leases
from teraflock.reconcile.loops import WORKER_TIME


class MortalProcess(ABC):
    clock: FixedClock
    database: CrashingDatabase
    count: Counter[str]
    worker: str
    alive_until: datetime

    @abstractmethod
    def boot(self) -> None:
        """Create everything that lives in memory."""

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
