"""A copied database (tests/databases.py) has the same tables as one that ran all migrations."""

import sqlite3
from pathlib import Path

import pytest
from tests import databases

from teraflock.base.clock import SystemClock
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import is_current
from teraflock.storage.sqlite import SqliteDatabase


@pytest.fixture
def real() -> list[tuple[str, str]]:
    database = MemoryDatabase()
    assert databases.migrate(database, SystemClock()) > 0
    return tables(database._connection)


def tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """The schema, and the migrations without their times."""
    schema = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    return [*schema, *connection.execute("SELECT name, checksum FROM schema_migration ORDER BY version")]


def test_a_copy_in_memory_has_all_tables(real: list[tuple[str, str]]) -> None:
    databases.choose("tests/unit/bill/test_any.py")
    database = MemoryDatabase()
    assert databases.migrate(database, SystemClock()) > 0
    assert tables(database._connection) == real
    assert databases.migrate(database, SystemClock()) == 0


def test_a_copy_in_a_file_has_all_tables(real: list[tuple[str, str]], tmp_path: Path) -> None:
    databases.choose("tests/unit/bill/test_any.py")
    database = SqliteDatabase(tmp_path / "tera.db")
    databases.migrate(database, SystemClock())
    with database.read() as tx:
        assert is_current(tx)
    database.close()
    connection = sqlite3.connect(tmp_path / "tera.db")
    assert tables(connection) == real
    connection.close()
