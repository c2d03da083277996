"""Statements on one PostgreSQL connection, sent straight to libpq.

psycopg's cursors wait for the socket in Python and create several objects for each statement. A launch makes about a
hundred small statements, and most of its processor time was spent there. So a connection calls libpq itself, which
waits without the interpreter lock. Values are converted by psycopg, as in its cursors.

A statement that is made a second time on a connection is prepared, because it will be made often.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Loader, PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from teraflock.storage.database import Row

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

STATEMENTS_PREPARED_MAX: Final = (
    1000  # more than a server repeats; planning one again takes longer than running it
)
_TABLE_CHANGED: Final = b"0A000"
_CHANGES_TABLES: Final = (b"DROP", b"ALTER")

_Key: TypeAlias = tuple[bytes, tuple[int, ...]]
"""A statement, and the types of its values."""


class PostgresConnection(psycopg.Connection[Row]):
    """A connection of the pool. `statements` is for one thread at a time, like the connection."""

    statements: "Statements"


class Statements:
    def __init__(self, connection: PostgresConnection) -> None:
        self._pgconn = connection.pgconn
        self._values = Transformer(connection)
        self._seen: OrderedDict[_Key, None] = OrderedDict()
        self._prepared: OrderedDict[_Key, bytes] = OrderedDict()
        self._count = 0

    def rows(self, sql: bytes, values: Sequence[object]) -> list[Row]:
        result = self._result(sql, values)
        if result.status != ExecStatus.TUPLES_OK:
            raise psycopg.ProgrammingError("the statement returns no rows")
        self._values.set_pgresult(result)
        return self._values.load_rows(0, result.ntuples, tuple)

    def run(self, sql: bytes, values: Sequence[object] = ()) -> int:
        """Run a statement and return the number of rows that it changed or found."""
        return self._result(sql, values).command_tuples or 0

    def command(self, sql: bytes) -> None:
        """Run a statement without values that is not worth preparing: BEGIN, COMMIT."""
        _checked(self._pgconn.exec_(sql))

    def _result(self, sql: bytes, values: Sequence[object]) -> "PGresult":
        given = self._values.dump_sequence(values, [PyFormat.AUTO] * len(values))
        key = (sql, self._values.types or ())
        formats = self._values.formats
        name = self._prepared.get(key) or self._prepare_again(key)
        if name:
            result = self._pgconn.exec_prepared(name, given, formats)  # type: ignore[arg-type]
            if result.error_field(DiagnosticField.SQLSTATE) == _TABLE_CHANGED:  # by another connection
                self._prepared.clear()  # the names are not used again, so the server's copies do no harm
        else:
            result = self._pgconn.exec_params(sql, given, key[1], formats)
        if _checked(result).status == ExecStatus.COMMAND_OK:
            self._forget_after(result.command_status or b"")
        return result

    def _prepare_again(self, key: _Key) -> bytes:
        """The name of a statement that was made before and is now prepared. Empty if it is made the first time."""
        if key not in self._seen:
            self._seen[key] = None
            if len(self._seen) > STATEMENTS_PREPARED_MAX:
                self._seen.popitem(last=False)
            return b""
        self._count += 1
        name = b"s%d" % self._count
        _checked(self._pgconn.prepare(name, *key))
        del self._seen[key]
        self._prepared[key] = name
        if len(self._prepared) > STATEMENTS_PREPARED_MAX:
            _, oldest = self._prepared.popitem(last=False)
            self.command(b"DEALLOCATE " + oldest)
        return name

    def _forget_after(self, command: bytes) -> None:
        """Statements that were prepared for an old form of a table may fail."""
        if command.startswith(_CHANGES_TABLES):
            self._prepared.clear()
            self._seen.clear()
            self.command(b"DEALLOCATE ALL")


def _checked(result: "PGresult") -> "PGresult":
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY):
        return result
    if result.status == ExecStatus.FATAL_ERROR and result.error_field(DiagnosticField.SQLSTATE):
        raise error_from_result(result)
    if result.status == ExecStatus.FATAL_ERROR:  # it is of libpq, not of the server: the connection is lost
        raise psycopg.OperationalError(result.get_error_message())
    raise psycopg.ProgrammingError(f"unexpected result: {ExecStatus(result.status).name}")


def portable_adapters() -> AdaptersMap:
    """Convert values the same way as SQLite does."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(int, Int8Dumper)  # one type for all integers: a statement is prepared once
    adapters.register_dumper(bool, _TruthDumper)
    adapters.register_dumper(str, StrDumper)  # always TEXT, never inferred from the context
    adapters.register_loader("numeric", _NumericLoader)
    return adapters


class _TruthDumper(Int8Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        return b"1" if obj else b"0"


class _NumericLoader(Loader):
    """PostgreSQL returns the sum of a BIGINT column as NUMERIC. Integers stay integers."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)
