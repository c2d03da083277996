"""All SQL about announcements."""

from datetime import datetime

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Row, Transaction
from teraflock.tenant.model import Announcement, MemberId


def active(tx: Transaction, now: datetime, *, limit: int) -> tuple[Announcement, ...]:
    """Those that are neither removed nor over, for whomever they are; newest first."""
    rows = tx.all(
        "SELECT id, text, organisation_id, created_at_us, until_us FROM announcement WHERE removed_at_us IS NULL"
        " AND (until_us IS NULL OR until_us > :now) ORDER BY id DESC LIMIT :limit",
        now=microseconds(now),
        limit=limit,
    )
    return tuple(_announcement_from(row) for row in rows)


def put_announcement(tx: Transaction, announcement: Announcement, by: MemberId) -> None:
    tx.run(
        "INSERT INTO announcement (id, organisation_id, text, created_at_us, created_by, until_us, removed_at_us)"
        " VALUES (:id, :organisation, :text, :created, :by, :until, NULL)",
        id=announcement.id,
        organisation=announcement.organisation_id,
        text=announcement.text,
        created=microseconds(announcement.created_at),
        by=by,
        until=None if announcement.until is None else microseconds(announcement.until),
    )


def remove(tx: Transaction, id: str, now: datetime) -> bool:
    """Whether there was one to remove."""
    changed = tx.run(
        "UPDATE announcement SET removed_at_us = :now WHERE id = :id AND removed_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )
    return changed > 0


def _announcement_from(row: Row) -> Announcement:
    id, text, organisation_id, created_at_us, until_us = row
    return Announcement(
        id=id,
        text=text,
        organisation_id=organisation_id,
        created_at=at_microseconds(created_at_us),
        until=None if until_us is None else at_microseconds(until_us),
    )
