"""All SQL about the periods in which a server watched the hosts of a site. Nobody pays for other time."""

from datetime import datetime

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import add_missing_row


def watched_until(tx: Transaction, site: str) -> datetime | None:
    """Return when a site's hosts were last read, or None if never."""
    row = tx.one("SELECT MAX(until_us) FROM site_watch WHERE site = :site", site=site)
    return at_microseconds(row[0]) if row and row[0] is not None else None


def begin_watch(tx: Transaction, site: str, at: datetime) -> None:
    """Begin a period of watching: the site was not watched before it."""
    add_missing_row(tx, "site_watch", site=site, from_us=microseconds(at), until_us=microseconds(at))


def note_watched(tx: Transaction, site: str, now: datetime) -> None:
    tx.run(
        "UPDATE site_watch SET until_us = :now WHERE site = :site AND until_us < :now"
        " AND from_us = (SELECT MAX(from_us) FROM site_watch WHERE site = :site)",
        site=site,
        now=microseconds(now),
    )
