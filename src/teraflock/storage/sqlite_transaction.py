"""One transaction on one SQLite connection. Whoever makes it begins, commits and undoes it."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from teraflock.storage.database import Misuse, Row, Rows
from teraflock.storage.sql_text import Parsed, parsed
from teraflock.storage.transaction import Guarded

ROWS_PER_FETCH_FIRST: Final = 16  # whoever wants the first few of a long stream reads little more than those
ROWS_PER_FETCH_MAX: Final = 512  # spares the way through `_do` for each row; small enough to hold in memory


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
            cursor.close()  # what is not fetched would keep the statement, and with it a lock, open
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
            # Python counts only what starts with INSERT, UPDATE or DELETE, and so no `WITH … UPDATE`
            if self._connection.total_changes == before:
                return 0
            return int(self._connection.execute("SELECT changes()").fetchone()[0])

        return self._do(changed)

    def run_many(self, sql: str, rows: Rows, /) -> int:
        return self._do(lambda: self._changed_by_all(parsed(sql), rows))

    def lock(self, sql: str, /, **values: object) -> list[Row]:
        self._check_locking()
        return self.all(sql, **values)  # a transaction that writes has the whole file to itself

    lock_shared = lock
    lock_free = lock

    def end(self) -> None:
        """Nothing can be run from here on, and no stream keeps the snapshot open."""
        self._over = True
        for cursor in self._streams:
            cursor.close()
        self._streams.clear()

    def _cursor(self, sql: str, values: dict[str, object]) -> sqlite3.Cursor:
        for name in values:  # SQLite itself notes a missing value, but not one too many
            if f":{name}" not in sql:
                raise Misuse(f"the SQL has no place for the value `{name}`")
        return self._connection.execute(sql, values)

    def _fetched(self, cursor: sqlite3.Cursor) -> Iterator[Row]:
        wanted = ROWS_PER_FETCH_FIRST
        try:
            while rows := self._do(lambda: cursor.fetchmany(wanted)):  # noqa: B023 -- called at once
                yield from rows
                wanted = min(2 * wanted, ROWS_PER_FETCH_MAX)
        finally:
            cursor.close()
            self._streams.discard(cursor)

    def _changed_by_all(self, statement: Parsed, rows: Rows) -> int:
        every: Iterator[Sequence[Any]] = statement.sequences(rows)
        if len(statement.order) != len(statement.names):
            every = map(statement.in_place, every)
        return max(0, self._connection.executemany(statement.questions, every).rowcount)
