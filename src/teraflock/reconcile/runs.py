"""The loop that carries runs to their end: launch, set up, copy, start, watch, collect, delete.

Load → decide → apply, one act at a time. Every act may be repeated, and its result is written with an event while this
process holds the run. After `kill -9` another process, or this one after a restart, repeats the last act.
`reconcile/run_acts.py` has the acts, `run/rules.py` the decisions.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.dataset import store as datasets
from teraflock.reconcile.run_acts import RunActs
from teraflock.reconcile.run_starts import TakenOver
from teraflock.run import store
from teraflock.run.bucket import DATA, data_key
from teraflock.run.events import run_event
from teraflock.run.model import Run
from teraflock.run.rules import failed_act, is_over, put_off
from teraflock.storage.database import Overtaken, Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
LEASE: Final = timedelta(minutes=15)
"""Longer than any act takes. On PostgreSQL, another process takes over after this time; on SQLite a restart does."""
RUNS_PER_TURN: Final = 64
RUNS_PER_PROJECT: Final = 4
"""Runs of one project that are in work at once. A guest may answer slowly; it must not hold up other tenants."""
ACTS_PER_TURN: Final = 20
"""How many acts in a row one run may have before others have their turn."""
KEPT_FOR: Final = timedelta(days=30)
"""How long the row, the log, the outputs and the checkpoints of a run are kept after its end."""
UPLOADS_KEPT_FOR: Final = timedelta(days=7)

Submit = Callable[[Callable[[], None]], None]


class RunLoop:
    def __init__(
        self,
        acts: RunActs,
        *,
        worker: str,
        submit: Submit = lambda work: work(),
        fault: Callable[[str], None] = lambda point: None,
    ) -> None:
        """`submit` runs work in another thread. `fault` is called around every act, for tests of crashes."""
        self._acts = acts
        self._around = acts.around
        self._worker = worker
        self._submit = submit
        self._fault = fault
        self._busy: Counter[str] = Counter()
        """Runs in work by project."""
        self._counting = threading.Lock()

    def take_over(self) -> None:
        """Take all runs from earlier processes. Only for a process that is alone."""
        self._around.database.write(store.release_all_in_all_projects)

    def turn(self) -> None:
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            if not store.is_due_in_all_projects(tx, now):
                return
        leased = self._around.database.write(
            lambda tx: store.lease_in_all_projects(tx, self._worker, now, now + LEASE, limit=RUNS_PER_TURN)
        )
        for run in leased:
            if self._busy[run.project_id] >= RUNS_PER_PROJECT:
                self._release(run)
                continue
            self._count(run, 1)
            self._submit(partial(self._served, run))

    def _served(self, run: Run) -> None:
        """No error ends a thread with the run in its hands: the next turn tries again."""
        try:
            self.advance(run)
        except Exception:
            LOG.exception("%s could not be served", run.id)
            with suppress(Exception):  # the database may be away: then the lease ends by itself
                self._release(run)
        finally:
            self._count(run, -1)

    def _count(self, run: Run, more: int) -> None:
        with self._counting:
            self._busy[run.project_id] += more

    def _release(self, run: Run) -> None:
        self._around.database.write(lambda tx: store.release(tx, run.id, self._worker))

    def advance(self, run: Run) -> None:
        """Act until the run has to wait, and let it go."""
        for _ in range(ACTS_PER_TURN):
            after = self._advanced(run)
            if after is None:
                return
            run = after
            if is_over(run) or run.due_at > self._around.clock.now():
                break
        self._release(run)

    def _advanced(self, run: Run) -> Run | None:
        self._fault(f"{run.phase}:before")
        try:
            after = self._acts.act(run, self._put)
        except TakenOver:
            after = None
        except TeraflockError as error:
            LOG.warning("%s (%s): %s", run.id, run.phase, error.sentence)
            after = self._failed(run, error)
        except Exception as error:
            LOG.exception("%s (%s) failed", run.id, run.phase)
            after = self._failed(run, error)
        self._fault(f"{run.phase}:after")
        return after

    def _failed(self, run: Run, error: Exception) -> Run | None:
        """Write what a failed act leads to. A run that cannot be cleaned up is not over yet."""
        now = self._around.clock.now()
        after = failed_act(run, error, now, spent=self._acts.is_spent(run))
        try:
            return self._put(run, after)
        except Exception as again:
            if not is_over(after):
                raise
            LOG.exception("%s cannot end", run.id)
            return self._put(run, put_off(run, again, now))

    def _put(self, before: Run, after: Run, tx: Transaction | None = None) -> Run | None:
        """Write the result of an act. None: another process has the run now, and this result is obsolete.

        Every end of a run comes through here, so that none leaves a queued launch or an instance behind.
        """
        self._fault(f"{before.phase}:unwritten")

        def end(tx: Transaction) -> Run | None:
            if store.held_in_all_projects(tx, after.id, self._worker) is None:
                return None
            written = self._written(tx, before, self._acts.let_go(tx, after))
            if written is None:
                raise Overtaken("another process has taken the run")
            return written

        if tx is not None:
            return self._written(tx, before, after)
        if is_over(after):
            return self._around.database.write_with_locks(end)
        return self._around.database.write(lambda tx: self._written(tx, before, after))

    def _written(self, tx: Transaction, before: Run, after: Run) -> Run | None:
        if not store.put_held(tx, after, self._worker, release=False):
            return None
        if after.phase != before.phase or after.attempt != before.attempt:
            now = self._around.clock.now()
            record_event(tx, run_event(after, "run.moved", now, self._around.random_bytes))
        return store.held_in_all_projects(tx, after.id, self._worker)

    def sweep(self) -> None:
        """Remove what was kept long enough."""
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            old = store.over_before_in_all_projects(tx, now - KEPT_FOR, limit=RUNS_PER_TURN)
        for run in old:
            self._acts.files.remove_run(run.id)
            for bucket in self._acts.buckets.values():
                bucket.remove(f"{run.id}/")
            self._around.database.write(lambda tx, id=run.id: store.remove(tx, id))  # type: ignore[misc]
        with self._around.database.read() as tx:
            used = store.specs_in_all_projects(tx)
        self._acts.files.remove_uploads((now - UPLOADS_KEPT_FOR).timestamp(), used)
        self._remove_data()

    def _remove_data(self) -> None:
        """Remove the datasets that were deleted from the buckets of regions."""
        if not self._acts.buckets:
            return
        with self._around.database.read() as tx:
            known = datasets.states_in_all_projects(tx)
        for bucket in self._acts.buckets.values():
            cached = {key.removeprefix(DATA).partition(".")[0] for key in bucket.sizes(DATA)}
            for id in cached - known.keys():
                bucket.remove(data_key(id))
