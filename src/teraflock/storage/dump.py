"""Dump and load: all rows of a database as lines of JSON. A dump of SQLite loads into PostgreSQL and vice versa.

    {"table": "project", "columns": ["id", …]}
    ["prj_01…", …]

Invariants:
- a dump is read in one transaction, so it is one consistent state of the database;
- tables are ordered so that the parents of every row come before it;
- a dump belongs to a schema version. It is loaded into tables of that version, which are then migrated;
- loading is one transaction: the database has the old rows or the new ones, never a mixture.
"""

from collections.abc import Callable, Iterable, Iterator
from graphlib import TopologicalSorter
from typing import Final

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import BrokenSource
from teraflock.storage.database import Database, MissingTable, Row, Transaction
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import build, load_migrations, schema_of

ROWS_AT_ONCE: Final = 500
SCHEMA_TABLE: Final = "schema_migration"
"""Written by the migrations themselves, so a dump does not contain it."""

Lines = Callable[[], Iterable[bytes]]
"""Called once for each attempt of the transaction."""


class DumpTable(msgspec.Struct, frozen=True, kw_only=True):
    table: str
    columns: tuple[str, ...]


def tables_of(version: int, clock: Clock) -> tuple[DumpTable, ...]:
    """The tables of a schema version, parents first. Read from an empty database in memory, for every engine."""
    scratch = MemoryDatabase()
    try:
        scratch.write(lambda tx: build(tx, clock, version))
        with scratch.read() as tx:
            names = [
                row[0] for row in tx.all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            ]
            parents = {name: _parents(tx, name) for name in names if name != SCHEMA_TABLE}
            ordered = TopologicalSorter(parents).static_order()
            return tuple(DumpTable(table=name, columns=_columns(tx, name)) for name in ordered)
    finally:
        scratch.close()


def _parents(tx: Transaction, name: str) -> list[str]:
    rows = tx.all('SELECT DISTINCT "table" FROM pragma_foreign_key_list(:name) ORDER BY 1', name=name)
    return [row[0] for row in rows if row[0] != name]


def _columns(tx: Transaction, name: str) -> tuple[str, ...]:
    return tuple(
        row[0] for row in tx.all("SELECT name FROM pragma_table_info(:name) ORDER BY cid", name=name)
    )


def dump(tx: Transaction, tables: Iterable[DumpTable]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    for table in tables:
        yield encode(table) + b"\n"
        for row in tx.each(f"SELECT {', '.join(table.columns)} FROM {table.table}"):
            yield encode(row) + b"\n"


def has_rows(database: Database) -> bool:
    """Whether the database contains an installation, of any version."""
    try:
        with database.read() as tx:
            return tx.one("SELECT 1 FROM installation") is not None
    except MissingTable:
        return False


def load(
    database: Database, clock: Clock, version: int, lines: Lines, after: Callable[[Transaction], None]
) -> None:
    """Replace everything in the database by a dump, migrate it, and run `after` on the result."""
    present = schema_of(database)
    old = tables_of(present, clock) if present else ()
    new = tables_of(version, clock)
    latest = len(load_migrations())

    def work(tx: Transaction) -> None:
        for table in reversed(old):
            tx.run(f"DROP TABLE {table.table}")
        if present:
            tx.run(f"DROP TABLE {SCHEMA_TABLE}")
        build(tx, clock, version)
        for table in reversed(new):  # some migrations insert rows into new tables
            tx.run(f"DELETE FROM {table.table}")
        _insert(tx, {table.table: table for table in new}, lines())
        build(tx, clock, latest)
        after(tx)

    database.write_alone(work)


def _insert(tx: Transaction, known: dict[str, DumpTable], lines: Iterable[bytes]) -> None:
    sql, rows = "", list[Row]()
    for line in lines:
        if line.startswith(b"{"):
            _flush(tx, sql, rows)
            sql = _insertion(known, line)
            continue
        rows.append(tuple(msgspec.json.decode(line)))
        if len(rows) >= ROWS_AT_ONCE:
            _flush(tx, sql, rows)
    _flush(tx, sql, rows)


def _insertion(known: dict[str, DumpTable], line: bytes) -> str:
    table = msgspec.json.decode(line, type=DumpTable)
    if known.get(table.table) != table:
        raise BrokenSource(
            f"The backup contains a table `{table.table}` that its schema version does not have"
        )
    marks = ", ".join(f":{column}" for column in table.columns)
    return f"INSERT INTO {table.table} ({', '.join(table.columns)}) VALUES ({marks})"


def _flush(tx: Transaction, sql: str, rows: list[Row]) -> None:
    if rows:
        tx.run_many(sql, rows)
        rows.clear()
