"""Announcements of operators to tenants."""

from teraflock.client.noun import Noun
from teraflock.wire.announcement import AnnouncementAnswer, AnnouncementList, AnnouncementRequest


class Announcements(Noun):
    in_project = False

    def list(self) -> tuple[AnnouncementAnswer, ...]:
        return self._get(AnnouncementList, "announcements").items

    def create(self, request: AnnouncementRequest, *, idempotency_key: str = "") -> AnnouncementAnswer:
        return self._create(
            AnnouncementAnswer, "announcements", body=request, idempotency_key=idempotency_key
        )

    def remove(self, id: str) -> None:
        self._send("DELETE", "announcements", id)
