"""PostgreSQL, for more than one node. A write is serialisable, or isolated by the rows it locks; it is run again
when two collide.

What holds:
- a write is retried, within a bound, only while it is certain that nothing of it was committed;
- a connection lost during the commit itself leaves that open, and the caller is told so;
- the server must sort text by code point and speak UTF-8, as SQLite does: checked when opened.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from teraflock.base.errors import BadInput, Refused, StorageFailed
from teraflock.storage.database import Database, Misuse, Overtaken, Row, Transaction
from teraflock.storage.postgres_errors import COLLIDED, translated
from teraflock.storage.postgres_transaction import Connection, PostgresTransaction, portable_adapters

T = TypeVar("T")

CONNECTIONS_MAX: Final = 16  # per process; a server takes 100 by default, for some processes
CONNECTION_SECONDS_MAX: Final = 10.0  # to get a connection, made or free
LOCK_SECONDS_MAX: Final = 10  # to wait for another transaction; longer is a hang, and better told
ATTEMPTS_MAX: Final = 20  # of one write; the pauses between them sum up to some five seconds at most
ATTEMPTS_FREE_MAX: Final = 4
"""After so many, the attempts of one write are made one at a time with those of others that fare alike: else writes
that depend on the same rows could collide again and again until one of them gives up."""
PAUSE_SECONDS: Final = 0.002  # about one commit; doubled at each attempt
PAUSE_SECONDS_MAX: Final = 0.4
ALONE_KEY: Final = 0x7E_4A_F1_0C  # of the advisory lock behind `write_alone`; any number of our own

_READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = b"BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE"
_WRITE_WITH_LOCKS: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"


def open_postgres(dsn: str) -> Database:
    """The database at `postgresql://user:password@host:port/name`, or any address libpq takes."""
    where = _where(dsn)
    _check_server(dsn, where)
    return PostgresDatabase(dsn, where)


class PostgresDatabase:
    def __init__(self, dsn: str, where: str) -> None:
        self.where = where
        self._process = os.getpid()
        self._inside = threading.local()
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            dsn,
            min_size=1,
            max_size=CONNECTIONS_MAX,
            timeout=CONNECTION_SECONDS_MAX,
            kwargs=_connection_options(),
            configure=_configure,
            open=True,
        )

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        self._check_usable()
        with self._begun(_READ) as connection:
            tx = PostgresTransaction(connection, self._translated)
            try:
                yield tx
            finally:
                tx.end()

    def write(self, work: Callable[[Transaction], T], /) -> T:
        return self._repeated(work, _WRITE)

    def write_with_locks(self, work: Callable[[Transaction], T], /) -> T:
        return self._repeated(work, _WRITE_WITH_LOCKS)

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        return self._repeated(work, _WRITE, alone=True)

    def close(self) -> None:
        if self._process == os.getpid():  # else the connections belong to the parent
            self._pool.close()

    def _repeated(self, work: Callable[[Transaction], T], begin: bytes, *, alone: bool = False) -> T:
        self._check_usable()
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return self._attempt(work, begin, alone=alone or attempt > ATTEMPTS_FREE_MAX)
            except _Again as again:
                if attempt == ATTEMPTS_MAX:
                    raise self._translated(again.reason) from again.reason
            time.sleep(_pause_seconds(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, work: Callable[[Transaction], T], begin: bytes, *, alone: bool) -> T:
        with self._begun(begin, alone=alone) as connection:
            tx = PostgresTransaction(connection, self._translated, locking=begin is _WRITE_WITH_LOCKS)
            self._inside.work = True
            try:
                result = work(tx)
                tx.finish()
            except Overtaken as error:
                raise _Again(error) from None
            except Exception:
                if isinstance(tx.failure, COLLIDED) or (tx.failure and connection.broken):
                    raise _Again(tx.failure) from None
                raise
            finally:
                self._inside.work = False
                tx.end()
            self._commit(connection)
            return result

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except COLLIDED as error:
            raise _Again(error) from None
        except psycopg.Error as error:
            if not connection.broken:
                raise self._translated(error) from error
            raise StorageFailed(
                f"The connection to `{self.where}` was lost while a change was being kept",
                hint="Look whether the change is there before you try again",
                context={"message": str(error)},
            ) from error

    @contextmanager
    def _begun(self, begin: bytes, *, alone: bool = False) -> Iterator[Connection]:
        connection = self._ready_connection(begin, alone=alone)
        try:
            yield connection
        finally:
            with suppress(psycopg.Error):  # a broken connection has undone it already, and is not kept
                connection.rollback()
                if alone:
                    connection.execute("SELECT pg_advisory_unlock($1)", [ALONE_KEY])
            self._pool.putconn(connection)

    def _ready_connection(self, begin: bytes, *, alone: bool) -> Connection:
        """A connection with its transaction begun. Those that died while idle are passed over."""
        for left in range(CONNECTIONS_MAX, -1, -1):
            connection = self._free_connection()
            try:
                if alone:  # before the transaction: its snapshot must come after the wait
                    connection.execute("SELECT pg_advisory_lock($1)", [ALONE_KEY])
                connection.execute(begin)
                return connection
            except psycopg.Error as error:
                broken = connection.broken
                self._pool.putconn(connection)
                if not (broken and left):
                    raise self._translated(error) from error
        raise AssertionError("the last attempt returns or raises")

    def _free_connection(self) -> Connection:
        try:
            return self._pool.getconn()
        except psycopg.Error as error:
            raise self._translated(error) from error

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise Misuse("a database cannot be used across a fork: open it again in the child")
        if self._pool.closed:
            raise Misuse("the database is closed")
        if getattr(self._inside, "work", False):
            raise Misuse("inside a work, use its transaction: another would wait for this one")

    def _translated(self, error: Exception) -> Exception:
        return translated(error, self.where)


class _Again(Exception):
    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def _pause_seconds(attempt: int) -> float:
    """Longer each time, and by chance: two that collided must not meet again."""
    longest: float = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2**attempt)
    return longest * random.random()  # noqa: S311 -- guards nothing


def _connection_options() -> dict[str, object]:
    return {
        "autocommit": True,  # transactions are begun here, never by psycopg behind our back
        "cursor_factory": psycopg.RawCursor,
        "context": portable_adapters(),
        "connect_timeout": int(CONNECTION_SECONDS_MAX),
    }


def _configure(connection: Connection) -> None:
    connection.execute(f"SET lock_timeout = '{LOCK_SECONDS_MAX}s'".encode())
    connection.execute(  # durable when `write` returns, however lax the server; a stricter one stays so
        b"SELECT set_config('synchronous_commit', 'on', false)"
        b" WHERE current_setting('synchronous_commit') = 'off'"
    )


def _where(dsn: str) -> str:
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise BadInput(
            "The address of the PostgreSQL database cannot be read",
            hint="Write it as `postgresql://user:password@host:5432/name`",
        ) from None  # the cause would repeat the address, and with it the password
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    port = parts.get("port") or "5432"
    return f"postgresql://{host}:{port}/{parts.get('dbname') or parts.get('user') or ''}"


def _check_server(dsn: str, where: str) -> None:
    try:
        with psycopg.connect(dsn, connect_timeout=int(CONNECTION_SECONDS_MAX)) as connection:
            row: Row | None = connection.execute(
                "SELECT current_setting('server_encoding') = 'UTF8' AND 'B' < 'a' AND 'Z' < '_' AND '_' < 'a'"
            ).fetchone()
    except psycopg.Error as error:
        raise translated(error, where) from error
    if row != (True,):
        raise Refused(
            f"`{where}` does not sort text by code point in UTF-8, as Teraflock needs it",
            hint="Make the database with `createdb --template=template0 --encoding=UTF8 --locale=C`",
        )
