"""Opens the database at an address: SQLite or PostgreSQL, migrated if necessary."""

from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, Refused
from teraflock.storage.database import Database, MissingTable
from teraflock.storage.migrate import is_current, migrate, pending

SQLITE: Final = "sqlite:///"
POSTGRES: Final = ("postgresql://", "postgres://")


def open_database(address: str, clock: Clock, *, read_only: bool = False) -> Database:
    """Open and migrate the database at `sqlite:///path`, a plain path, or `postgresql://…`.

    Three slashes start a relative path and four an absolute one. A database that is opened read-only must be up
    to date already.
    """
    database = _opened(address, read_only=read_only)
    try:
        _make_ready(database, clock, read_only=read_only)
    except BaseException:
        database.close()
        raise
    return database


def open_as_it_is(address: str) -> Database:
    """Open a database without migrating it: for a backup before an update, and for a restore."""
    return _opened(address, read_only=False)


def _opened(address: str, *, read_only: bool) -> Database:
    if address.startswith(POSTGRES):
        return _opened_postgres(address)
    if "://" in address and not address.startswith(SQLITE):
        raise BadInput(
            f"Unknown kind of database: `{address.partition('://')[0]}`",
            hint="Write `sqlite:///path/to/file` or `postgresql://user@host/name`",
        )
    from teraflock.storage.sqlite import open_sqlite  # not needed for PostgreSQL

    return open_sqlite(address.removeprefix(SQLITE), read_only=read_only)


def _opened_postgres(address: str) -> Database:
    try:
        from teraflock.storage.postgres import open_postgres  # optional, and slow to import
    except ImportError as error:
        raise Refused(
            "The PostgreSQL driver is not installed",
            hint="Install it with `pip install 'teraflock[postgres]'`",
        ) from error
    return open_postgres(address)


def _make_ready(database: Database, clock: Clock, *, read_only: bool) -> None:
    if _is_current(database):
        return
    if not read_only:
        migrate(database, clock)
    elif pending(database):
        raise Refused(
            f"`{database.where}` was written by an older version of Teraflock",
            hint="Open it once where it is writable, which updates it",
        )


def _is_current(database: Database) -> bool:
    try:
        with database.read() as tx:
            return is_current(tx)
    except MissingTable:
        return False
