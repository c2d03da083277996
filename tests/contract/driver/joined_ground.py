"""A simulated engine behind a host program, reached over a real TLS socket."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import cast

from tests.contract.driver.grounds import Ground
from tests.contract.driver.simulated_ground import simulated_ground

from teraflock.drivers.joined.authority import Authority, Identity, client_context, host_context, new_key
from teraflock.drivers.joined.authority import request_for as csr
from teraflock.drivers.joined.calling import HostEndpoint, Links
from teraflock.drivers.joined.driver import JoinedDriver
from teraflock.drivers.joined.serving import HostServer
from teraflock.drivers.joined.upgrading import Install
from teraflock.instance.driver import ComputeDriver

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def derive(purpose: str) -> bytes:
    return sha256(purpose.encode()).digest()


AUTHORITY = Authority(derive)


def host_identity(name: str = "lab2", authority: Authority = AUTHORITY) -> Identity:
    key = new_key()
    certificate = authority.issue(csr(key, name), name, datetime.now(UTC))
    return Identity(certificate=certificate, key=key, authority=authority.certificate)


class JoinedHost:
    """A host program in this process. It can be killed and started again at the same port."""

    def __init__(
        self, driver: ComputeDriver, name: str = "lab2", *, now: Callable[[], datetime] = lambda: NOW
    ) -> None:
        """`name` is that of the host. It must be the one that the driver reports, for it to be believed."""
        self.driver = driver
        self.name = name
        self.identity = host_identity()
        self.now = now
        self.port = 0
        self.version = "1"
        self.install: Install | None = None
        self.start()

    def start(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        context = host_context(self.identity)
        self.server = HostServer(
            self.driver, context, listener, now=self.now, version=self.version, install=self.install
        )
        self.server.start()

    def kill(self) -> None:
        self.server.stop()

    def links(self, identity: Identity | None = None, version: str = "1") -> Links:
        to = HostEndpoint(
            name=self.name, address="127.0.0.1", port=self.port, fingerprint=self.identity.fingerprint
        )
        context = client_context(identity or AUTHORITY.server)
        return Links(to, context, now=lambda: NOW, version=version)

    def joined(self) -> ComputeDriver:
        return cast("ComputeDriver", JoinedDriver(self.name, self.links()))


@contextmanager
def joined_ground(folder: Path) -> Iterator[Ground]:
    with simulated_ground("memory", folder) as simulated:
        host = JoinedHost(simulated.driver, simulated.driver.hosts()[0].name)
        driver = host.joined()
        ground = Ground(driver, simulated.around)
        ground.around.name = "joined"
        yield ground
        ground.clear()
        cast("JoinedDriver", driver).close()
        host.kill()
