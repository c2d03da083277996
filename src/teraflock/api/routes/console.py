"""Sign-in to the console: one-time links, and the sessions that are open."""

from typing import Final

from teraflock.api.call import Call, cut
from teraflock.api.query import Page
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.session.model import ConsoleSession, MadeLink
from teraflock.wire.console import (
    ConsoleLinkMade,
    ConsoleLinkRequest,
    ConsoleSessionAnswer,
    ConsoleSessionPage,
)

routes = Routes("console", scope=Scope.KEY)
LINKS: Final = "/console/links/"
"""Where the console accepts links. A test follows one."""


@routes.post(
    "/v1/console/links",
    status=201,
    creates=True,
    secret=True,
    errors=("ambiguous_name", "forbidden", "suspended"),
)
def make_console_link(call: Call, body: ConsoleLinkRequest) -> ConsoleLinkMade:
    """Create a link that signs in to the console, once.

    A link for yourself is valid for 15 minutes and has the limits of the key in use. A link for another member is an
    invitation: it is valid for 7 days, and the member can set a password with it.
    """
    return link_made(call.nouns.sessions.make_link(call.actor, body.member))


@routes.get("/v1/console/sessions")
def list_console_sessions(call: Call, query: Page) -> ConsoleSessionPage:
    """List your open sessions of the console. Owners see all of the organisation."""
    found = call.nouns.sessions.page(call.actor, after=query.after, limit=query.limit + 1)
    rows, last = cut(found, query.limit)
    return ConsoleSessionPage(items=tuple(map(session_answer, rows)), next=last.id if last else None)


@routes.delete("/v1/console/sessions/{session}", errors=("forbidden",))
def revoke_console_session(call: Call, session: str) -> ConsoleSessionAnswer:
    """End a session. It stops working with the next request."""
    return session_answer(call.nouns.sessions.revoke(call.actor, session))


def link_made(made: MadeLink) -> ConsoleLinkMade:
    link = made.link
    return ConsoleLinkMade(
        id=link.id, member_id=link.limits.member_id, path=LINKS + made.secret, expires_at=link.expires_at
    )


def session_answer(session: ConsoleSession) -> ConsoleSessionAnswer:
    return filled(ConsoleSessionAnswer, session, member_id=session.limits.member_id)
