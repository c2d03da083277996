"""Sends requests to a provider. TLS is verified, redirects are refused, and replies are bounded."""

import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from teraflock import __version__
from teraflock.drivers.clouds.model import CloudCall, CloudReply
from teraflock.instance.account.rules import check_base_url
from teraflock.instance.engine_errors import EngineDown, EngineRefused

SECONDS_MAX: Final = 30.0
REPLY_BYTES_MAX: Final = 32 << 20
TEXT_CHARACTERS_MAX: Final = 500


class CloudTransport(Protocol):
    base_url: str

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply: ...


class HttpTransport:
    def __init__(self, base_url: str, *, seconds_max: float = SECONDS_MAX) -> None:
        check_base_url(base_url)
        self.base_url = base_url.rstrip("/")
        self._parts = urlsplit(self.base_url)
        self._seconds_max = seconds_max

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        """Send one request over a connection of its own."""
        connection = self._connection()
        host = self._parts.hostname or ""
        try:
            connection.request(call.method, self._target(call), content, dict(headers))
            response = connection.getresponse()
            body = response.read(REPLY_BYTES_MAX + 1)
            answered = dict(response.getheaders())
        except ssl.SSLError as error:
            raise EngineDown(
                f"The certificate of `{host}` cannot be verified: {error.reason or 'TLS failed'}"
            ) from None
        except (OSError, HTTPException) as error:
            raise EngineDown(
                f"No answer from `{host}`: {type(error).__name__}", hint="Teraflock tries again"
            ) from None
        finally:
            connection.close()
        if 300 <= response.status < 400:
            raise EngineRefused(
                f"`{host}` redirects to another address, and credentials are sent only to `{host}`",
                hint="Set the right address with `--base-url`",
            )
        if len(body) > REPLY_BYTES_MAX:
            raise EngineDown(f"The answer of `{host}` is too large")
        return reply_of(response.status, answered, body)

    def _target(self, call: CloudCall) -> str:
        query = f"?{urlencode(call.query)}" if call.query else ""
        return f"{self._parts.path}{call.path}{query}"

    def _connection(self) -> HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return HTTPSConnection(host, port, timeout=self._seconds_max, context=context)
        return HTTPConnection(host, port, timeout=self._seconds_max)


def reply_of(status: int, headers: Mapping[str, str], body: bytes) -> CloudReply:
    lowered = {name.lower(): value for name, value in headers.items()}
    try:
        decoded = msgspec.json.decode(body) if body else None
        text = ""
    except msgspec.MsgspecError:
        decoded, text = None, body[:TEXT_CHARACTERS_MAX].decode("utf-8", "replace")
    return CloudReply(
        status=status, body=decoded, text=text, retry_after=_seconds(lowered.get("retry-after", ""))
    )


def _seconds(text: str) -> float | None:
    try:
        return max(float(text), 0.0) if text else None
    except ValueError:
        return None  # a date: the pacer's own pause applies


def headers_of(content: bytes | None) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": f"teraflock/{__version__}"}
    return headers if content is None else {**headers, "Content-Type": "application/json"}
