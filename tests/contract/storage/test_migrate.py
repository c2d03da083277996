"""Migrations: each applied once, in order and completely, even with concurrent attempts."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.contract.storage.raw import opened_as_it_is

from teraflock.base.clock import FixedClock, SystemClock
from teraflock.base.errors import Refused
from teraflock.storage.database import ConstraintBroken, Database, MissingTable
from teraflock.storage.migrate import is_current, load_migrations, migrate
from teraflock.storage.open import open_database

CLOCK = FixedClock(datetime(2026, 3, 1, tzinfo=UTC))
SCRIPTS = {
    "0001_one.sql": "-- first; of all\nCREATE TABLE one (id BIGINT PRIMARY KEY, name TEXT DEFAULT ';--');"
    "\nINSERT INTO one (id) VALUES (1);",
    "0002_two.sql": "CREATE TABLE two (id BIGINT PRIMARY KEY); /* the end; */",
    "0003_three.sql": "ALTER TABLE two ADD COLUMN size BIGINT;\nCREATE INDEX two_by_size ON two (size)",
}


@pytest.fixture
def empty(database_address: str) -> Iterator[Database]:
    database = opened_as_it_is(database_address)
    yield database
    database.close()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    made = tmp_path / "migrations"
    made.mkdir()
    for name, script in SCRIPTS.items():
        (made / name).write_text(script)
    return str(made)


def without(folder: str, name: str) -> str:
    (Path(folder) / name).unlink()
    return folder


def applied(database: Database) -> list[tuple[int, str]]:
    with database.read() as tx:
        return [(row[0], row[1]) for row in tx.all("SELECT version, name FROM schema_migration ORDER BY 1")]


ALL = [(1, "one"), (2, "two"), (3, "three")]


def test_a_new_database_gets_all_migrations_once(empty: Database, folder: str) -> None:
    assert migrate(empty, CLOCK, folder=folder) == 3
    assert migrate(empty, CLOCK, folder=folder) == 0
    assert applied(empty) == ALL
    with empty.read() as tx:
        assert is_current(tx, folder=folder)
        assert tx.all("SELECT id, name FROM one") == [(1, ";--")]
        assert tx.all("SELECT id, size FROM two") == []
        assert tx.one("SELECT applied_at FROM schema_migration WHERE version = 1") == (
            "2026-03-01T00:00:00+00:00",
        )


def test_an_older_database_gets_the_missing_migrations(empty: Database, folder: str) -> None:
    without(folder, "0003_three.sql")
    assert migrate(empty, CLOCK, folder=folder) == 2
    empty.write(lambda tx: tx.run("INSERT INTO two (id) VALUES (5)"))
    (Path(folder) / "0003_three.sql").write_text(SCRIPTS["0003_three.sql"])
    with empty.read() as tx:
        assert not is_current(tx, folder=folder)
    assert migrate(empty, CLOCK, folder=folder) == 1
    with empty.read() as tx:
        assert tx.all("SELECT id, size FROM two") == [(5, None)]


def test_a_newer_database_is_refused_and_not_changed(empty: Database, folder: str) -> None:
    migrate(empty, CLOCK, folder=folder)
    without(folder, "0003_three.sql")
    with pytest.raises(Refused, match=r"newer version of Teraflock \(schema 3, supported: 2\)") as refused:
        migrate(empty, CLOCK, folder=folder)
    assert refused.value.hint.startswith("Update Teraflock")
    assert applied(empty) == ALL
    with empty.read() as tx:
        assert not is_current(tx, folder=folder)


def test_a_changed_migration_is_refused_by_name(empty: Database, folder: str) -> None:
    migrate(empty, CLOCK, folder=folder)
    (Path(folder) / "0002_two.sql").write_text("CREATE TABLE two (id TEXT PRIMARY KEY);")
    with pytest.raises(Refused, match="Migration 2 \\(`two`\\)"):
        migrate(empty, CLOCK, folder=folder)


def test_a_gap_is_refused(empty: Database, folder: str) -> None:
    migrate(empty, CLOCK, folder=folder)
    empty.write(lambda tx: tx.run("DELETE FROM schema_migration WHERE version = 2"))
    with pytest.raises(Refused, match="has migration 3 .*, but not migration 2"):
        migrate(empty, CLOCK, folder=folder)


def test_a_failed_migration_keeps_the_earlier_ones(empty: Database, folder: str) -> None:
    path = Path(folder) / "0002_two.sql"
    path.write_text("CREATE TABLE two (id BIGINT PRIMARY KEY); INSERT INTO one (id) VALUES (1);")
    with pytest.raises(ConstraintBroken):
        migrate(empty, CLOCK, folder=folder)
    assert applied(empty) == ALL[:1]
    with empty.read() as tx, pytest.raises(MissingTable):
        tx.all("SELECT id FROM two")
    path.write_text(SCRIPTS["0002_two.sql"])
    assert migrate(empty, CLOCK, folder=folder) == 2


def test_concurrent_threads_apply_each_migration_once(database_address: str, folder: str) -> None:
    def migrated(_: int) -> int:
        database = opened_as_it_is(database_address)
        try:
            return migrate(database, CLOCK, folder=folder)
        finally:
            database.close()

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(migrated, range(6))) == 3


OPENS = """
import sys
from teraflock.base.clock import SystemClock
from teraflock.storage.open import open_database
sys.stdin.read()  # until all are ready
open_database(sys.argv[1], SystemClock()).close()
"""


def test_concurrent_processes_can_open_a_new_database(database_address: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", OPENS, database_address], stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.close()
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    database = open_database(database_address, SystemClock())
    assert [version for version, _ in applied(database)] == [each.version for each in load_migrations()]
    database.close()
