"""Opens databases without tables, for tests of migrations."""

from teraflock.storage.database import Database
from teraflock.storage.sqlite import open_sqlite


def opened_as_it_is(address: str) -> Database:
    if address.startswith("postgresql://"):
        from teraflock.storage.postgres import open_postgres  # may be missing, and is then not used

        return open_postgres(address)
    return open_sqlite(address.removeprefix("sqlite:///"))
