"""A real server on a loopback port, as `tera serve` runs it, for story tests over HTTP."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.story.cloud import free_port
from tests.story.warm import WarmServer

from teraflock.client import Client
from teraflock.client.errors import NoAnswer
from teraflock.wire.image import ImageRequest

SECONDS_MAX = 60.0  # long enough for a machine that is busy with other tests
SERVE = "from teraflock.app.server import serve; serve()"


class Server:
    def __init__(self, home: Path, **more: str) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.more = {
            "TERA_HOME": str(home),
            "TERA_ENGINE": "simulated",
            "TERA_SIMULATED_HOSTS": "2x2xV100",
            "TERA_SIMULATED_BOOT_SECONDS": "0.01",
            "TERA_LISTEN": f"127.0.0.1:{self.port}",
            **more,
        }
        self.code = SERVE
        self.process: WarmServer | None = None

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TERA_")}
        return {**kept, **self.more}

    def start(self) -> "Server":
        self.process = WarmServer(self.code, self.environment())
        until = time.monotonic() + SECONDS_MAX
        while True:
            try:
                with self.client("") as client:
                    client.health()
                    return self
            except NoAnswer:
                assert self.process.poll() is None, self.told()
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.02)

    def told(self) -> str:
        """The output, after the server has ended."""
        assert self.process is not None
        return self.process.stderr.read().decode()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait(timeout=SECONDS_MAX)
        self.process.stderr.close()
        self.process = None
        return code

    @property
    def operator_key(self) -> str:
        return (self.home / "cloud" / "operator.key").read_text().strip()

    def client(self, key: str | None = None, project: str = "") -> Client:
        return Client(
            self.url,
            self.operator_key if key is None else key,
            project=project,
            pause=lambda _: time.sleep(0.01),
        )

    def furnish(self) -> None:
        """A server with hosts and the base image."""
        with self.client() as client:
            client.images.create(ImageRequest(name="base", recipe="base"))
            until = time.monotonic() + SECONDS_MAX
            while client.images.get("base").state != "ready" or not client.hosts.page().items:
                assert time.monotonic() < until, "no image"
                time.sleep(0.02)


@contextmanager
def running(home: Path, code: str = SERVE, **more: str) -> Iterator[Server]:
    server = Server(home, **more)
    server.code = code
    try:
        yield server.start()
    finally:
        if server.process is not None:
            server.end()


def tls_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the loopback address, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    return cert, key
