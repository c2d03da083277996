"""Builds the loop of runs: its services on open transactions, its threads, and what a run has cost."""

import threading
import time
from collections.abc import Callable
from typing import Final

from teraflock.api.services import Joined, Nouns, Services
from teraflock.image.service import ImageService
from teraflock.instance.service import InstanceService
from teraflock.reconcile.loops import Loops
from teraflock.reconcile.run_acts import RunActs
from teraflock.reconcile.runs import RunLoop
from teraflock.run.files import RunFiles
from teraflock.run.model import Run
from teraflock.run.service import Seals
from teraflock.storage.database import Database, Transaction

THREADS: Final = 32
"""Runs that are served at once. A large copy holds one of them for a while."""
CLOSE_SECONDS_MAX: Final = 3.0


class RunWorkers:
    """The threads of the loop. They end with the process, because every act may be interrupted and is repeated."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(THREADS)

    def submit(self, work: Callable[[], None]) -> None:
        self._free.acquire()
        threading.Thread(target=self._run, args=(work,), name="run", daemon=True).start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._free.release()

    def close(self) -> None:
        """Wait a moment for acts in progress. A long copy is not waited for."""
        until = time.monotonic() + CLOSE_SECONDS_MAX
        for _ in range(THREADS):
            self._free.acquire(timeout=max(0.0, until - time.monotonic()))


class ServicesInTransaction:
    def __init__(self, nouns_on: Callable[[Database], Nouns]) -> None:
        self._nouns_on = nouns_on

    def instances_in(self, tx: Transaction) -> InstanceService:
        return self._nouns_on(Joined(tx, locking=True)).instances

    def images_in(self, tx: Transaction) -> ImageService:
        return self._nouns_on(Joined(tx)).images


def run_loop(
    loops: Loops,
    services: Services,
    files: RunFiles,
    vault: Seals,
    submit: Callable[[Callable[[], None]], None],
) -> RunLoop:
    nouns = services.nouns

    def spent(run: Run) -> int:
        return sum(each.micros for each in nouns.bills.costs(run.project_id, list(run.instances)).values())

    in_transaction = ServicesInTransaction(services.nouns_on)
    acts = RunActs(loops.around, in_transaction, nouns.instances, files, vault, spent=spent)
    return RunLoop(acts, worker=loops.worker, submit=submit)
