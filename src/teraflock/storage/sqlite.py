"""SQLite: any number of readers, each with a snapshot, and one writer with group commit.

Invariants:
- the database uses a write-ahead log (WAL), synced at every commit: reads never wait for the writer, and what
  `write` returned from survives a power cut;
- opening is free: the first read opens the file, the first write starts the writer;
- only the process that opened a database uses it; after a fork, the child opens its own.

A file in a read-only folder is opened as immutable, because SQLite cannot create its shared index there. That is
safe while nobody else writes the file, and refused if its log is not empty.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from teraflock.base.errors import StorageFailed
from teraflock.storage.database import Database, Misuse, Transaction
from teraflock.storage.sqlite_errors import CANNOT_OPEN, HOME_HINT, code_of, translated
from teraflock.storage.sqlite_transaction import SqliteTransaction

if TYPE_CHECKING:
    from teraflock.storage.group_commit import GroupCommit

T = TypeVar("T")

BUSY_SECONDS_MAX: Final = 20.0
"""How long to wait for another process that writes. An import of 130,000 offers takes less on a busy machine."""
READERS_IDLE_MAX: Final = 8  # kept open between reads; each needs a file handle and a page cache
CACHE_KIB: Final = 64 * 1024  # for the writer: an import touches all parts of its indexes
LOG_BYTES_KEPT: Final = 64 * 1024 * 1024  # SQLite truncates a larger log after its next checkpoint


def open_sqlite(path: str | os.PathLike[str], *, read_only: bool = False) -> Database:
    """Open the database in the file at `path`, created if missing; or one in memory for `:memory:`."""
    if os.fspath(path) == ":memory:":
        from teraflock.storage.memory import MemoryDatabase  # rarely used, so not part of the cold start

        return MemoryDatabase()
    return SqliteDatabase(path, read_only=read_only)


class SqliteDatabase:
    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 -- pathlib adds 5 ms to the cold start
        self._read_only = read_only
        self._process = os.getpid()
        self._closed = False
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._writer: GroupCommit | None = None

    @property
    def where(self) -> str:
        return self._path

    @property
    def commits(self) -> int:
        """Transactions committed so far by this process."""
        return self._writer.commits if self._writer else 0

    @property
    def works_waiting(self) -> int:
        """Writes that are not in a transaction yet."""
        return self._writer.waiting if self._writer else 0

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        self._check_usable()
        connection = self._reader()
        tx = SqliteTransaction(connection, self._read_error)
        try:
            connection.execute("BEGIN")
            yield tx
        finally:
            tx.end()
            self._give_back(connection, usable=tx.failure is None)

    def write(self, work: Callable[[Transaction], T], /) -> T:
        return self._write(work, locking=False)

    def write_with_locks(self, work: Callable[[Transaction], T], /) -> T:
        return self._write(work, locking=True)  # there is only one writer, so nobody else can change rows

    write_one = write_with_locks

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        return self.write(work)  # the file has one writer at a time, across all processes

    def close(self) -> None:
        if self._process != os.getpid():
            return  # the connections belong to the parent
        if self._writer and self._writer.is_here():
            raise Misuse("a work cannot close its database")
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        if self._writer:
            self._writer.close()  # last, so that its connection removes the log

    def _write(self, work: Callable[[Transaction], T], *, locking: bool) -> T:
        self._check_usable()
        if self._read_only:
            raise StorageFailed(f"`{self._path}` is open read-only", hint=HOME_HINT)
        return self._started_writer().write(work, locking=locking)

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise Misuse("a database cannot be used after a fork: open it again in the child")
        if self._closed:
            raise Misuse("the database is closed")
        if self._writer and self._writer.is_here():
            raise Misuse("use the transaction of the work: a second one would wait for the first")

    def _started_writer(self) -> "GroupCommit":
        with self._lock:
            if self._writer is None:
                from teraflock.storage.group_commit import GroupCommit  # readers do not need it

                self._writer = GroupCommit(lambda: connect_to_write(self._path), self._write_error)
            return self._writer

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return connect_to_read(self._path, make=not self._read_only)
        except sqlite3.Error as error:
            raise translated(error, self._path, reading=False) from error

    def _give_back(self, connection: sqlite3.Connection, *, usable: bool) -> None:
        if usable and not self._closed and len(self._idle) < READERS_IDLE_MAX:
            connection.rollback()
            self._idle.append(connection)
        else:
            connection.close()

    def _read_error(self, error: Exception) -> Exception:
        return translated(error, self._path, reading=True)

    def _write_error(self, error: Exception) -> Exception:
        return translated(error, self._path, reading=False)


def connect_to_read(path: str, *, make: bool) -> sqlite3.Connection:
    if make:
        _make_private(path)
    try:
        return _reading(path, "mode=rw")
    except sqlite3.Error as error:
        code = code_of(error) or 0
        if code & 0xFF not in CANNOT_OPEN | {sqlite3.SQLITE_READONLY} or not os.access(path, os.R_OK):
            raise
    if _size_bytes(f"{path}-wal"):
        raise StorageFailed(
            f"`{path}` was not closed properly, and its folder is not writable, so it cannot be repaired",
            hint=f"Open it once where its folder is writable. {HOME_HINT}",
        )
    return _reading(path, "immutable=1")


def connect_to_write(path: str) -> sqlite3.Connection:
    _make_private(path)
    connection = _connected(path, "mode=rw")
    try:
        _log_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
    except sqlite3.Error as error:
        connection.close()
        if code_of(error) == sqlite3.SQLITE_CANTOPEN:  # the file itself is open: the log cannot be created
            raise StorageFailed(f"`{path}` cannot be written", hint=HOME_HINT) from error
        raise
    return connection


def _reading(path: str, mode: str) -> sqlite3.Connection:
    connection = _connected(path, mode)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # makes SQLite open the log
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connected(path: str, mode: str) -> sqlite3.Connection:
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{quoted}?{mode}",
        uri=True,
        timeout=BUSY_SECONDS_MAX,
        isolation_level=None,  # this module begins all transactions, not Python
        check_same_thread=False,  # a connection moves between threads, but only one uses it at a time
    )
    connection.execute("PRAGMA case_sensitive_like = ON")  # as in PostgreSQL
    return connection


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turn on WAL. This needs exclusive access to the file, and SQLite does not wait for it by itself."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if (code_of(error) or 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        connection.execute("BEGIN IMMEDIATE")  # waits, up to the limit, for other users of the file
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA journal_mode = WAL")


def _make_private(path: str) -> None:
    """Create the file if it is missing, readable only by its owner: it will contain keys and bills."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        if not os.path.exists(path):  # noqa: PTH110 -- as above
            raise StorageFailed(
                f"Could not create `{path}`: {error.strerror}",
                hint=f"Check that its folder exists and belongs to you. {HOME_HINT}",
            ) from error


def _size_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 -- as above
    except OSError:
        return 0
