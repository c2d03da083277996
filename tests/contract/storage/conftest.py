"""The engines under contract. Memory is SQLite too, but keeps no promises between threads and processes."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from teraflock.base.clock import SystemClock
from teraflock.storage.database import Database, Transaction
from teraflock.storage.open import open_database


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def store(request: pytest.FixtureRequest, migrated: None) -> Iterator[Database]:
    """A database with the table `thing`, for what one thread can see."""
    address = ":memory:" if request.param == "memory" else request.getfixturevalue(f"{request.param}_address")
    database = open_database(address, SystemClock())
    database.write(make_things)
    yield database
    database.close()


@pytest.fixture
def shared(database: Database) -> Database:
    """A database with the table `thing`, for what many threads can see."""
    database.write(make_things)
    return database


@pytest.fixture
def opened(database_address: str) -> Iterator[Callable[[], Database]]:
    """Opens one and the same database again and again, as many processes would."""
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
