"""What a page returns: HTML, a redirection, a file, or a stream."""

from collections.abc import AsyncGenerator, Callable, Mapping

import msgspec

HTML = "text/html; charset=utf-8"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    status: int = 200
    body: bytes = b""
    media_type: str = HTML
    headers: Mapping[str, str] = {}
    cookies: Mapping[str, str] = {}
    """Cookies to set, by name. An empty value removes the cookie."""
    nonce: str = ""
    """Allows `<style nonce=…>` on this page. Only the terminal needs it."""


class Streamed(msgspec.Struct, frozen=True, kw_only=True):
    """A response that is sent as it arises, in the event loop."""

    pieces: Callable[[], AsyncGenerator[bytes, None]]
    media_type: str


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of the API, forwarded as it is."""

    target: str


def redirect(to: str, *, cookies: Mapping[str, str] | None = None) -> Answer:
    """See another page. After an action, so that reloading does not repeat it."""
    return Answer(status=303, headers={"Location": to}, cookies=cookies or {})
