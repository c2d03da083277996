"""One transaction on one PostgreSQL connection. Whoever makes it begins, commits and undoes it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from teraflock.storage.database import Row, Rows
from teraflock.storage.sql_text import STATEMENTS_CACHED_MAX, Parsed, parsed
from teraflock.storage.transaction import Guarded

Connection: TypeAlias = psycopg.Connection[Row]

ROWS_PER_FETCH: Final = 2000  # one way to the server and back each; a few hundred kilobytes in memory

# An INSERT that only lists columns and values: COPY does the same several times faster.
_PLAIN_INSERT: Final = re.compile(
    r"\s*INSERT\s+INTO\s+(?P<table>\w+)\s*\((?P<columns>[\w\s,]+)\)"
    r"\s*VALUES\s*\(\s*:\w+(\s*,\s*:\w+)*\s*\)\s*",
    re.IGNORECASE,
)


class PostgresTransaction(Guarded):
    def __init__(
        self,
        connection: Connection,
        translated: Callable[[Exception], Exception],
        *,
        locking: bool = False,
    ) -> None:
        super().__init__(translated, locking=locking)
        self._connection = connection
        self._streams: set[psycopg.RawServerCursor[Row]] = set()
        self._streams_made = 0

    def all(self, sql: str, /, **values: object) -> list[Row]:
        return self._do(lambda: self._cursor(sql, values).fetchall())

    def one(self, sql: str, /, **values: object) -> Row | None:
        return self._do(lambda: self._cursor(sql, values).fetchone())

    def each(self, sql: str, /, **values: object) -> Iterator[Row]:
        return self._fetched(self._do(lambda: self._stream(sql, values)))

    def run(self, sql: str, /, **values: object) -> int:
        return max(0, self._do(lambda: self._cursor(sql, values).rowcount))

    def run_many(self, sql: str, rows: Rows, /) -> int:
        return self._do(lambda: self._changed_by_all(sql, rows))

    def lock(self, sql: str, /, **values: object) -> list[Row]:
        return self._locked(sql, " FOR NO KEY UPDATE", values)  # lets others add rows that refer to these

    def lock_shared(self, sql: str, /, **values: object) -> list[Row]:
        return self._locked(sql, " FOR SHARE", values)

    def lock_free(self, sql: str, /, **values: object) -> list[Row]:
        return self._locked(sql, " FOR NO KEY UPDATE SKIP LOCKED", values)

    def end(self) -> None:
        """Nothing can be run from here on, and no stream is left open."""
        self._over = True
        with suppress(psycopg.Error):  # a broken connection has closed them already
            for cursor in self._streams:
                cursor.close()
        self._streams.clear()

    def _locked(self, sql: str, how: str, values: dict[str, object]) -> list[Row]:
        self._check_locking()
        return self._do(lambda: self._cursor(sql + how, values).fetchall())

    def _cursor(self, sql: str, values: dict[str, object]) -> psycopg.Cursor[Row]:
        statement = parsed(sql)
        return self._connection.execute(statement.dollars, statement.values(values))

    def _stream(self, sql: str, values: dict[str, object]) -> psycopg.RawServerCursor[Row]:
        statement = parsed(sql)
        self._streams_made += 1
        cursor: psycopg.RawServerCursor[Row]
        cursor = psycopg.RawServerCursor(self._connection, f"stream_{self._streams_made}")
        self._streams.add(cursor)
        cursor.execute(statement.dollars, statement.values(values))
        return cursor

    def _fetched(self, cursor: psycopg.RawServerCursor[Row]) -> Iterator[Row]:
        try:
            while rows := self._do(lambda: cursor.fetchmany(ROWS_PER_FETCH)):
                yield from rows
        finally:
            if cursor in self._streams:
                cursor.close()
                self._streams.discard(cursor)

    def _changed_by_all(self, sql: str, rows: Rows) -> int:
        statement = parsed(sql)
        every = statement.sequences(rows)
        with self._connection.cursor() as cursor:
            if into := copy_into(sql):
                _copied(cursor, into, statement, every)
            else:
                cursor.executemany(statement.dollars, every)
            return max(0, cursor.rowcount)


def _copied(
    cursor: psycopg.Cursor[Row], into: bytes, statement: Parsed, rows: Iterable[Sequence[object]]
) -> None:
    with cursor.copy(into) as copy:
        for row in map(statement.in_place, rows):
            copy.write_row(row)


@lru_cache(maxsize=STATEMENTS_CACHED_MAX)
def copy_into(sql: str) -> bytes | None:
    """The COPY that does what an INSERT does, where there is one."""
    match = _PLAIN_INSERT.fullmatch(sql)
    if match is None:
        return None
    return f"COPY {match['table']} ({match['columns']}) FROM STDIN".encode()


def portable_adapters() -> AdaptersMap:
    """Values go in and come out as they do with SQLite."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(int, Int8Dumper)  # one type for all numbers: so a statement is prepared once
    adapters.register_dumper(bool, _TruthDumper)
    adapters.register_dumper(str, StrDumper)  # always TEXT, never guessed from where it stands
    adapters.register_loader("numeric", _NumericLoader)
    return adapters


class _TruthDumper(Int8Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        return b"1" if obj else b"0"


class _NumericLoader(Loader):
    """No column is NUMERIC, but the sum of a BIGINT is; whole numbers stay whole."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)
