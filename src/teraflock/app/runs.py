"""Builds the loop of runs: its services on open transactions, its threads, and what a run has cost."""

import threading
import time
from collections.abc import Callable
from typing import Final

from teraflock.api.services import Joined, Nouns, Services
from teraflock.base.errors import TeraflockError
from teraflock.base.size import Size
from teraflock.bill.price.model import PricePlace
from teraflock.dataset.files import DatasetFiles
from teraflock.fleet.model import HOSTS_MAX
from teraflock.image.service import ImageService
from teraflock.instance.orders import shape_of
from teraflock.instance.service import InstanceService
from teraflock.meter.model import Holding
from teraflock.reconcile.loops import Loops
from teraflock.reconcile.run_acts import RunActs
from teraflock.reconcile.run_owner import owner_of
from teraflock.reconcile.runs import RunLoop
from teraflock.run.bucket import RunBuckets
from teraflock.run.choice import RunPricing
from teraflock.run.files import RunFiles
from teraflock.run.model import Run
from teraflock.run.rules import order_of
from teraflock.run.service import Seals
from teraflock.storage.database import Database, Transaction

THREADS: Final = 32
"""Runs that are served at once. A large copy holds one of them for a while."""
CLOSE_SECONDS_MAX: Final = 3.0
PRICES_SECONDS: Final = 600.0
PRICES_MAX: Final = 10_000

RUNS_SECONDS: Final = 0.1
SWEEP_SECONDS: Final = 3600.0


class RunWorkers:
    """Threads of a loop. They end with the process, because every act may be interrupted and is repeated."""

    def __init__(self, name: str = "run", threads: int = THREADS) -> None:
        self._name = name
        self._threads = threads
        self._free = threading.Semaphore(threads)

    def submit(self, work: Callable[[], None]) -> None:
        self._free.acquire()
        threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True).start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._free.release()

    def close(self) -> None:
        """Wait a moment for acts in progress. A long copy is not waited for."""
        until = time.monotonic() + CLOSE_SECONDS_MAX
        for _ in range(self._threads):
            self._free.acquire(timeout=max(0.0, until - time.monotonic()))


class ServicesInTransaction:
    def __init__(self, nouns_on: Callable[[Database], Nouns]) -> None:
        self._nouns_on = nouns_on

    def instances_in(self, tx: Transaction) -> InstanceService:
        return self._nouns_on(Joined(tx, locking=True)).instances

    def images_in(self, tx: Transaction) -> ImageService:
        return self._nouns_on(Joined(tx)).images


class RunQuotes:
    """What the instance of a run costs on spot and on demand, for the choice between them."""

    def __init__(self, database: Database, nouns: Nouns) -> None:
        self._database = database
        self._nouns = nouns
        self._found: dict[str, tuple[float, RunPricing | None]] = {}

    def of(self, run: Run) -> RunPricing | None:
        """None: there are no prices, or the machine does not exist any more. Prices are read again after a while."""
        found = self._found.get(run.id)
        if found is None or time.monotonic() - found[0] > PRICES_SECONDS:
            if len(self._found) >= PRICES_MAX:
                self._found.clear()
            found = self._found[run.id] = (time.monotonic(), self._quoted(run))
        return found[1]

    def _quoted(self, run: Run) -> RunPricing | None:
        try:
            size, places = self._to_rent(run) if run.spec.type else self._on_own_hosts(run)
            spot, steady = (
                self._nouns.bills.quote(run.project_id, Holding(size=size, mode=mode), places=places)
                for mode in ("spot", "on-demand")
            )
        except TeraflockError:
            return None
        return RunPricing(spot_micros=spot.micros_per_hour, steady_micros=steady.micros_per_hour)

    def _on_own_hosts(self, run: Run) -> tuple[Size, list[PricePlace]]:
        hosts = self._nouns.fleet.hosts(limit=HOSTS_MAX)
        size = shape_of(run.spec.shape, hosts)
        places = [
            PricePlace(host.id, host.region)
            for host in hosts
            if sum(card.gpu == size.gpu for card in host.gpus) >= size.gpus
        ]
        return size, places

    def _to_rent(self, run: Run) -> tuple[Size, list[PricePlace]]:
        with self._database.read() as tx:
            _, project = owner_of(tx, run, anyone=True)
        size, rental = self._nouns.instances.to_rent(project, order_of(run, run.spec.image))
        return size, [PricePlace("", region) for region in rental.regions]


def add_run_loop(
    loops: Loops,
    services: Services,
    files: tuple[RunFiles, DatasetFiles],
    vault: Seals,
    submit: Callable[[Callable[[], None]], None],
    buckets: RunBuckets,
) -> RunLoop:
    nouns = services.nouns

    def spent(run: Run) -> int:
        ids = nouns.runs.instances_of_sweep(run)
        return sum(each.micros for each in nouns.bills.costs(run.project_id, ids).values()) if ids else 0

    in_transaction = ServicesInTransaction(services.nouns_on)
    prices = RunQuotes(loops.around.database, nouns)
    acts = RunActs(
        loops.around, in_transaction, nouns.instances, files[0], vault, spent=spent, dataset_files=files[1],
        prices=prices.of, buckets=buckets,
    )  # fmt: skip
    runs = RunLoop(acts, worker=loops.worker, submit=submit)
    loops.also("runs", runs.turn, RUNS_SECONDS)
    loops.also("run_files", runs.sweep, SWEEP_SECONDS)
    return runs
