"""Databases for tests: each test gets a fresh one, once for each engine. And how properties are tried."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.postgres_server import NoServer, PostgresServer

from teraflock.base.clock import SystemClock
from teraflock.storage.database import Database
from teraflock.storage.open import open_database

# A machine that is busy is no fault of the code: no test fails for taking long.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        server = PostgresServer()
    except NoServer as reason:
        pytest.skip(str(reason))
    yield server
    server.stop()


@pytest.fixture
def sqlite_address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tera.db'}"


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.fresh_schema() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def database_address(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, once for each engine."""
    address: str = request.getfixturevalue(f"{request.param}_address")
    return address


@pytest.fixture
def database(database_address: str) -> Iterator[Database]:
    """A database with all its tables, once for each engine."""
    database = open_database(database_address, SystemClock())
    yield database
    database.close()
