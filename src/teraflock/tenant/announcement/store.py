"""All SQL about announcements."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import Announcement, MemberId

_ANNOUNCEMENT: Final = Table("announcement", Announcement)


def active(tx: Transaction, now: datetime, *, limit: int) -> tuple[Announcement, ...]:
    """Announcements of all organisations that are neither removed nor past their end; newest first."""
    return _ANNOUNCEMENT.all(
        tx,
        "WHERE removed_at_us IS NULL AND (until_us IS NULL OR until_us > :now) ORDER BY id DESC LIMIT :limit",
        now=microseconds(now),
        limit=limit,
    )


def put_announcement(tx: Transaction, announcement: Announcement, by: MemberId) -> None:
    tx.run_many(_ANNOUNCEMENT.insert_with("created_by"), [(by, *_ANNOUNCEMENT.row(announcement))])


def remove(tx: Transaction, id: str, now: datetime) -> bool:
    """Remove an announcement. False: there is none with this id."""
    changed = tx.run(
        "UPDATE announcement SET removed_at_us = :now WHERE id = :id AND removed_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )
    return changed > 0
