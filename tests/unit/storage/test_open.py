import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Refused, StorageFailed
from teraflock.storage.database import Misuse
from teraflock.storage.migrate import load_migrations
from teraflock.storage.open import open_database

CLOCK = FixedClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize("kind", ["path", "absolute", "relative"])
def test_addresses_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tera.db"
    address = {"path": str(path), "absolute": f"sqlite:///{path}", "relative": "sqlite:///tera.db"}[kind]
    database = open_database(address, CLOCK)
    assert database.where == str(path)
    with database.read() as tx:
        assert tx.one("SELECT COUNT(*) FROM event") == (0,)
    database.close()


@pytest.mark.parametrize("address", [":memory:", "sqlite:///:memory:"])
def test_addresses_in_memory(address: str) -> None:
    database = open_database(address, CLOCK)
    assert database.where == ":memory:"
    database.close()


@pytest.mark.parametrize("address", ["mysql://me:secret@host/name", "sqlite://tera.db", "http://x"])
def test_other_addresses_are_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(BadInput, match="Unknown kind of database") as refused:
        open_database(address, CLOCK)
    assert "secret" not in refused.value.sentence


def test_postgres_without_its_driver_explains_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "teraflock.storage.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Refused, match="driver is not installed") as refused:
        open_database("postgresql://host/name", CLOCK)
    assert "teraflock[postgres]" in refused.value.hint


def test_read_only_needs_a_migrated_database(tmp_path: Path) -> None:
    address = str(tmp_path / "tera.db")
    with pytest.raises(StorageFailed, match="cannot be opened"):
        open_database(address, CLOCK, read_only=True)
    (tmp_path / "tera.db").touch()
    with pytest.raises(Refused, match="an older version of Teraflock"):
        open_database(address, CLOCK, read_only=True)
    open_database(address, CLOCK).close()
    database = open_database(address, CLOCK, read_only=True)
    with database.read() as tx:
        assert tx.one("SELECT COUNT(*) FROM event") == (0,)
    database.close()


def test_newer_and_older_databases_have_different_errors(tmp_path: Path) -> None:
    address = str(tmp_path / "tera.db")
    database = open_database(address, CLOCK)
    database.write(lambda tx: tx.run("INSERT INTO schema_migration VALUES (999, 'later', 'x', 'then')"))
    database.close()
    for read_only in (True, False):
        with pytest.raises(Refused, match="a newer version of Teraflock"):
            open_database(address, CLOCK, read_only=read_only)


def test_an_up_to_date_database_is_opened_without_a_write(tmp_path: Path) -> None:
    address = str(tmp_path / "tera.db")
    open_database(address, CLOCK).close()
    before = (tmp_path / "tera.db").stat().st_mtime_ns
    open_database(address, CLOCK).close()
    assert (tmp_path / "tera.db").stat().st_mtime_ns == before


def test_the_shipped_migrations_are_numbered_without_a_gap() -> None:
    shipped = load_migrations()
    assert shipped[0].name == "events"
    assert [migration.version for migration in shipped] == list(range(1, len(shipped) + 1))


@pytest.mark.parametrize(
    "names", [["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"], ["0002_b.sql"]]
)
def test_migrations_with_a_gap_or_a_duplicate_are_a_bug(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(Misuse, match="numbered"):
        load_migrations(str(tmp_path))
