"""One transaction on one SQLite connection. The caller begins it and commits it or rolls it back."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from teraflock.storage.database import Misuse, Row, Rows
from teraflock.storage.sql_text import Parsed, parsed
from teraflock.storage.transaction import Guarded

ROWS_PER_FETCH_FIRST: Final = 16  # small, for callers that want only the first few rows of a long stream
ROWS_PER_FETCH_MAX: Final = 512  # saves a call of `_do` per row; small enough to keep in memory


class SqliteTransaction(Guarded):
    def __init__(
        self,
        connection: sqlite3.Connection,
        translated: Callable[[Exception], Exception],
        *,
        locking: bool = False,
    ) -> None:
        super().__init__(translated, locking=locking)
        self._connection = connection
        self._streams: set[sqlite3.Cursor] = set()

    def all(self, sql: str, /, **values: object) -> list[Row]:
        return self._do(lambda: self._cursor(sql, values).fetchall())

    def one(self, sql: str, /, **values: object) -> Row | None:
        def first() -> Row | None:
            cursor = self._cursor(sql, values)
            row: Row | None = cursor.fetchone()
            cursor.close()  # unfetched rows would keep the statement open, and with it a lock
            return row

        return self._do(first)

    def each(self, sql: str, /, **values: object) -> Iterator[Row]:
        cursor = self._do(lambda: self._cursor(sql, values))
        self._streams.add(cursor)
        return self._fetched(cursor)

    def run(self, sql: str, /, **values: object) -> int:
        def changed() -> int:
            before = self._connection.total_changes
            cursor = self._cursor(sql, values)
            if cursor.rowcount >= 0:
                return cursor.rowcount
            # Python counts only statements that start with INSERT, UPDATE or DELETE, and not `WITH … UPDATE`
            if self._connection.total_changes == before:
                return 0
            return int(self._connection.execute("SELECT changes()").fetchone()[0])

        return self._do(changed)

    def run_many(self, sql: str, rows: Rows, /) -> int:
        return self._do(lambda: self._changed_by_all(parsed(sql), rows))

    def lock(self, sql: str, /, **values: object) -> list[Row]:
        self._check_locking()
        return self.all(sql, **values)  # a write transaction has exclusive access to the file

    lock_shared = lock
    lock_free = lock

    def end(self) -> None:
        """End the transaction object: no more statements, and no stream that keeps the snapshot open."""
        self._over = True
        for cursor in self._streams:
            cursor.close()
        self._streams.clear()

    def _cursor(self, sql: str, values: dict[str, object]) -> sqlite3.Cursor:
        for name in values:  # SQLite reports a missing value, but not a superfluous one
            if f":{name}" not in sql:
                raise Misuse(f"the SQL does not use the value `{name}`")
        return self._connection.execute(sql, values)

    def _fetched(self, cursor: sqlite3.Cursor) -> Iterator[Row]:
        wanted = ROWS_PER_FETCH_FIRST
        try:
            while rows := self._do(lambda: cursor.fetchmany(wanted)):  # noqa: B023 -- called at once
                yield from rows
                wanted = min(2 * wanted, ROWS_PER_FETCH_MAX)
        finally:
            if cursor in self._streams:  # otherwise `end` closed it, and its database may be closed, too
                self._streams.discard(cursor)
                cursor.close()

    def _changed_by_all(self, statement: Parsed, rows: Rows) -> int:
        every: Iterator[Sequence[Any]] = statement.sequences(rows)
        if len(statement.order) != len(statement.names):
            every = map(statement.in_place, every)
        return max(0, self._connection.executemany(statement.questions, every).rowcount)
