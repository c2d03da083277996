"""Requests to the identity provider: HTTPS, without redirections, bounded in time and size."""

import ssl
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from teraflock import __version__
from teraflock.base.errors import Unavailable

SECONDS_MAX: Final = 10.0
BYTES_MAX: Final = 1_000_000
Fetch = Callable[[str, bytes | None, Mapping[str, str]], bytes]
"""Address, form (None: GET) and headers to the body of the response."""


class ProviderFailed(Unavailable):
    """The identity provider does not answer, or its answer cannot be used."""

    code = "identity_provider_failed"
    remedy = "Try again, or sign in in another way. The operator checks the settings `oidc_*`."


def is_safe_address(text: str) -> bool:
    """Whether an address is HTTPS. Plain HTTP only on this machine, for tests and a provider beside the server."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    if not text.isascii() or not text.isprintable() or " " in text or parts.username or not parts.hostname:
        return False
    is_local = parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127.")
    return parts.scheme == "https" or (parts.scheme == "http" and is_local)


def fetch(address: str, form: bytes | None, headers: Mapping[str, str]) -> bytes:
    parts = urlsplit(address)
    host = parts.hostname or ""
    connection = (
        HTTPSConnection(host, parts.port, timeout=SECONDS_MAX, context=ssl.create_default_context())
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=SECONDS_MAX)
    )
    sent = {"Accept": "application/json", "User-Agent": f"teraflock/{__version__}", **headers}
    if form is not None:
        sent["Content-Type"] = "application/x-www-form-urlencoded"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET" if form is None else "POST", target, form, sent)
        response = connection.getresponse()
        content = response.read(BYTES_MAX + 1)
    except (OSError, HTTPException) as error:
        raise ProviderFailed(
            "No answer from the identity provider",
            hint="Try again, or sign in in another way",
            context={"host": host, "error": type(error).__name__},
        ) from None
    finally:
        connection.close()
    if response.status != 200 or len(content) > BYTES_MAX:
        raise ProviderFailed(
            "The identity provider refused the request",
            hint="Start again. If it happens every time, the operator checks the settings `oidc_*`",
            context={"host": host, "path": parts.path, "status": response.status, "said": content[:500]},
        )
    return content
