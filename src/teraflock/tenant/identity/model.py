"""Values of sign-in by an identity provider."""

from datetime import datetime
from typing import Protocol

import msgspec

from teraflock.tenant.model import MemberId, Role
from teraflock.tenant.session.model import MadeSession


class ConfirmedIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A person, as an identity provider confirmed them."""

    issuer: str
    subject: str
    """Never changes. Sign-ins are recognised by it, not by the e-mail address."""
    email: str
    """Lower case. Empty: the provider gave none, or has not verified it."""


class MemberIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """An identity that signs in as a member."""

    issuer: str
    subject: str
    member_id: MemberId
    email: str
    created_at: datetime


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One sign-in, from the first click to the return from the provider. The browser keeps it, encrypted."""

    state: str
    nonce: str
    verifier: str
    """The secret of PKCE (RFC 7636)."""
    next: str
    """The page to open afterwards."""
    expires_at: datetime
    is_connecting: bool = False
    """A signed-in member connects the identity to their account."""


class WaitingIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A confirmed identity that waits for the person to choose. The browser keeps it, encrypted."""

    identity: ConfirmedIdentity
    number: str
    """Random, so that it works once."""
    next: str
    expires_at: datetime


class MemberChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A member that an identity may sign in as."""

    member_id: str
    """Empty: a new member."""
    member_name: str
    organisation_name: str
    is_connected: bool = False


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """What follows the return from the provider: a session, or a question."""

    identity: ConfirmedIdentity
    next: str
    session: MadeSession | None = None
    choices: tuple[MemberChoice, ...] = ()
    sealed: str = ""
    """The confirmed identity, for the answer to the question."""
    is_connecting: bool = False


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider sent back with the browser."""

    state: str
    code: str
    error: str = ""
    issuer: str = ""
    """RFC 9207. Empty: not sent."""


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """Who becomes a member without an invitation."""

    organisation: str
    """Its name. Empty: nobody."""
    domains: frozenset[str] = frozenset()
    """Domains of e-mail addresses. `*`: all."""
    role: Role = Role.MEMBER


class IdentityProvider(Protocol):
    name: str
    """As the button shows it."""

    def address(self, attempt: Attempt) -> str:
        """Where to send the browser."""

    def identity(self, code: str, attempt: Attempt) -> ConfirmedIdentity:
        """Who came back with this code. Raises `NotAuthenticated` unless everything is right."""

    def check_issuer(self, issuer: str) -> None:
        """Raise unless the response came from this provider."""


class Sealing(Protocol):
    """Encrypts what the browser keeps."""

    def seal(self, text: str, *, bound_to: str) -> str: ...

    def open(self, sealed: str, *, bound_to: str) -> str: ...
