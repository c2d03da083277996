"""The loop that copies datasets to the hosts whose instances need them, and removes those that nobody needs.

Load → decide → apply. A copy is sent in pieces and checked as a whole at the end; after a crash it is sent again.
A copy stays on its host as long as the dataset exists and there is room, for the next instance. A deleted dataset
loses its copies first, then its files, then its row.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.dataset import store
from teraflock.dataset.files import DatasetFiles
from teraflock.dataset.model import Dataset, DatasetState
from teraflock.dataset.rules import joined, tar_of
from teraflock.dataset.service import end
from teraflock.fleet import store as fleet
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.engine_errors import EngineBusy
from teraflock.instance.lease import store as leases
from teraflock.instance.lease.rules import worker_for
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
PIECE_BYTES: Final = 4 << 20
UNUSED_MAX: Final = timedelta(days=7)
"""How long an upload may stop before it is removed."""
FULL: Final = 0.8
"""The share of a host's disk from which on unused copies are removed."""
ORPHANED_FOR: Final = timedelta(days=1)

Submit = Callable[[Callable[[], None]], None]


class DatasetLoop:
    def __init__(
        self,
        around: Surroundings,
        files: DatasetFiles,
        *,
        submit: Submit = lambda work: work(),
        worker: str = "",
    ) -> None:
        """`submit` runs a copy in another thread, so that one host does not wait for another. `worker` is the name of
        this process if there may be others: two that send the same copy would begin it again and again."""
        self._around = around
        self._files = files
        self._submit = submit
        self._worker = worker
        self._alive: Sequence[str] = ()
        self._busy: set[tuple[str, str, str]] = set()
        """Copies in progress: site, host and dataset."""
        self._lock = threading.Lock()

    def turn(self) -> None:
        with self._around.database.read() as tx:
            states = store.states_in_all_projects(tx)
            ended = store.to_end_in_all_projects(tx, self._around.clock.now() - UNUSED_MAX)
            needed = across.datasets_by_host_in_all_projects(tx)
            self._alive = leases.alive(tx, self._around.clock.now()) if self._worker else ()
        self._expire(ended)
        if not states:
            return
        clean = set(states)
        for driver in self._around.engines:
            if Capability.DATASETS in driver.capabilities:
                try:
                    self._of_site(driver, states, needed, clean)
                except TeraflockError as error:
                    clean.clear()  # its copies are unknown
                    LOG.warning("%s: cannot look at datasets: %s", driver.site, error.sentence)
        for id in clean:
            if states[id] == DatasetState.DELETING:
                self._files.remove(id)
                self._around.database.write(partial(_forget, id))

    def _of_site(
        self,
        driver: ComputeDriver,
        states: Mapping[str, str],
        needed: Sequence[tuple[str, str, str]],
        clean: set[str],
    ) -> None:
        """Copy what instances at a site need. Remove from `clean` the datasets that the site still has."""
        copies = {(each.host, each.dataset_id) for each in driver.datasets()}
        wanted = {(host, id) for site, host, id in needed if site == driver.site}
        for host, id in sorted(wanted - copies):
            if states.get(id) == DatasetState.READY:
                self._copy(driver, host, id)
        with self._around.database.read() as tx:
            full = fleet.full_at_site(tx, driver.site, FULL)
        for host, id in sorted(copies):
            is_over = states.get(id, DatasetState.DELETING) == DatasetState.DELETING
            if is_over or (host in full and (host, id) not in wanted):
                with suppress(EngineBusy):
                    driver.delete_dataset(host, id)
                    continue
            clean.discard(id)

    def _copy(self, driver: ComputeDriver, host: str, id: str) -> None:
        key = (driver.site, host, id)
        if self._worker and worker_for("/".join(key), self._alive) != self._worker:
            return
        with self._lock:
            if key in self._busy:
                return
            self._busy.add(key)

        def work() -> None:
            try:
                with self._around.database.read() as tx:
                    dataset = store.by_id_in_all_projects(tx, id)
                if dataset is not None and dataset.state == DatasetState.READY:
                    self.send(driver, host, dataset)
                    self._around.wake()
            except TeraflockError as error:
                LOG.warning("%s: cannot copy %s: %s", host, id, error.sentence)
            except Exception:
                LOG.exception("%s: cannot copy %s", host, id)
            finally:
                with self._lock:
                    self._busy.discard(key)

        self._submit(work)

    def send(self, driver: ComputeDriver, host: str, dataset: Dataset) -> None:
        """Copy a dataset to a host."""
        digest, offset = sha256(), 0
        tar = tar_of(self._files.manifest(dataset.id), self._files.content(dataset.id))
        for piece in joined(tar, PIECE_BYTES):
            driver.receive_dataset(host, dataset.id, offset, piece)
            digest.update(piece)
            offset += len(piece)
        driver.unpack_dataset(host, dataset.id, digest.hexdigest(), dataset.size_bytes)

    def _expire(self, ended: Sequence[Dataset]) -> None:
        """End datasets of removed projects, and uploads that stopped long ago."""
        now = self._around.clock.now()

        def work(tx: Transaction) -> None:
            for each in ended:
                if store.locked_in_all_projects(tx, each.id) == each:  # nobody was faster, nor completed it
                    end(tx, each, now, self._around.random_bytes)

        if ended:
            self._around.database.write_with_locks(work)

    def sweep(self) -> None:
        """Remove folders without a row: a server was killed before it wrote the row."""
        before = (self._around.clock.now() - ORPHANED_FOR).timestamp()
        with self._around.database.read() as tx:
            known = store.states_in_all_projects(tx)
        for id in self._files.kept(before):
            if id not in known:
                self._files.remove(id)


def _forget(id: str, tx: Transaction) -> None:
    store.remove(tx, id)
