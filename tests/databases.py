"""New SQLite databases with all tables in a millisecond: a copy of one that each test process migrates once.

Running all migrations takes about 80 ms, and thousands of examples of property tests need a new database. The tests of
the migrations themselves, in `MIGRATING`, still run them.
"""

import sqlite3
from functools import cache
from typing import Final

from teraflock.base.clock import Clock, SystemClock
from teraflock.storage import migrate as migrations
from teraflock.storage import open as opening
from teraflock.storage.database import Database
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import MIGRATIONS
from teraflock.storage.sqlite import SqliteDatabase

MIGRATING: Final = (
    "tests/contract/offer/test_upgrade.py",
    "tests/contract/storage/",
    "tests/contract/tenant/test_upgrade.py",
    "tests/unit/storage/",
    "tests/upgrade/",
)

_migrate: Final = migrations.migrate
_is_on = True


def install() -> None:
    """Replace `migrate`, before test modules import it."""
    migrations.migrate = migrate
    opening.migrate = migrate  # type: ignore[attr-defined]


def choose(node_id: str) -> None:
    """Called before each test."""
    global _is_on
    _is_on = not node_id.startswith(MIGRATING)


def migrate(database: Database, clock: Clock, *, folder: str = MIGRATIONS) -> int:
    if _is_on and folder == MIGRATIONS and isinstance(database, MemoryDatabase | SqliteDatabase):
        with database.read() as tx:
            is_empty = not tx.all("SELECT 1 FROM sqlite_master LIMIT 1")
        if is_empty:
            _copy_tables(database)
            return len(migrations.load_migrations(folder))
    return _migrate(database, clock, folder=folder)


def _copy_tables(database: MemoryDatabase | SqliteDatabase) -> None:
    if isinstance(database, MemoryDatabase):
        _template().backup(database._connection)
        return
    connection = sqlite3.connect(database.where)
    connection.execute("PRAGMA synchronous = OFF")
    try:
        _template().backup(connection)
    finally:
        connection.close()


@cache
def _template() -> sqlite3.Connection:
    database = MemoryDatabase()
    _migrate(database, SystemClock())
    return database._connection
