"""The database as the rest of the house sees it: reading over a snapshot, writing in transactions.

What holds on both engines:
- a read sees one state from its first statement on, whatever is written meanwhile, and can change nothing;
- a write is serialisable, durable when `write` returns, and undone whole when its work raises;
- a statement that fails spoils its transaction: nothing of it is kept, even if the work swallows the error;
- a work may be run more than once until it is committed, so it changes nothing but the database.

Two kinds of write:
- `write` is serialisable by itself. PostgreSQL finds out that two collided and runs one of them again, so it fits
  works that touch few rows or rarely meet.
- `write_with_locks` is for works that many run at once. Nothing is checked afterwards: the work locks the rows that
  its decision depends on, with `lock`, and reads after it has them. Each statement sees what was committed before it.
  A `write` is safe beside it if both write one common row: then PostgreSQL runs the `write` again.
SQLite has one writer at a time, so there both are the same, and `lock` only reads.

Locks are taken in this order, so that no two works wait for each other in a circle:
    idempotency key → organisation → project → installation → image → instance → host → cards and ports of the host
Within one table the order is that of the ids. A work that needs an earlier lock raises `Overtaken` and starts anew.

SQL is the same text for both, with `:name` for values. To stay portable:
- types are BIGINT, TEXT and DOUBLE PRECISION; truth is 0 or 1 in a BIGINT; text holds no NUL character;
- text sorts by code point and `LIKE` minds the case; a pattern that may hold `%` or `_` names its `ESCAPE`;
- say `NULLS FIRST` or `NULLS LAST` where a sorted column may be NULL: the engines differ;
- a value that stands only beside `IS NULL` needs a type: `CAST(:region AS TEXT) IS NULL`;
- no triggers, no deferred constraints, no `E'…'` strings, no `$$` quotes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from teraflock.base.errors import StorageFailed

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Iterable[Mapping[str, object]] | Iterable[Sequence[object]]
T = TypeVar("T")


class Transaction(Protocol):
    """Statements over one state of the database. Ends with the block or the work it was given to."""

    def all(self, sql: str, /, **values: object) -> list[Row]: ...

    def one(self, sql: str, /, **values: object) -> Row | None:
        """The first row, or None where there is none."""
        ...

    def each(self, sql: str, /, **values: object) -> Iterator[Row]:
        """The rows of a SELECT one after the other, in bounded memory however many they are.

        What is streamed must not be changed before the stream ends: the engines differ in what is seen.
        """
        ...

    def run(self, sql: str, /, **values: object) -> int:
        """How many rows were changed."""
        ...

    def run_many(self, sql: str, rows: Rows, /) -> int:
        """Run one statement for each row, fast; how many rows were changed.

        A row is a mapping by name, or a sequence in the order in which the names first occur in the SQL.
        Sequences are faster. All rows are of one form, and making them must not use this transaction.
        """
        ...

    def lock(self, sql: str, /, **values: object) -> list[Row]:
        """The rows of a SELECT from one table, as they are now; locked until the transaction ends.

        Only in `write_with_locks`. Waits for others that have them. `ORDER BY id` where it may be several rows.
        """
        ...

    def lock_shared(self, sql: str, /, **values: object) -> list[Row]:
        """Like `lock`, but others may share it: the rows cannot change, and nobody can `lock` them."""
        ...

    def lock_free(self, sql: str, /, **values: object) -> list[Row]:
        """Like `lock`, but passes over rows that others have locked, and never waits."""
        ...


class Database(Protocol):
    @property
    def where(self) -> str:
        """The database as a user knows it: a path, or a server and a name. Never with a password."""
        ...

    def read(self) -> AbstractContextManager[Transaction]: ...

    def write(self, work: Callable[[Transaction], T], /) -> T: ...

    def write_with_locks(self, work: Callable[[Transaction], T], /) -> T:
        """Like `write`, but isolated only by the rows that the work locks. See the head of this file."""
        ...

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        """Like `write`, while no other `write_alone` of any process runs. For migrations and restores only."""
        ...

    def close(self) -> None: ...


class ConstraintBroken(StorageFailed):
    """A row broke a rule of its table: not unique, no parent, or a value out of range. This is a bug in Teraflock."""

    code = "constraint_broken"
    remedy = "Report it to the operator with the `request_id`."


class Overtaken(Exception):
    """Raise it in a `write_with_locks` whose first look is out of date: all is undone, and the work runs again."""


class Misuse(RuntimeError):
    """The program is wrong, not the user or the disk: bad SQL, a write inside a read, a closed database.

    Outside the error tree on purpose: it is never shown to a user, and the engine's own words, which
    may hold SQL, stand only in its cause.
    """


class MissingTable(Misuse):
    """The SQL names a table that is not there: the database is empty, or has not been migrated."""
