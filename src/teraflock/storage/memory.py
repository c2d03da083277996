"""SQLite without a file, for read-only home folders and for quick tests.

It has one connection, which one thread uses at a time: reads and writes wait for each other. A write inside a read
is refused, because it would change the snapshot of that read. Reads may be nested.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from teraflock.storage.database import Misuse, Transaction
from teraflock.storage.sqlite_errors import translated
from teraflock.storage.sqlite_transaction import SqliteTransaction

T = TypeVar("T")


class MemoryDatabase:
    where = ":memory:"

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute("PRAGMA case_sensitive_like = ON")
        self._lock = threading.RLock()
        self._closed = False
        self._readers = 0
        self._writing = False

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._lock:
            self._check_usable()
            tx = SqliteTransaction(self._connection, self._read_error)
            self._enter_read()
            try:
                yield tx
            finally:
                tx.end()
                self._leave_read()

    def write(self, work: Callable[[Transaction], T], /) -> T:
        return self._write(work, locking=False)

    def write_with_locks(self, work: Callable[[Transaction], T], /) -> T:
        return self._write(work, locking=True)

    write_one = write_with_locks

    def _write(self, work: Callable[[Transaction], T], *, locking: bool) -> T:
        with self._lock:
            self._check_usable()
            if self._readers:
                raise Misuse("an in-memory database cannot write inside a read")
            tx = SqliteTransaction(self._connection, self._write_error, locking=locking)
            self._writing = True
            self._connection.execute("BEGIN")
            try:
                result = work(tx)
                tx.finish()
                tx.end()
                self._connection.commit()
            finally:
                tx.end()
                self._connection.rollback()
                self._writing = False
            return result

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        return self.write(work)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._connection.close()

    def _check_usable(self) -> None:
        """The lock is reentrant, so a caller that gets here during a write is inside that work."""
        if self._closed:
            raise Misuse("the database is closed")
        if self._writing:
            raise Misuse("use the transaction of the work: a second one would wait for the first")

    def _enter_read(self) -> None:
        if not self._readers:
            self._connection.execute("PRAGMA query_only = ON")
            self._connection.execute("BEGIN")
        self._readers += 1

    def _leave_read(self) -> None:
        self._readers -= 1
        if not self._readers:
            self._connection.rollback()
            self._connection.execute("PRAGMA query_only = OFF")

    def _read_error(self, error: Exception) -> Exception:
        return translated(error, self.where, reading=True)

    def _write_error(self, error: Exception) -> Exception:
        return translated(error, self.where, reading=False)
