"""Sign-in to the console on the wire: one-time links and open sessions."""

from datetime import datetime

import msgspec

from teraflock.wire.field import Ref


class ConsoleLinkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    member: Ref = ""
    """The member whom the link signs in. Empty: yourself. Only owners can create links for others."""


class ConsoleLinkMade(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    member_id: str
    path: str
    """The path on this server, with the secret. It is shown only once and works once."""
    expires_at: datetime


class ConsoleSessionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    member_id: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    address: str
    """Where it was opened from."""
    agent: str
    """The browser, as it named itself."""


class ConsoleSessionPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ConsoleSessionAnswer, ...]
    next: str | None
