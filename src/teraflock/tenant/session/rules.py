"""Decisions of sign-in: user names, passwords, lifetimes, and one-time codes (RFC 6238)."""

import base64
import binascii
import hmac
import re
import struct
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.errors import BadInput, Forbidden, NotAuthenticated
from teraflock.tenant.model import Actor

SESSION_LIFE: Final = timedelta(hours=24)
LINK_LIFE: Final = timedelta(minutes=15)
"""For yourself: you open it at once."""
INVITATION_LIFE: Final = timedelta(days=7)
PASSWORD_CHARACTERS_MIN: Final = 10
PASSWORD_CHARACTERS_MAX: Final = 256
AGENT_CHARACTERS_MAX: Final = 200
TOTP_SECONDS: Final = 30
TOTP_BYTES: Final = 20
TOTP_DRIFT: Final = 1
"""How many steps a code may be early or late, because clocks differ."""
_TOTP_DIGITS: Final = 6
_USER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._+@-]{1,127}")


def user_name_from(text: str) -> str:
    """The user name in its stored form: lower case, without surrounding spaces."""
    name = text.strip().lower()
    if not _USER_NAME.fullmatch(name):
        raise BadInput(
            "This user name is not valid",
            hint="Use an e-mail address, or 2 to 128 of `a-z`, `0-9`, `.`, `_`, `-`, `+` and `@`",
        )
    return name


def check_password(password: str, user_name: str) -> None:
    if len(password) < PASSWORD_CHARACTERS_MIN:
        raise BadInput(
            f"The password is too short: it needs at least {PASSWORD_CHARACTERS_MIN} characters",
            hint="A few unrelated words are easy to remember and hard to guess",
        )
    if len(password) > PASSWORD_CHARACTERS_MAX:
        raise BadInput(
            f"The password is too long: it can have up to {PASSWORD_CHARACTERS_MAX} characters",
            hint="Choose a shorter one",
        )
    if (user_name and user_name in password.lower()) or len(set(password)) < 4:
        raise BadInput(
            "The password is too easy to guess",
            hint="Do not use the user name or repeated characters",
        )


def check_unlimited(actor: Actor) -> None:
    """A password has no limits, so a session with limits must not set one."""
    if actor.project_id or actor.role_max or actor.expires_at:
        raise Forbidden(
            "This session has the limits of an API key, so it cannot set a password or a second factor",
            hint="Sign in with your password, or with a link from an owner of the organisation",
        )


def totp_step_of(secret: str, code: str, now: datetime, after: int) -> int | None:
    """The time step that a code belongs to, if the code is right and the step is later than `after`."""
    given = "".join(code.split())
    step = int(now.timestamp()) // TOTP_SECONDS
    for each in range(step - TOTP_DRIFT, step + TOTP_DRIFT + 1):
        if each > after and hmac.compare_digest(totp_code(secret, each).encode(), given.encode()):
            return each
    return None


def totp_code(secret: str, step: int) -> str:
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", step), "sha1")
    place = digest[-1] & 15
    number = struct.unpack(">I", digest[place : place + 4])[0] & 0x7FFFFFFF
    return f"{number % 10**_TOTP_DIGITS:0{_TOTP_DIGITS}d}"


def totp_secret_from(text: str) -> str:
    try:
        secret = base64.b32decode(text)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != TOTP_BYTES:
        raise BadInput(
            "The secret of the second factor is not valid", hint="Start again from the account page"
        )
    return text


def wrong_sign_in() -> NotAuthenticated:
    """The same sentence whatever was wrong, so that nobody learns which user names exist."""
    return NotAuthenticated(
        "Wrong user name, password or code",
        hint="Try again. An owner of your organisation can send you a new sign-in link",
    )


def wrong_link() -> NotAuthenticated:
    return NotAuthenticated(
        "This sign-in link is not valid: it was used, it expired or it was revoked",
        hint="Create a new one with `tera console link`, or ask the person who sent it to you",
    )
