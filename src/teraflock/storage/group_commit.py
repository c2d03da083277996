"""Group commit: one writer thread per SQLite file commits all waiting works together, with one sync to disk.

Invariants:
- every work runs in its own savepoint: if it raises, only that work is rolled back, and only its caller gets the error;
- a caller gets its result after the commit that contains its work, never before;
- if SQLite rolls back a whole transaction because of one work (a full disk), that work fails and the others run
  again, one at a time;
- if a commit fails, every caller in it gets the error, and nothing is kept;
- no exception of a work ends the writer thread.

The queue needs no limit: every caller waits for its result, so the queue is never longer than the number of threads.
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
"""Limits how long the first work of a batch waits for the last. In practice fewer threads wait."""

SIGNAL_SECONDS_MAX: Final = 0.5
"""A signal that arrives just before a wait begins is noticed only when the wait ends."""


class _Job:
    __slots__ = ("answered", "error", "locking", "result", "withdrawn", "work")

    def __init__(self, work: Callable[[Transaction], Any], *, locking: bool) -> None:
        self.work = work
        self.locking = locking
        self.result: Any = None
        self.error: BaseException | None = None
        self.withdrawn = False
        """The caller was interrupted and no longer waits: do not commit the work if that is still possible."""
        self.answered = threading.Lock()
        self.answered.acquire()


class GroupCommit:
    def __init__(
        self, connect: Callable[[], sqlite3.Connection], translated: Callable[[Exception], Exception]
    ) -> None:
        self.commits = 0
        """Transactions committed so far: far fewer than works when many threads write at once."""
        self._connect = connect
        self._translated = translated
        self._connection: sqlite3.Connection | None = None
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="tera-writer", daemon=True)

    @property
    def waiting(self) -> int:
        """Works that are not in a transaction yet."""
        return self._queue.qsize()

    def is_here(self) -> bool:
        """Whether the caller runs in the writer thread. It must not wait for its own thread."""
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
        """Stop the writer thread when all waiting works are done."""
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
            except BaseException as error:  # a bug in this file: the callers must not wait forever
                self._discard_connection()
                self._fail(jobs, error)
            for job in jobs:
                job.answered.release()
        self._discard_connection()

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """All waiting works, up to the limit, and whether to continue after them."""
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
        """Give every job its final result or error."""
        wanted = [job for job in jobs if not job.withdrawn]
        if wanted:
            for job in self._commit(wanted):
                self._commit([job])

    def _commit(self, jobs: list[_Job]) -> list[_Job]:
        """Run the jobs in one transaction. Return the jobs to run again because another job failed."""
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
            connection.rollback()  # the whole transaction is rolled back, and `_commit` notices

    def _fail(self, jobs: list[_Job], error: BaseException) -> None:
        for job in jobs:  # one exception each: raising one in many threads would mix their tracebacks
            job.error = self._translated(error) if isinstance(error, Exception) else error
            if job.error is not error:
                job.error.__cause__ = error

    def _discard_connection(self) -> None:
        """Close the connection, which rolls back what is not committed. The next batch opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
