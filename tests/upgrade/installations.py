"""An installation of an older version: written by the code of schema 8, which had no backups."""

import sqlite3
from pathlib import Path

from teraflock.app.installation.places import Places

OLD_SQL = Path(__file__).with_name("installation-schema-8.sql")
OLD_SCHEMA = 8
SETTINGS = (
    'engine = "simulated"\nsimulated_hosts = "2x2xV100"\nsimulated_boot_seconds = 0\nrate_per_second = 0\n'
)


def old_installation(home: Path) -> Places:
    """The database and settings of an older version, as they are after an update of the program."""
    places = Places(home)
    places.cloud.mkdir(parents=True)
    connection = sqlite3.connect(places.cloud / "cloud.db")
    connection.executescript(OLD_SQL.read_text("utf-8"))
    connection.close()
    places.settings.write_text(SETTINGS)
    places.operator_key.write_text("tera_old\n")
    return places


def rows(database: Path, table: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
    finally:
        connection.close()
