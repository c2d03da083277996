"""From a provider's error to ours: by its code, by its words, and otherwise by the HTTP status. Pure."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.instance.engine_errors import (
    BadCredentials,
    EngineBusy,
    EngineDown,
    EngineRefused,
    NoMoney,
    NoRoom,
    OverQuota,
)

WORDS_CHARACTERS_MAX: Final = 300
CODE_NAMES: Final = ("code", "Code", "error_code", "reason", "error")
WORD_NAMES: Final = ("message", "Message", "detail", "msg", "error_msg", "error_description", "title")


class NoMachineFree(NoRoom):
    """The provider has no such machine free there now."""

    for_tenant: ClassVar[str] = "The provider has no such machine free. Try another type or region"


class Unusable(NoRoom):
    """The machine was rented and does not work. It is given back, and the next place is tried."""

    for_tenant: ClassVar[str] = ""


class CannotDo(EngineRefused):
    """The provider has nothing for what the tenant asked."""

    for_tenant: ClassVar[str] = ""


class ErrorCodes(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's codes by their meaning, with `*` for any ending. An entry with a space is part of its message."""

    no_room: Sequence[str] = ()
    quota: Sequence[str] = ()
    money: Sequence[str] = ()
    busy: Sequence[str] = ()
    access: Sequence[str] = ()


def said(body: Any) -> tuple[str, str]:
    """The code and the message in a provider's error, in any of the usual forms."""
    if not isinstance(body, dict):
        return "", ""
    nested = body.get("Response", body)
    for name in ("error", "Error", "errors"):
        found = nested.get(name) if isinstance(nested, dict) else None
        first = found[0] if isinstance(found, list) and found else found
        if isinstance(first, dict):
            return _text(first, CODE_NAMES), _text(first, WORD_NAMES)
    return _text(nested, CODE_NAMES), _text(nested, WORD_NAMES)


def _text(body: Any, names: Sequence[str]) -> str:
    found = (body.get(name) for name in names) if isinstance(body, dict) else ()
    return next((str(each) for each in found if isinstance(each, str | int) and each != ""), "")


def error_of(title: str, codes: ErrorCodes, status: int, code: str, words: str) -> TeraflockError:
    """The error of ours that a code, a message or a status means. Codes are more exact than statuses."""
    text = one_line(words or code)
    if _means(codes.no_room, code, words):
        return NoMachineFree(f"{title} has no such machine free: {text}", hint="The next place is tried")
    if _means(codes.quota, code, words):
        return OverQuota(
            f"{title} refuses more machines: {text}",
            hint=f"Ask {title} for a higher quota, or use another type, region or account",
        )
    if _means(codes.money, code, words) or status == 402:
        return NoMoney(
            f"{title} wants to be paid first: {text}",
            hint=f"Check the balance and payment method of the account at {title}",
        )
    if _means(codes.busy, code, words) or status == 429:
        return EngineBusy(f"{title} asks for fewer requests", hint="Teraflock waits and tries again")
    if _means(codes.access, code, words) or status in (401, 403):
        return BadCredentials(
            f"{title} does not accept the credentials: {text or status}",
            hint="Check the key and its permissions, then run `tera account key NAME`",
        )
    answered = f"{title} answered {status}: {text}" if text else f"{title} answered with status {status}"
    if status >= 500:
        return EngineDown(answered, hint="Teraflock tries again")
    return EngineRefused(answered, hint="The provider does not accept this request")


def _means(patterns: Sequence[str], code: str, words: str) -> bool:
    return any(each.lower() in words.lower() if " " in each else fnmatchcase(code, each) for each in patterns)


def no_capacity(title: str, words: str) -> NoRoom:
    return NoMachineFree(
        f"{title} has no such machine free: {one_line(words)}", hint="The next place is tried"
    )


def one_line(words: str) -> str:
    """A provider's words as part of a sentence: printable, and not endless."""
    text = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return text[:WORDS_CHARACTERS_MAX].rstrip(". ")
