"""Migrations: numbered SQL files, each applied once and completely.

Invariants:
- migrations 1, 2, 3 … are applied in this order without a gap, each in one transaction with its row in
  `schema_migration`;
- an applied migration never changes: the checksum of its text is stored and compared;
- a database written by a newer Teraflock is not changed.
"""

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from teraflock.base.clock import Clock
from teraflock.base.errors import Refused
from teraflock.storage.database import Database, MissingTable, Misuse, Transaction
from teraflock.storage.sql_text import statements

MIGRATIONS: Final = os.path.join(os.path.dirname(__file__), "migrations")  # noqa: PTH118, PTH120 -- cold start


class Migration(NamedTuple):
    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        import hashlib  # loads OpenSSL, which an up-to-date database does not need

        return hashlib.sha256(self.text.encode()).hexdigest()


def migrate(database: Database, clock: Clock, *, folder: str = MIGRATIONS) -> int:
    """Check the applied migrations, apply the missing ones, and return their number.

    Any number of processes can run this at once.
    """
    if not pending(database, folder=folder):
        return 0
    known = load_migrations(folder)
    database.write_alone(_make_table)
    count = 0
    while database.write_alone(lambda tx: _apply_next(tx, known, database.where, clock)):
        count += 1
    return count


def pending(database: Database, *, folder: str = MIGRATIONS) -> int:
    """The number of missing migrations. Raises if the database is newer or not from Teraflock."""
    known = load_migrations(folder)
    try:
        with database.read() as tx:
            return len(known) - _checked_count(tx, known, database.where)
    except MissingTable:
        return len(known)


def is_current(tx: Transaction, *, folder: str = MIGRATIONS) -> bool:
    """Whether all migrations are applied. Compares only their number, which is fast."""
    latest = len(_file_names(folder))
    return tx.one("SELECT COUNT(*), COALESCE(MAX(version), 0) FROM schema_migration") == (latest, latest)


def load_migrations(folder: str = MIGRATIONS) -> tuple[Migration, ...]:
    """Read the migrations in a folder. The files are named `0001_events.sql` and so on."""
    found = []
    for file_name in sorted(_file_names(folder)):
        with open(os.path.join(folder, file_name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            version, _, name = file_name.removesuffix(".sql").partition("_")
            found.append(Migration(int(version), name, file.read()))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise Misuse(f"migrations must be numbered 1, 2, 3 …: {_file_names(folder)}")
    return tuple(found)


def schema_of(database: Database, *, folder: str = MIGRATIONS) -> int:
    """The number of applied migrations. Raises if the database is newer or not from Teraflock."""
    return len(load_migrations(folder)) - pending(database, folder=folder)


def build(tx: Transaction, clock: Clock, version: int, *, folder: str = MIGRATIONS) -> None:
    """Migrate the tables to a version, inside the caller's transaction."""
    known = load_migrations(folder)[:version]
    _make_table(tx)
    while _apply_next(tx, known, "the new database", clock):
        pass


def _file_names(folder: str) -> list[str]:
    return [entry.name for entry in os.scandir(folder) if entry.name.endswith(".sql")]


def _make_table(tx: Transaction) -> None:
    tx.run(
        "CREATE TABLE IF NOT EXISTS schema_migration"
        " (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)"
    )


def _apply_next(tx: Transaction, known: Sequence[Migration], where: str, clock: Clock) -> bool:
    count = _checked_count(tx, known, where)
    if count == len(known):
        return False
    migration = known[count]
    for statement in statements(migration.text):
        tx.run(statement)
    tx.run(
        "INSERT INTO schema_migration (version, name, checksum, applied_at)"
        " VALUES (:version, :name, :checksum, :applied_at)",
        version=migration.version,
        name=migration.name,
        checksum=migration.checksum,
        applied_at=clock.now().isoformat(),
    )
    return True


def _checked_count(tx: Transaction, known: Sequence[Migration], where: str) -> int:
    """The number of applied migrations. Raises unless they are the first of the known ones."""
    applied = tx.all("SELECT version, name, checksum FROM schema_migration ORDER BY version")
    newest = applied[-1][0] if applied else 0
    if newest > len(known):
        raise Refused(
            f"`{where}` was written by a newer version of Teraflock (schema {newest}, supported: {len(known)})",
            hint="Update Teraflock, or set `TERA_HOME` to another folder",
        )
    for expected, (version, name, checksum) in enumerate(applied, start=1):
        if version != expected:
            raise Refused(
                f"`{where}` has migration {version} (`{name}`), but not migration {expected}",
                hint="Restore a backup from before the database was changed by hand",
            )
        if checksum != known[version - 1].checksum:
            raise Refused(
                f"Migration {version} (`{name}`) of `{where}` differs from the one in this version of Teraflock",
                hint="Use the version of Teraflock that wrote the database",
            )
    return len(applied)
