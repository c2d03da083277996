"""The webhook is HTTPS, signed, and does not reach private addresses unless the operator allows it."""

import hashlib
import hmac
import ssl
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from msgspec.structs import replace

from teraflock.app.settings import Settings
from teraflock.app.webhook import SIGNATURE, Webhook, WebhookFailed, webhook_of
from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput

CLOCK = FixedClock(datetime(2026, 11, 16, tzinfo=UTC))
SECRET = b"a-secret-of-some-length"


class Receiver(BaseHTTPRequestHandler):
    got: ClassVar[list[tuple[str, bytes]]] = []
    status = 204

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.headers[SIGNATURE], body))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    folder = tmp_path_factory.mktemp("webhook")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
            "-keyout", key, "-out", certificate,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server.server_port, certificate
    server.shutdown()
    server.server_close()
    thread.join()


def hook(receiver: tuple[int, Path], *, private: bool = True, trusts: bool = True) -> Webhook:
    port, certificate = receiver
    context = ssl.create_default_context(cafile=certificate) if trusts else ssl.create_default_context()
    return Webhook(f"https://localhost:{port}/in?a=1", SECRET, CLOCK, private=private, context=context)


def test_alerts_are_posted_with_a_signature(receiver: tuple[int, Path]) -> None:
    Receiver.got.clear()
    hook(receiver).send(b'{"kind":"host.hot"}')
    ((signature, body),) = Receiver.got
    seconds = int(CLOCK.now().timestamp())
    expected = hmac.new(SECRET, f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    assert signature == f"t={seconds},v1={expected}"


def test_private_addresses_wrong_certificates_and_refusals_fail(
    receiver: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    Receiver.got.clear()
    with pytest.raises(WebhookFailed, match="private address"):
        hook(receiver, private=False).send(b"{}")
    with pytest.raises(WebhookFailed, match="SSLCertVerificationError"):
        hook(receiver, trusts=False).send(b"{}")
    assert Receiver.got == []
    monkeypatch.setattr(Receiver, "status", 302)
    with pytest.raises(WebhookFailed, match="302"):
        hook(receiver).send(b"{}")


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://", "ftp://x", "https://a:b@example.com", "https://x:99999", "x\n"]
)
def test_other_addresses_are_refused(url: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    settings = replace(Settings(), alert_webhook=url, alert_webhook_secret_file=str(secret))
    with pytest.raises(BadInput, match="HTTPS"):
        webhook_of(settings, CLOCK)


def test_a_webhook_needs_a_secret(tmp_path: Path) -> None:
    assert webhook_of(Settings(), CLOCK) is None
    with pytest.raises(BadInput, match="secret"):
        webhook_of(replace(Settings(), alert_webhook="https://example.com/"), CLOCK)
