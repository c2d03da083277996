"""An installation of an older version. `scripts/old-installation` made it with the code of commit 7337126, which had
schema 8 and no backups: four instances of two organisations, their charges, an invoice, a purchase, and keys."""

import re
import sqlite3
from pathlib import Path

from teraflock.app.installation.places import Places

OLD_SQL = Path(__file__).with_name("installation-7337126.sql")
OLD_SCHEMA = 8
OPERATOR_KEY, OWNER_KEY = re.findall(r"tera_\w+", OLD_SQL.read_text("utf-8").partition("\n")[0])
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
    places.operator_key.write_text(f"{OPERATOR_KEY}\n")
    return places


def rows(database: Path, table: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
    finally:
        connection.close()
