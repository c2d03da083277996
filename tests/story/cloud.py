"""An installation for story tests: `tera up` with the simulated engine, with its own home and port."""

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.story.tera import Done, Tera

PORTS = range(10_000, 32_768)


class Cloud(Tera):
    """A user on a machine with an installation."""

    def __init__(self, home: Path, port: int | None = None) -> None:
        super().__init__(home)
        self.port = port or free_port()
        self.more: dict[str, str] = {"TERA_ENGINE": "simulated", "TERA_LISTEN": f"127.0.0.1:{self.port}"}
        self.more |= {"TERA_SIMULATED_BOOT_SECONDS": "0.01", "HOME": str(home.parent)}

    def environment(self, columns: int) -> dict[str, str]:
        return super().environment(columns) | self.more

    def fails(self, *words: str | Path) -> Done:
        done = self.run(*words)
        assert done.code != 0, done.out
        assert "error: " in done.err, done.err
        return done

    def as_user(self, key: str) -> "Cloud":
        """The same server for another user, with their key and no connection file."""
        other = Cloud(self.home.parent / f"home-of-{key[5:21]}", self.port)
        other.more |= {"TERA_SERVER": f"http://127.0.0.1:{self.port}", "TERA_KEY": key}
        return other


@contextmanager
def running(home: Path, **settings: str) -> Iterator[Cloud]:
    """A new installation with these settings, which is stopped in the end."""
    cloud = Cloud(home)
    cloud.more |= settings
    try:
        cloud.ok("up")
        yield cloud
    finally:
        cloud.ok("down")


def told(cloud: Cloud, *words: str) -> Any:
    return cloud.ok(*words, "--json").json


def free_port() -> int:
    """A free port below the range for outgoing connections, so that nothing takes it before the server does."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
