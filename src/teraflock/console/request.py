"""One request of a browser, and its form."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote

import msgspec

from teraflock.base.errors import BadInput
from teraflock.console.cookies import parse_cookies, parts_of

FIELDS_MAX: Final = 300
_ADDRESS_CHARACTERS_MAX: Final = 64


class Form:
    """The fields of a form or a query. A field that was not sent is empty."""

    def __init__(self, pairs: list[tuple[str, str]] | None = None) -> None:
        self._pairs = pairs or []

    def text(self, name: str, default: str = "") -> str:
        """The last value of a field, without surrounding spaces."""
        return next((value.strip() for each, value in reversed(self._pairs) if each == name), default)

    def raw(self, name: str) -> str:
        """A value exactly as it was typed: a password, or a script."""
        return next((value for each, value in reversed(self._pairs) if each == name), "")

    def many(self, name: str) -> tuple[str, ...]:
        return tuple(value for each, value in self._pairs if each == name and value)

    def number(self, name: str) -> int | None:
        """A whole number; None: the field is empty."""
        text = self.text(name).replace(",", "")
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 15:
            raise BadInput(f"`{text[:40]}` is not a whole number", hint=f"Correct the field `{name}`")
        return int(text)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)


def parse_form(content: bytes) -> Form:
    try:
        pairs = parse_qsl(
            content.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise BadInput("The form cannot be read", hint="Reload the page and send it again") from None
    if any("\0" in value for _, value in pairs):
        raise BadInput("The form has a character that is not text", hint="Remove it and send the form again")
    return Form([(name, value.replace("\r\n", "\n")) for name, value in pairs])


class BrowserRequest(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Form
    query_text: str
    """As it was sent, without `?`."""
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    address: str
    is_secure: bool

    @property
    def agent(self) -> str:
        return self.headers.get("user-agent", "")

    @property
    def target(self) -> str:
        """The path with the query, as in an address."""
        return _target(quote(self.path), self.query_text)

    @property
    def came_from(self) -> str:
        """The page of this server that the request was made on, with its query. Empty: unknown."""
        for name in ("hx-current-url", "referer"):
            found = parts_of(self.headers.get(name, ""))
            if found.netloc and found.netloc.lower() == self.headers.get("host", "").lower():
                return _target(found.path, found.query)
        return ""

    @property
    def is_part(self) -> bool:
        """Whether htmx asks for a part of the page."""
        return self.headers.get("hx-request") == "true"


_HEADERS: Final = frozenset(
    {"cookie", "origin", "host", "sec-fetch-site", "user-agent", "accept-language", "hx-request", "x-csrf-token",
     "content-type", "accept", "referer", "hx-current-url"}
)  # fmt: skip


def _target(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


def request_of(scope: Any) -> BrowserRequest:
    headers = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
        if name.decode("latin-1") in _HEADERS
    }
    client = scope["client"]
    return BrowserRequest(
        method=scope["method"],
        path=scope["path"],
        query=parse_form(scope["query_string"]),
        query_text=scope["query_string"].decode("latin-1"),
        headers=headers,
        cookies=parse_cookies(headers.get("cookie", ""), secure=scope["scheme"] == "https"),
        address=client[0][:_ADDRESS_CHARACTERS_MAX] if client else "",
        is_secure=scope["scheme"] == "https",
    )
