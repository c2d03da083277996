"""Sends alerts to the operator's webhook: signed, by HTTPS, and to private addresses only if the operator allows it.

The receiver checks the header `Teraflock-Signature: t=SECONDS,v1=HEX`, where HEX is HMAC-SHA256 of `SECONDS.BODY` with
the shared secret.
"""

import hashlib
import hmac
import socket
import ssl
from http.client import HTTPException, HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from teraflock import __version__
from teraflock.app.settings import Settings
from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, Unavailable

SECONDS_MAX: Final = 10.0
SECRET_BYTES_MIN: Final = 16
SIGNATURE: Final = "Teraflock-Signature"


class WebhookFailed(Unavailable):
    """The webhook did not accept an alert."""

    code = "webhook_failed"
    remedy = "Check the setting `alert_webhook` and the receiver. The server tries again."


class Webhook:
    def __init__(
        self,
        url: str,
        secret: bytes,
        clock: Clock,
        *,
        private: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`private` allows private addresses. `context` replaces the trusted certificates."""
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._secret, self._clock, self._private = secret, clock, private
        self._context = context or ssl.create_default_context()

    def send(self, body: bytes) -> None:
        connection = _Pinned(self._host, self._port, self._address(), self._context)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"teraflock/{__version__}",
            SIGNATURE: signature(self._secret, int(self._clock.now().timestamp()), body),
        }
        try:
            connection.request("POST", self._target, body, headers)
            status = connection.getresponse().status
        except (OSError, HTTPException) as error:
            raise WebhookFailed(f"No answer from the webhook: {type(error).__name__}") from None
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise WebhookFailed(f"The webhook answered with status {status}")

    def _address(self) -> str:
        """The address to connect to. The name is resolved once, so that it cannot change after the check."""
        try:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError:
            raise WebhookFailed(f"The name of the webhook cannot be resolved: {self._host}") from None
        addresses = [str(each[4][0]) for each in found]
        if not self._private and not all(ip_address(each).is_global for each in addresses):
            raise WebhookFailed(
                f"The webhook `{self._host}` has a private address",
                hint="Set `alert_webhook_private = true` to allow it",
            )
        return addresses[0]


class _Pinned(HTTPSConnection):
    """Connects to a given address, and verifies the certificate of the name."""

    def __init__(self, host: str, port: int, address: str, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=SECONDS_MAX, context=context)
        self._address, self._tls = address, context

    def connect(self) -> None:
        raw = socket.create_connection((self._address, self.port), SECONDS_MAX)
        self.sock = self._tls.wrap_socket(raw, server_hostname=self.host)


def signature(secret: bytes, seconds: int, body: bytes) -> str:
    digest = hmac.new(secret, f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def webhook_of(settings: Settings, clock: Clock) -> Webhook | None:
    """The webhook of the settings. None: there is none. Raises `BadInput` if it cannot be used."""
    if not settings.alert_webhook:
        return None
    try:
        parts = urlsplit(settings.alert_webhook)
        is_valid = (
            parts.scheme == "https"
            and bool(parts.hostname)
            and (parts.port or 443) > 0
            and not parts.username
        )
    except ValueError:
        is_valid = False
    if not is_valid or not settings.alert_webhook.isascii() or not settings.alert_webhook.isprintable():
        raise BadInput(
            "The setting `alert_webhook` is not an HTTPS address",
            hint="Write it as `https://example.com/alerts`",
        )
    try:
        secret = Path(settings.alert_webhook_secret_file).read_bytes().strip()
    except OSError:
        secret = b""
    if len(secret) < SECRET_BYTES_MIN:
        raise BadInput(
            f"`alert_webhook` needs a secret of at least {SECRET_BYTES_MIN} characters",
            hint="Write it to a file, and name the file in the setting `alert_webhook_secret_file`",
        )
    return Webhook(settings.alert_webhook, secret, clock, private=settings.alert_webhook_private)
