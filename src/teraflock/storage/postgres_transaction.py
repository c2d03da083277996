"""One transaction on one PostgreSQL connection. The caller begins it and commits it or rolls it back."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from typing import Final

import psycopg

from teraflock.storage.database import Misuse, Row, Rows
from teraflock.storage.postgres_statements import PostgresConnection
from teraflock.storage.sql_text import STATEMENTS_CACHED_MAX, Parsed, parsed
from teraflock.storage.transaction import Guarded

ROWS_COPIED_MIN: Final = 4  # a COPY is planned each time, and takes two round trips
ROWS_PER_FETCH: Final = 2000  # one round trip each; a few hundred kilobytes in memory

# An INSERT with only columns and values. COPY does the same several times faster.
_PLAIN_INSERT: Final = re.compile(
    r"\s*INSERT\s+INTO\s+(?P<table>\w+)\s*\((?P<columns>[\w\s,]+)\)"
    r"\s*VALUES\s*\(\s*:\w+(\s*,\s*:\w+)*\s*\)\s*",
    re.IGNORECASE,
)


class PostgresTransaction(Guarded):
    def __init__(
        self,
        connection: PostgresConnection,
        translated: Callable[[Exception], Exception],
        *,
        locking: bool = False,
        statements_max: int | None = None,
    ) -> None:
        super().__init__(translated, locking=locking)
        self._statements_left = statements_max
        self._connection = connection
        self._streams: set[psycopg.RawServerCursor[Row]] = set()
        self._streams_made = 0

    def all(self, sql: str, /, **values: object) -> list[Row]:
        return self._do(lambda: self._rows(sql, values))

    def one(self, sql: str, /, **values: object) -> Row | None:
        rows = self.all(sql, **values)
        return rows[0] if rows else None

    def each(self, sql: str, /, **values: object) -> Iterator[Row]:
        return self._fetched(self._do(lambda: self._stream(sql, values)))

    def run(self, sql: str, /, **values: object) -> int:
        return self._do(lambda: self._run(sql, values))

    def run_many(self, sql: str, rows: Rows, /) -> int:
        return self._do(lambda: self._changed_by_all(sql, rows))

    def lock(self, sql: str, /, **values: object) -> list[Row]:
        return self._locked(sql, " FOR NO KEY UPDATE", values)  # others can add rows that refer to these

    def lock_shared(self, sql: str, /, **values: object) -> list[Row]:
        return self._locked(sql, " FOR SHARE", values)

    def lock_free(self, sql: str, /, **values: object) -> list[Row]:
        return self._locked(sql, " FOR NO KEY UPDATE SKIP LOCKED", values)

    def end(self) -> None:
        """End the transaction object: no more statements, and no open streams."""
        self._over = True
        with suppress(psycopg.Error):  # a broken connection has already closed them
            for cursor in self._streams:
                cursor.close()
        self._streams.clear()

    def _locked(self, sql: str, how: str, values: dict[str, object]) -> list[Row]:
        self._check_locking()
        return self._do(lambda: self._rows(sql + how, values))

    def _parsed(self, sql: str) -> Parsed:
        if self._statements_left is not None:
            if not self._statements_left:
                raise Misuse("`write_one` runs one statement: use `write_with_locks`")
            self._statements_left -= 1
        return parsed(sql)

    def _rows(self, sql: str, values: dict[str, object]) -> list[Row]:
        statement = self._parsed(sql)
        return self._connection.statements.rows(statement.dollars, statement.values(values))

    def _run(self, sql: str, values: dict[str, object]) -> int:
        statement = self._parsed(sql)
        return self._connection.statements.run(statement.dollars, statement.values(values))

    def _stream(self, sql: str, values: dict[str, object]) -> psycopg.RawServerCursor[Row]:
        statement = self._parsed(sql)
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

    def _run_row(self, statement: Parsed, row: Sequence[object]) -> int:
        if len(row) != len(statement.names):
            raise psycopg.ProgrammingError("a row needs a value for each name in the SQL")
        return self._connection.statements.run(statement.dollars, row)

    def _changed_by_all(self, sql: str, rows: Rows) -> int:
        if self._statements_left is not None:
            raise Misuse("`write_one` runs one statement, not one for each row")
        statement = parsed(sql)
        every = statement.sequences(rows)
        first = list(islice(every, ROWS_COPIED_MIN))
        if len(first) < ROWS_COPIED_MIN:
            return sum(self._run_row(statement, row) for row in first)
        every = chain(first, every)
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
    """The COPY that is equivalent to an INSERT, or None."""
    match = _PLAIN_INSERT.fullmatch(sql)
    if match is None:
        return None
    return f"COPY {match['table']} ({match['columns']}) FROM STDIN".encode()
