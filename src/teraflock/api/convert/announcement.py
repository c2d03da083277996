"""Announcements on the wire."""

from teraflock.tenant.model import Announcement
from teraflock.wire.announcement import AnnouncementAnswer


def announcement_answer(announcement: Announcement) -> AnnouncementAnswer:
    return AnnouncementAnswer(
        id=announcement.id,
        text=announcement.text,
        organisation_id=announcement.organisation_id,
        created_at=announcement.created_at,
        until=announcement.until,
    )
