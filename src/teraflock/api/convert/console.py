"""Converters of sign-in links and sessions."""

from typing import Final

from teraflock.base.filling import filled
from teraflock.tenant.session.model import ConsoleSession, MadeLink
from teraflock.wire.console import ConsoleLinkMade, ConsoleSessionAnswer

LINKS: Final = "/console/links/"
"""Where the console accepts links. A test follows one."""


def link_made(made: MadeLink) -> ConsoleLinkMade:
    link = made.link
    return ConsoleLinkMade(
        id=link.id, member_id=link.limits.member_id, path=LINKS + made.secret, expires_at=link.expires_at
    )


def session_answer(session: ConsoleSession) -> ConsoleSessionAnswer:
    return filled(ConsoleSessionAnswer, session, member_id=session.limits.member_id)
