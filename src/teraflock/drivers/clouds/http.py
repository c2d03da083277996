"""Sends requests to a provider. TLS is verified, redirects are refused, and replies are bounded."""

import math
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final, Protocol
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from teraflock import __version__
from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.instance.account.rules import check_base_url
from teraflock.instance.engine_errors import EngineDown, EngineRefused

SECONDS_MAX: Final = 30.0
REPLY_BYTES_MAX: Final = 32 << 20
REPLY_VALUES_MAX: Final = 4_000_000
"""Small values take far more memory than their text: a reply of `[],[],…` would need 30 times its size."""
PIECE_BYTES: Final = 1 << 16
TEXT_CHARACTERS_MAX: Final = 500
REGION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""A region becomes part of a host name, so it is nothing else."""


class CloudTransport(Protocol):
    def url(self, call: CloudCall) -> str:
        """Where a call goes, as signers must know it."""
        ...

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply: ...


def url_of(base_url: str, services: Mapping[str, str], call: CloudCall) -> str:
    """The address of a call: below the base URL, or below that of one of the provider's other services."""
    base = services[call.service] if call.service else base_url
    if "{region}" in base:
        if not REGION.fullmatch(call.region):
            raise EngineRefused(f"`{call.region[:80]}` is not a region")
        base = base.replace("{region}", call.region)
    query = f"?{urlencode(call.query, quote_via=quote)}" if call.query else ""
    return f"{base.rstrip('/')}{call.path}{query}"


class HttpTransport:
    def __init__(
        self, base_url: str, services: Mapping[str, str] | None = None, *, seconds_max: float = SECONDS_MAX
    ) -> None:
        self._services = services or {}
        for each in (base_url, *self._services.values()):
            check_base_url(each.replace("{region}", "region"))
        self._base_url = base_url
        self._seconds_max = seconds_max

    def url(self, call: CloudCall) -> str:
        return url_of(self._base_url, self._services, call)

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        """Send one request over a connection of its own."""
        parts = urlsplit(self.url(call))
        host = parts.hostname or ""
        target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        connection = _connection(parts.scheme, host, parts.port, self._seconds_max)
        cut = threading.Event()
        over = threading.Timer(2 * self._seconds_max, _cut, [connection, cut])
        over.daemon = True
        over.start()
        try:
            connection.request(call.method, target, content, dict(headers))
            response = connection.getresponse()
            body = _read(response, self._seconds_max)
            answered = dict(response.getheaders())
            if cut.is_set():  # what was read looks complete if it ended within the headers
                raise TimeoutError
        except ssl.SSLError as error:
            raise EngineDown(
                f"The certificate of `{host}` cannot be verified: {error.reason or 'TLS failed'}"
            ) from None
        except (OSError, HTTPException) as error:
            raise EngineDown(
                f"No answer from `{host}`: {type(error).__name__}", hint="Teraflock tries again"
            ) from None
        finally:
            over.cancel()
            connection.close()
        if 300 <= response.status < 400:
            raise EngineRefused(
                f"`{host}` redirects to another address, and credentials are sent only to `{host}`",
                hint="Set the right address with `--base-url`",
            )
        if len(body) > REPLY_BYTES_MAX or sum(map(body.count, (b",", b"[", b"{"))) > REPLY_VALUES_MAX:
            raise EngineDown(f"The answer of `{host}` is too large")
        return reply_of(response.status, answered, body)


def _read(response: HTTPResponse, seconds_max: float) -> bytes:
    """The body, or one byte more than is accepted. Someone who sends a byte now and then does not hold a thread."""
    body, over_at = bytearray(), time.monotonic() + seconds_max
    while len(body) <= REPLY_BYTES_MAX and (piece := response.read1(PIECE_BYTES)):
        body += piece
        if time.monotonic() > over_at:
            raise TimeoutError
    return bytes(body)


def _cut(connection: HTTPConnection, cut: threading.Event) -> None:
    """End a call that takes too long. The timeout of a socket counts from the last byte, and a header has no end."""
    cut.set()
    with suppress(OSError, AttributeError):  # it is not connected yet, or no longer
        connection.sock.shutdown(socket.SHUT_RDWR)


def _connection(scheme: str, host: str, port: int | None, seconds_max: float) -> HTTPConnection:
    if scheme == "https":
        return HTTPSConnection(host, port, timeout=seconds_max, context=ssl.create_default_context())
    return HTTPConnection(host, port, timeout=seconds_max)


def reply_of(status: int, headers: Mapping[str, str], body: bytes) -> CloudReply:
    lowered = {name.lower(): value for name, value in headers.items()}
    try:
        decoded = msgspec.json.decode(body) if body else None
        text = ""
    except (msgspec.MsgspecError, RecursionError):
        decoded, text = None, body[:TEXT_CHARACTERS_MAX].decode("utf-8", "replace")
    return CloudReply(
        status=status,
        body=decoded,
        text=text,
        retry_after=_seconds(lowered.get("retry-after", "")),
        next_page=lowered.get("opc-next-page", ""),
    )


def _seconds(text: str) -> float | None:
    try:
        found = float(text) if text else math.nan
    except ValueError:
        return None  # a date: the pacer's own pause applies
    return None if math.isnan(found) else max(found, 0.0)


def content_of(call: CloudCall) -> bytes | None:
    if call.body is None:
        return None
    return urlencode(call.body).encode() if call.form else msgspec.json.encode(call.body)


def headers_of(call: CloudCall, url: str, content: bytes | None) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": f"teraflock/{__version__}"}
    if url:
        headers["Host"] = urlsplit(url).netloc
    if content is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded" if call.form else "application/json"
    return headers
