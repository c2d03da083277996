"""PostgreSQL, for more than one server. A write is serialisable, or isolated by the rows that it locks. When two
writes conflict, one of them runs again.

Invariants:
- a write is retried, up to a limit, only if it is certain that nothing was committed;
- if the connection is lost during the commit, the result is unknown, and the caller gets an error that says so;
- the server must sort text by code point and use UTF-8, as SQLite does. This is checked on opening.
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
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from teraflock.base.errors import BadInput, Refused, StorageFailed
from teraflock.storage.database import Database, Misuse, Overtaken, Row, Transaction
from teraflock.storage.postgres_errors import COLLIDED, translated
from teraflock.storage.postgres_statements import PostgresConnection, Statements, portable_adapters
from teraflock.storage.postgres_transaction import PostgresTransaction

T = TypeVar("T")

CONNECTIONS_MAX: Final = (
    16  # per process; a PostgreSQL server accepts 100 by default, shared by all processes
)
CONNECTION_SECONDS_MAX: Final = 10.0  # to wait for a new or free connection
LOCK_SECONDS_MAX: Final = 10  # to wait for another transaction; a longer wait is reported as an error
ATTEMPTS_MAX: Final = 20  # of one write; the pauses between them add up to about five seconds at most
ATTEMPTS_FREE_MAX: Final = 4
"""After this many attempts, a write takes turns with other writes in the same situation. Otherwise writes that depend
on the same rows could conflict until one of them gives up."""
PAUSE_SECONDS: Final = 0.002  # about one commit; doubled with each attempt
PAUSE_SECONDS_MAX: Final = 0.4
ALONE_KEY: Final = 0x7E_4A_F1_0C  # of the advisory lock for `write_alone`; an arbitrary number

_READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = b"BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE"
_WRITE_WITH_LOCKS: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_WRITE_ONE: Final = b""  # a statement outside a transaction is a transaction by itself


def open_postgres(dsn: str) -> Database:
    """Open the database at `postgresql://user:password@host:port/name`, or any address that libpq accepts."""
    where = _where(dsn)
    _check_server(dsn, where)
    return PostgresDatabase(dsn, where)


class PostgresDatabase:
    def __init__(self, dsn: str, where: str) -> None:
        self.where = where
        self._process = os.getpid()
        self._inside = threading.local()
        self._pool: ConnectionPool[PostgresConnection] = ConnectionPool(
            dsn,
            connection_class=PostgresConnection,
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

    def write_one(self, work: Callable[[Transaction], T], /) -> T:
        return self._repeated(work, _WRITE_ONE)

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        return self._repeated(work, _WRITE, alone=True)

    def close(self) -> None:
        if self._process == os.getpid():  # after a fork, the connections belong to the parent
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
            tx = PostgresTransaction(
                connection,
                self._translated,
                locking=begin is _WRITE_WITH_LOCKS,
                statements_max=1 if begin is _WRITE_ONE else None,
            )
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
            if begin:
                self._commit(connection)
            return result

    def _commit(self, connection: PostgresConnection) -> None:
        try:
            connection.statements.command(b"COMMIT")
        except COLLIDED as error:
            raise _Again(error) from None
        except psycopg.Error as error:
            if not connection.broken:
                raise self._translated(error) from error
            raise StorageFailed(
                f"The connection to `{self.where}` was lost during a commit",
                hint="Check whether the change was made before you try again",
                context={"message": str(error)},
            ) from error

    @contextmanager
    def _begun(self, begin: bytes, *, alone: bool = False) -> Iterator[PostgresConnection]:
        connection = self._ready_connection(begin, alone=alone)
        try:
            yield connection
        finally:
            with suppress(psycopg.Error):  # a broken connection is already rolled back, and is discarded
                _roll_back(connection)
                if alone:
                    connection.statements.rows(b"SELECT pg_advisory_unlock($1)", [ALONE_KEY])
            self._pool.putconn(connection)

    def _ready_connection(self, begin: bytes, *, alone: bool) -> PostgresConnection:
        """A connection with an open transaction. Skips connections that died while idle."""
        for left in range(CONNECTIONS_MAX, -1, -1):
            connection = self._free_connection()
            try:
                if alone:  # before the transaction, because its snapshot must come after the wait
                    connection.statements.rows(b"SELECT pg_advisory_lock($1)", [ALONE_KEY])
                if begin:
                    connection.statements.command(begin)
                return connection
            except psycopg.Error as error:
                broken = connection.broken
                self._pool.putconn(connection)
                if not (broken and left):
                    raise self._translated(error) from error
        raise AssertionError("the last attempt returns or raises")

    def _free_connection(self) -> PostgresConnection:
        try:
            return self._pool.getconn()
        except psycopg.Error as error:
            raise self._translated(error) from error

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise Misuse("a database cannot be used after a fork: open it again in the child")
        if self._pool.closed:
            raise Misuse("the database is closed")
        if getattr(self._inside, "work", False):
            raise Misuse("use the transaction of the work: a second one would wait for the first")

    def _translated(self, error: Exception) -> Exception:
        return translated(error, self.where)


class _Again(Exception):
    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def _roll_back(connection: PostgresConnection) -> None:
    """End an open transaction."""
    status = connection.pgconn.transaction_status
    if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
        connection.statements.command(b"ROLLBACK")
    elif status != TransactionStatus.IDLE:
        connection.rollback()


def _pause_seconds(attempt: int) -> float:
    """Longer with each attempt, and random, so that two writes that conflicted do not meet again."""
    longest: float = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2**attempt)
    return longest * random.random()  # noqa: S311 -- not used for security


def _connection_options() -> dict[str, object]:
    return {
        "autocommit": True,  # this module begins all transactions, not psycopg
        "cursor_factory": psycopg.RawCursor,
        "context": portable_adapters(),
        "connect_timeout": int(CONNECTION_SECONDS_MAX),
    }


def _configure(connection: PostgresConnection) -> None:
    connection.statements = Statements(connection)
    connection.execute(f"SET lock_timeout = '{LOCK_SECONDS_MAX}s'".encode())
    connection.execute(b"SET default_transaction_isolation = 'read committed'")  # for `write_one`
    connection.execute(  # `write` must be durable even if the server's default is not; stricter settings are kept
        b"SELECT set_config('synchronous_commit', 'on', false)"
        b" WHERE current_setting('synchronous_commit') = 'off'"
    )


def _where(dsn: str) -> str:
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise BadInput(
            "The address of the PostgreSQL database is invalid",
            hint="Write it as `postgresql://user:password@host:5432/name`",
        ) from None  # the cause would repeat the address with the password
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
            f"`{where}` must sort text by code point and use UTF-8",
            hint="Create the database with `createdb --template=template0 --encoding=UTF8 --locale=C`",
        )
