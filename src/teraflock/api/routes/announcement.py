"""Announcements of operators. Every response to a tenant names the newest one in the header `Tera-News`."""

from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.model import Announcement
from teraflock.tenant.rules import Permission
from teraflock.wire.announcement import AnnouncementAnswer, AnnouncementList, AnnouncementRequest

routes = Routes("announcements", scope=Scope.INSTALLATION, write=Permission.ORGANISATION_WRITE)


@routes.get("/v1/announcements", scope=Scope.KEY)
def list_announcements(call: Call) -> AnnouncementList:
    """List the announcements for your organisation, newest first. Operators see all of them."""
    found = call.nouns.tenants.announcements.page(call.actor)
    return AnnouncementList(items=tuple(map(announcement_answer, found)))


@routes.post("/v1/announcements", status=201, creates=True)
def make_announcement(call: Call, body: AnnouncementRequest) -> AnnouncementAnswer:
    """Publish an announcement to all tenants or to one organisation."""
    made = call.nouns.tenants.announcements.make(
        call.actor, body.text, organisation=body.organisation, until=body.until
    )
    call.services.news.forget()
    return announcement_answer(made)


@routes.delete("/v1/announcements/{announcement}", status=204)
def remove_announcement(call: Call, announcement: str) -> None:
    """Remove an announcement."""
    call.nouns.tenants.announcements.remove(call.actor, announcement)
    call.services.news.forget()


def announcement_answer(announcement: Announcement) -> AnnouncementAnswer:
    return filled(AnnouncementAnswer, announcement)
