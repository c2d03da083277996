"""Decisions of sign-in by an identity provider: lifetimes, PKCE, e-mail addresses, who may join."""

import base64
import hashlib
import re
from datetime import timedelta
from typing import Final

from teraflock.base.errors import NotAuthenticated
from teraflock.tenant.identity.model import ConfirmedIdentity, Joining

ATTEMPT_LIFE: Final = timedelta(minutes=10)
CHOICES_MAX: Final = 20
NEXT_CHARACTERS_MAX: Final = 500
"""The cookie holds it, and browsers refuse cookies over 4 kB."""
EMAIL_CHARACTERS_MAX: Final = 128
_EMAIL: Final = re.compile(r"[a-z0-9][a-z0-9._%+-]*@([a-z0-9-]+\.)+[a-z0-9-]+")


def challenge_of(verifier: str) -> str:
    """The PKCE challenge of a verifier, method S256."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def email_from(text: object, verified: object) -> str:
    """An e-mail address in its stored form. Empty: not verified, or not an address that we can compare safely."""
    if not isinstance(text, str) or (verified is not True and verified != "true"):
        return ""
    email = text.strip().lower()
    is_valid = len(email) <= EMAIL_CHARACTERS_MAX and email.isascii() and _EMAIL.fullmatch(email)
    return email if is_valid else ""


def may_join(identity: ConfirmedIdentity, joining: Joining) -> bool:
    """Whether a person without a member may become one."""
    if not joining.organisation or not identity.email:
        return False
    return "*" in joining.domains or identity.email.rpartition("@")[2] in joining.domains


def no_member(identity: ConfirmedIdentity) -> NotAuthenticated:
    if not identity.email:
        return NotAuthenticated(
            "The identity provider has not verified your e-mail address",
            hint="Verify the address there and sign in again, or sign in with a link or a password",
        )
    return NotAuthenticated(
        f"No member here has the e-mail address {identity.email}",
        hint="Ask an owner of your organisation to invite this address. If you are a member under another name,"
        " sign in with a link or a password, then connect the identity on the page Account",
    )


def wrong_attempt() -> NotAuthenticated:
    return NotAuthenticated(
        "This sign-in was started in another browser, took too long or was already used",
        hint="Start again from the sign-in page",
    )
