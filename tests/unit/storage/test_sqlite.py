"""The database file: errors if it is full, damaged, busy or not accessible, and the cost of opening it."""

import sqlite3
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.unit.storage.disks import resize_disk, small_disk, unwritable

from teraflock.base.errors import StorageFailed, TeraflockError, Unavailable
from teraflock.storage.database import Misuse, Transaction
from teraflock.storage.sqlite import SqliteDatabase, open_sqlite

MIB = 1024 * 1024


def make_table(tx: Transaction) -> None:
    tx.run("CREATE TABLE thing (id BIGINT PRIMARY KEY, body TEXT)")


def add(tx: Transaction, *, id: int, body: str) -> None:
    tx.run("INSERT INTO thing (id, body) VALUES (:id, :body)", id=id, body=body)


def made(path: Path) -> SqliteDatabase:
    database = SqliteDatabase(path)
    database.write(make_table)
    database.write(partial(add, id=1, body="first"))
    return database


def bodies(database: SqliteDatabase) -> list[str]:
    with database.read() as tx:
        return [row[0] for row in tx.all("SELECT body FROM thing ORDER BY id")]


def test_a_full_disk_is_an_error_and_earlier_writes_are_kept(tmp_path: Path) -> None:
    with small_disk(tmp_path, MIB):
        database = made(tmp_path / "tera.db")
        answered = [1]

        def fill() -> None:
            for id in range(2, 500):
                database.write(partial(add, id=id, body="x" * 9000))
                answered.append(id)

        with pytest.raises(StorageFailed, match="The disk is full") as full:
            fill()
        assert "Free some space" in full.value.hint
        assert len(bodies(database)) == len(answered) > 10

        resize_disk(tmp_path, 8 * MIB)
        database.write(partial(add, id=1000, body="last"))
        assert bodies(database)[-1] == "last"
        assert len(bodies(database)) == len(answered) + 1
        with database.read() as tx:
            assert tx.all("PRAGMA integrity_check") == [("ok",)]
        database.close()


def test_a_disk_that_is_full_from_the_start_is_an_error(tmp_path: Path) -> None:
    with small_disk(tmp_path, 8192):
        (tmp_path / "filler").write_bytes(b"x" * 4096)
        database = SqliteDatabase(tmp_path / "tera.db")
        with pytest.raises(StorageFailed, match="disk is full|Could not create"):
            database.write(make_table)
        database.close()


def test_a_large_work_on_a_full_disk_is_rolled_back(tmp_path: Path) -> None:
    with small_disk(tmp_path, MIB):
        database = made(tmp_path / "tera.db")
        rows = ((id, "x" * 1000) for id in range(2, 100_000))
        with pytest.raises(StorageFailed, match="The disk is full"):
            database.write(lambda tx: tx.run_many("INSERT INTO thing (id, body) VALUES (:id, :body)", rows))
        assert bodies(database) == ["first"]
        database.close()


@pytest.mark.parametrize("content", [b"no database, but long enough to be read as one " * 100, b"PK\3\4"])
def test_a_file_that_is_not_a_database_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tera.db"
    path.write_bytes(content)
    database = SqliteDatabase(path)
    with pytest.raises(StorageFailed) as read, database.read():
        pass
    with pytest.raises(StorageFailed) as written:
        database.write(make_table)
    for error in (read.value, written.value):
        assert error.sentence == f"`{path}` is damaged or not a database"
        assert error.hint == "Move it away; Teraflock then creates a new one"
    database.close()
    assert path.read_bytes() == content


def test_a_damaged_page_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tera.db"
    database = made(path)
    database.write(
        lambda tx: tx.run_many(
            "INSERT INTO thing (id, body) VALUES (:id, :body)", [(id, "x" * 500) for id in range(2, 900)]
        )
    )
    database.close()
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xff" * (path.stat().st_size - 2 * 4096))
    database = SqliteDatabase(path)
    with database.read() as tx, pytest.raises(StorageFailed, match="is damaged"):
        tx.all("SELECT id, body FROM thing ORDER BY id")
    database.close()


def test_a_locked_file_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teraflock.storage.sqlite.BUSY_SECONDS_MAX", 0.01)
    database = made(tmp_path / "tera.db")
    database.close()
    other = sqlite3.connect(tmp_path / "tera.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    database = SqliteDatabase(tmp_path / "tera.db")
    with pytest.raises(Unavailable, match="Another `tera` is writing") as busy:
        database.write(lambda tx: tx.run("DELETE FROM thing"))
    assert busy.value.hint == "Try again in a moment"
    assert bodies(database) == ["first"]
    other.execute("ROLLBACK")
    other.close()
    assert database.write(lambda tx: tx.run("DELETE FROM thing")) == 1
    database.close()


def test_a_read_only_folder_can_be_read(tmp_path: Path) -> None:
    made(tmp_path / "tera.db").close()
    with unwritable(tmp_path):
        database = SqliteDatabase(tmp_path / "tera.db")
        assert bodies(database) == ["first"]
        with pytest.raises(StorageFailed, match="cannot be written") as refused:
            database.write(lambda tx: tx.run("DELETE FROM thing"))
        assert "TERA_HOME" in refused.value.hint
        database.close()


def test_a_read_only_folder_gets_no_new_file(tmp_path: Path) -> None:
    with unwritable(tmp_path):
        database = SqliteDatabase(tmp_path / "tera.db")
        with pytest.raises(StorageFailed, match="Could not create") as refused:
            database.write(make_table)
        assert "TERA_HOME" in refused.value.hint
        with pytest.raises(StorageFailed, match="Could not create"), database.read():
            pass


def test_a_read_only_folder_with_an_unfinished_log_is_refused(tmp_path: Path) -> None:
    """Opened as immutable, the file would lack the content of its log."""
    crashed, copy = tmp_path / "crashed", tmp_path / "copy"
    crashed.mkdir()
    copy.mkdir()
    database = made(crashed / "tera.db")
    for name in ("tera.db", "tera.db-wal"):
        (copy / name).write_bytes((crashed / name).read_bytes())
    database.close()
    with unwritable(copy), pytest.raises(StorageFailed, match="not closed properly"):
        bodies(SqliteDatabase(copy / "tera.db"))
    database = SqliteDatabase(copy / "tera.db")
    assert bodies(database) == ["first"]
    database.close()


def test_a_read_only_database_refuses_writes(tmp_path: Path) -> None:
    made(tmp_path / "tera.db").close()
    database = SqliteDatabase(tmp_path / "tera.db", read_only=True)
    assert bodies(database) == ["first"]
    with pytest.raises(StorageFailed, match="read-only"):
        database.write(make_table)
    database.close()


def test_opening_read_only_does_not_create_the_file(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "tera.db", read_only=True)
    with pytest.raises(StorageFailed, match="cannot be opened"), database.read():
        pass
    assert not (tmp_path / "tera.db").exists()


@pytest.mark.parametrize("path", ["missing/tera.db", "folder"])
def test_a_path_that_cannot_be_a_file_is_an_error(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    database = SqliteDatabase(tmp_path / path)
    with pytest.raises(TeraflockError, match="Could not create|cannot be opened"):
        database.write(make_table)
    with pytest.raises(TeraflockError, match="Could not create|cannot be opened"), database.read():
        pass
    database.close()


@pytest.mark.parametrize(
    "name", ["with space.db", "100%.db", "what?.db", "a#b.db", "file:x.db", "Füße.db", "%41"]
)
def test_any_file_name_works(tmp_path: Path, name: str) -> None:
    made(tmp_path / name).close()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    database = SqliteDatabase(tmp_path / name, read_only=True)
    assert bodies(database) == ["first"]
    database.close()


def test_a_relative_path_does_not_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = SqliteDatabase("tera.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    database.write(make_table)
    assert (tmp_path / "tera.db").exists()
    database.close()


def test_the_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    database = made(tmp_path / "tera.db")
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    database.close()


def test_closing_removes_the_log(tmp_path: Path) -> None:
    database = made(tmp_path / "tera.db")
    bodies(database)
    database.close()
    database = SqliteDatabase(tmp_path / "tera.db")
    bodies(database)
    database.close()
    assert [path.name for path in tmp_path.iterdir()] == ["tera.db"]


def test_the_writer_has_its_pragmas_set(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "tera.db")

    def settings(tx: Transaction) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [row[0] for row in (tx.one(f"PRAGMA {name}") for name in names) if row]

    assert database.write(settings) == ["wal", 2, 1]
    database.close()


LOADS = """
import sys
before = set(sys.modules)
import teraflock.storage.sqlite
import teraflock.storage.open
unwanted = {"psycopg", "psycopg_pool", "queue", "pathlib", "hashlib", "teraflock.storage.group_commit"}
print(sorted(unwanted & (set(sys.modules) - before)))
"""


def test_a_cold_start_imports_only_what_it_needs() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"


def test_memory_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = open_sqlite(":memory:")
    database.write(make_table)
    with database.read() as tx:
        assert tx.all("SELECT id FROM thing") == []
    database.close()
    assert not list(tmp_path.iterdir())


def test_an_in_memory_write_inside_a_read_is_refused() -> None:
    """With one connection, the write would change what the read sees."""
    database = open_sqlite(":memory:")
    with database.read(), pytest.raises(Misuse, match="inside a read"):
        database.write(make_table)
    database.write(make_table)
    database.close()
