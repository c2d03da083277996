"""Announcements on the wire."""

from teraflock.base.filling import filled
from teraflock.tenant.model import Announcement
from teraflock.wire.announcement import AnnouncementAnswer


def announcement_answer(announcement: Announcement) -> AnnouncementAnswer:
    return filled(AnnouncementAnswer, announcement)
