"""One writer thread for one SQLite file. Whatever waits is committed together, with one sync to disk.

What holds:
- every work runs in a savepoint of its own: one that raises is undone alone, and only its caller hears;
- a caller is answered after the commit that holds its work, never before;
- where SQLite undoes a whole transaction for the fault of one work (a full disk), that work fails and the
  others are run again, each alone;
- a commit that fails is told to every caller in it, and nothing of it is kept;
- no work, whatever it raises, ends the writer.

The queue needs no bound of its own: every caller waits for its answer, so it is as long as there are threads.
"""

import sqlite3
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from teraflock.storage.database import Misuse, Transaction
from teraflock.storage.sqlite_transaction import SqliteTransaction

T = TypeVar("T")

WORKS_PER_COMMIT_MAX: Final = 512
"""Bounds how long the first of a batch waits for the last. Threads that wait are fewer in practice."""

SIGNAL_SECONDS_MAX: Final = 0.5
"""A signal that comes in the instant before a wait begins is noticed only when the wait ends."""


class _Job:
    __slots__ = ("answered", "error", "locking", "result", "withdrawn", "work")

    def __init__(self, work: Callable[[Transaction], Any], *, locking: bool) -> None:
        self.work = work
        self.locking = locking
        self.result: Any = None
        self.error: BaseException | None = None
        self.withdrawn = False
        """The caller was interrupted and waits no longer: what is not yet committed should not be."""
        self.answered = threading.Lock()
        self.answered.acquire()


class GroupCommit:
    def __init__(
        self, connect: Callable[[], sqlite3.Connection], translated: Callable[[Exception], Exception]
    ) -> None:
        self.commits = 0
        """Transactions committed so far: far fewer than works when many write at once."""
        self._connect = connect
        self._translated = translated
        self._connection: sqlite3.Connection | None = None
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="tera-writer", daemon=True)

    @property
    def waiting(self) -> int:
        """Works that no transaction has taken up yet."""
        return self._queue.qsize()

    def is_here(self) -> bool:
        """Whether the caller is a work of this writer, which must not wait for its own writer."""
        return threading.get_ident() == self._thread.ident

    def write(self, work: Callable[[Transaction], T], *, locking: bool = False) -> T:
        job = _Job(work, locking=locking)
        try:
            self._put(job)
            while not job.answered.acquire(timeout=SIGNAL_SECONDS_MAX):
                continue
        except BaseException:
            job.withdrawn = True
            raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """End the writer once all that waits is settled."""
        with self._lock:
            if not self._closed and self._thread.is_alive():
                self._queue.put(None)
            self._closed = True
        if self._thread.is_alive():
            self._thread.join()

    def _put(self, job: _Job) -> None:
        with self._lock:
            if self._closed:
                raise Misuse("the database is closed")
            if not self._thread.is_alive():
                self._thread.start()
            self._queue.put(job)

    def _loop(self) -> None:
        more = True
        while more:
            jobs, more = self._next_batch()
            try:
                self._settle(jobs)
            except BaseException as error:  # a fault in this file: the callers must not wait for ever
                self._discard_connection()
                self._fail(jobs, error)
            for job in jobs:
                job.answered.release()
        self._discard_connection()

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """All that waits, within the bound, and whether to go on after it."""
        jobs: list[_Job] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == WORKS_PER_COMMIT_MAX:
                return jobs, True
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs, True
        return jobs, False

    def _settle(self, jobs: list[_Job]) -> None:
        """Give every job its result or its error, for good."""
        wanted = [job for job in jobs if not job.withdrawn]
        if wanted:
            for job in self._commit(wanted):
                self._commit([job])

    def _commit(self, jobs: list[_Job]) -> list[_Job]:
        """Run the jobs in one transaction. Gives back those to run again, each alone, for another's fault."""
        try:
            connection = self._begun()
        except Exception as error:
            self._fail(jobs, error)
            return []
        for job in jobs:
            self._run(connection, job)
            if not connection.in_transaction:
                self._discard_connection()
                return [other for other in jobs if other is not job]
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._discard_connection()
            if isinstance(error, sqlite3.IntegrityError) and len(jobs) > 1:
                return jobs
            self._fail(jobs, error)
        else:
            self.commits += 1
        return []

    def _begun(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def _run(self, connection: sqlite3.Connection, job: _Job) -> None:
        tx = SqliteTransaction(connection, self._translated, locking=job.locking)
        job.error = None
        connection.execute("SAVEPOINT work")
        try:
            job.result = job.work(tx)
            tx.finish()
            tx.end()
            if job.withdrawn:
                raise Misuse("the caller was interrupted")
            connection.execute("RELEASE work")
        except BaseException as error:
            job.error = error
            tx.end()
            self._undo(connection)

    def _undo(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK TO work")
                connection.execute("RELEASE work")
        except sqlite3.Error:
            connection.rollback()  # then all of the transaction is undone, and `_commit` sees it

    def _fail(self, jobs: list[_Job], error: BaseException) -> None:
        for job in jobs:  # an exception each: one raised in many threads would mix their tracebacks
            job.error = self._translated(error) if isinstance(error, Exception) else error
            if job.error is not error:
                job.error.__cause__ = error

    def _discard_connection(self) -> None:
        """Close the connection; what it has not committed is undone. The next batch opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
