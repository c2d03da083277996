"""Values of sign-in: what a person signs in with, and the session that follows."""

from datetime import datetime
from typing import NewType

import msgspec

from teraflock.tenant.model import MemberId, Role

SessionId = NewType("SessionId", str)
LinkId = NewType("LinkId", str)


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """The user name and password of a member."""

    member_id: MemberId
    user_name: str
    password: str
    """The argon2id hash."""
    totp_secret: str = ""
    """Base 32. Empty: no second factor."""
    totp_step: int = 0
    """The last time step that was accepted, so that a code works once."""
    changed_at: datetime


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Whose session it is, and how wide: as an API key is limited."""

    member_id: MemberId
    key_id: str = ""
    """The API key that it was opened with; empty: none. The session ends with the key."""
    project_id: str = ""
    role_max: Role | None = None
    limit_expires_at: datetime | None = None
    """When the key expires. API keys created in the session expire no later."""


class SignInLink(msgspec.Struct, frozen=True, kw_only=True):
    """Opens one session, once."""

    id: LinkId
    limits: SessionLimits
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is signed in. It has the limits of the key that it was opened with."""

    id: SessionId
    limits: SessionLimits
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    address: str = ""
    agent: str = ""


class Browser(msgspec.Struct, frozen=True):
    """Where a sign-in comes from, for the list of sessions."""

    address: str
    agent: str


class MadeSession(msgspec.Struct, frozen=True, kw_only=True):
    session: ConsoleSession
    secret: str
    """The cookie. Not stored."""


class MadeLink(msgspec.Struct, frozen=True, kw_only=True):
    link: SignInLink
    secret: str
    """Shown once and not stored."""


class OpenedLink(msgspec.Struct, frozen=True, kw_only=True):
    """What a link is for, before it is used."""

    member_name: str
    organisation_name: str
    has_password: bool
