"""Databases without their tables, for tests of what makes the tables."""

from teraflock.storage.database import Database
from teraflock.storage.sqlite import open_sqlite


def opened_as_it_is(address: str) -> Database:
    if address.startswith("postgresql://"):
        from teraflock.storage.postgres import open_postgres  # may be missing, and then is not asked for

        return open_postgres(address)
    return open_sqlite(address.removeprefix("sqlite:///"))
