"""The databases under contract. The in-memory one is SQLite too, but does not support several threads or processes."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from teraflock.base.clock import SystemClock
from teraflock.storage.database import Database, Transaction
from teraflock.storage.open import open_database


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def store(request: pytest.FixtureRequest, migrated: None) -> Iterator[Database]:
    """A database with the table `thing`, for tests with one thread."""
    address = ":memory:" if request.param == "memory" else request.getfixturevalue(f"{request.param}_address")
    database = open_database(address, SystemClock())
    database.write(make_things)
    yield database
    database.close()


@pytest.fixture
def shared(database: Database) -> Database:
    """A database with the table `thing`, for tests with many threads."""
    database.write(make_things)
    return database


@pytest.fixture
def opened(database_address: str) -> Iterator[Callable[[], Database]]:
    """Opens the same database several times, as several processes would."""
    databases: list[Database] = []

    def opened_once_more() -> Database:
        databases.append(open_database(database_address, SystemClock()))
        return databases[-1]

    yield opened_once_more
    for database in databases:
        with suppress(Exception):
            database.close()


def make_things(tx: Transaction) -> None:
    tx.run("CREATE TABLE thing (id BIGINT PRIMARY KEY, name TEXT, amount DOUBLE PRECISION)")
