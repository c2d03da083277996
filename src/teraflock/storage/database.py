"""The database interface: reads use a snapshot, writes run in transactions.

A `work` is the function that a caller passes to `write`. It gets the transaction as its argument.

Guarantees on both engines:
- a read sees one state of the database from its first statement on, and cannot change anything;
- a write is serialisable, durable when `write` returns, and rolled back completely if its work raises;
- a failed statement fails its transaction: nothing is kept, even if the work swallows the error;
- a work may run more than once before it commits, so it must change nothing but the database.

Two kinds of write:
- `write` is serialisable by itself. PostgreSQL detects conflicts and runs one of the writes again, so `write` suits
  works that touch few rows or rarely conflict.
- `write_with_locks` is for works that often run concurrently. PostgreSQL checks nothing afterwards: the work calls
  `lock` for the rows that its decision depends on, and then reads. Each statement sees what was committed before it.
  A `write` can run at the same time safely if both write one common row: then PostgreSQL runs the `write` again.
SQLite has one writer at a time, so both are the same there, and `lock` only reads.

Every work takes locks in this order, which prevents deadlocks:
    idempotency key → organisation → project → queued launch → installation → image → dataset → security group
    → volume → instance → balancer → host → cards and ports of the host → account at a cloud
Within one table, the order is by id. A work that needs an earlier lock raises `Overtaken` and starts again.

The SQL is the same for both engines, with `:name` for values. To keep it portable:
- use the types BIGINT, TEXT and DOUBLE PRECISION; a boolean is 0 or 1 in a BIGINT; text contains no NUL character;
- text sorts by code point and `LIKE` is case-sensitive; a pattern that may contain `%` or `_` sets `ESCAPE`;
- write `NULLS FIRST` or `NULLS LAST` where a sorted column may be NULL: the defaults differ;
- a value used only with `IS NULL` needs a type: `CAST(:region AS TEXT) IS NULL`;
- do not use triggers, deferred constraints, `E'…'` strings or `$$` quotes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from teraflock.base.errors import StorageFailed

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Iterable[Mapping[str, object]] | Iterable[Sequence[object]]
T = TypeVar("T")


class Transaction(Protocol):
    """Statements on one state of the database. Valid until its block or work ends."""

    def all(self, sql: str, /, **values: object) -> list[Row]: ...

    def one(self, sql: str, /, **values: object) -> Row | None:
        """The first row, or None if there are no rows."""
        ...

    def each(self, sql: str, /, **values: object) -> Iterator[Row]:
        """Stream the rows of a SELECT in bounded memory.

        Do not change these rows before the stream ends: the engines differ in what the stream then sees.
        """
        ...

    def run(self, sql: str, /, **values: object) -> int:
        """Run a statement and return the number of changed rows."""
        ...

    def run_many(self, sql: str, rows: Rows, /) -> int:
        """Run one statement for each row, fast, and return the number of changed rows.

        A row is a mapping by name, or a sequence in the order in which the names first occur in the SQL.
        Sequences are faster. All rows have the same form. Code that produces them must not use this transaction.
        """
        ...

    def lock(self, sql: str, /, **values: object) -> list[Row]:
        """Read the current rows of a SELECT from one table, and lock them until the transaction ends.

        Only in `write_with_locks`. Waits for other holders of the lock. Add `ORDER BY id` if there may be several rows.
        """
        ...

    def lock_shared(self, sql: str, /, **values: object) -> list[Row]:
        """Like `lock`, but several transactions can hold it. Nobody can change or `lock` the rows meanwhile."""
        ...

    def lock_free(self, sql: str, /, **values: object) -> list[Row]:
        """Like `lock`, but skips rows that others have locked, and never waits."""
        ...


class Database(Protocol):
    @property
    def where(self) -> str:
        """The database as shown to users: a path, or a server and a name. Never contains a password."""
        ...

    def read(self) -> AbstractContextManager[Transaction]: ...

    def write(self, work: Callable[[Transaction], T], /) -> T: ...

    def write_with_locks(self, work: Callable[[Transaction], T], /) -> T:
        """Like `write`, but isolated only by the rows that the work locks. See the module docstring."""
        ...

    def write_one(self, work: Callable[[Transaction], T], /) -> T:
        """Like `write_with_locks`, for a work that runs one statement: on PostgreSQL in one round trip, not three.

        After a lost connection the statement runs again even if it was committed, so it must tolerate that: a
        comparison in its WHERE, for example, does not find the row a second time.
        """
        ...

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        """Like `write`, but only one process runs a `write_alone` at a time. For migrations and restores only."""
        ...

    def close(self) -> None: ...


class ConstraintBroken(StorageFailed):
    """A row broke a rule of its table: not unique, no parent, or a value out of range. This is a bug in Teraflock."""

    code = "constraint_broken"
    remedy = "Report it to the operator with the `request_id`."


class Overtaken(Exception):
    """Raise it in a `write_with_locks` that decided on outdated data: it is rolled back and runs again."""


class Misuse(RuntimeError):
    """A bug in the calling code: invalid SQL, a write inside a read, a closed database.

    Not part of the error tree, because users never see it. The engine's message, which may contain SQL, is only in
    the cause.
    """


class MissingTable(Misuse):
    """The SQL names a table that does not exist: the database is empty, or not migrated yet."""
