"""SQLite without a file, for read-only home folders and for quick tests.

One thread uses it at a time: reads and writes wait for each other. A write inside a read is refused, because it would
change the snapshot of that read. Reads may be nested. They have a connection of their own that cannot write: to forbid
writes and allow them again on one connection would let SQLite compile all statements anew each time.
"""

import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from teraflock.storage.database import Misuse, Transaction
from teraflock.storage.sqlite_errors import translated
from teraflock.storage.sqlite_transaction import SqliteTransaction

T = TypeVar("T")
_NUMBERS: Final = itertools.count(1)


class MemoryDatabase:
    where = ":memory:"

    def __init__(self) -> None:
        name = f"file:teraflock-{next(_NUMBERS)}?mode=memory&cache=shared"
        self._connection, self._reading = _connected(name), _connected(name)
        self._reading.execute("PRAGMA query_only = ON")
        self._lock = threading.RLock()
        self._closed = False
        self._readers = 0
        self._writing = False

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._lock:
            self._check_usable()
            tx = SqliteTransaction(self._reading, self._read_error)
            self._readers += 1
            try:
                yield tx
            finally:
                tx.end()
                self._readers -= 1

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
            self._reading.close()
            self._connection.close()

    def _check_usable(self) -> None:
        """The lock is reentrant, so a caller that gets here during a write is inside that work."""
        if self._closed:
            raise Misuse("the database is closed")
        if self._writing:
            raise Misuse("use the transaction of the work: a second one would wait for the first")

    def _read_error(self, error: Exception) -> Exception:
        return translated(error, self.where, reading=True)

    def _write_error(self, error: Exception) -> Exception:
        return translated(error, self.where, reading=False)


def _connected(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA case_sensitive_like = ON")
    return connection
