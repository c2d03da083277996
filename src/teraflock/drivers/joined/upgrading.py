"""Both ends of an upgrade: the server sends its own program to a host, and waits until the host runs it.

A host of another version refuses all calls, but accepts an upgrade. If either end dies, repeat the upgrade: the host
changes nothing until it has the whole package, and a host that has the version already is left alone.
"""

import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.drivers.joined.calling import ANSWER_SECONDS_MAX, PIECE_SECONDS_MAX, Links, received
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import Done, Failed, FromServer, Piece, Upgrade, Working, raised
from teraflock.instance.engine_errors import EngineDown, EngineRefused
from teraflock.instance.join.model import Package

PACKAGE_BYTES_MAX: Final = 256 << 20
PIECE_BYTES: Final = 1 << 20
RESTART_SECONDS_MAX: Final = 60.0
LOOK_AGAIN_SECONDS: Final = 0.2

Install = Callable[[Upgrade, bytes], None]
"""Installs a version on this host. Raise `TeraflockError` if that is not possible."""


def upgrade(links: Links, package: Package, *, restart_seconds_max: float = RESTART_SECONDS_MAX) -> str:
    """Upgrade a host, and wait until it runs the version. Return the version that it had."""
    channel = links.secured()
    try:
        before = links.version_of(channel)
        if before == package.version:
            return before
        _send(channel, package)
    except (OSError, TimeoutError) as error:
        raise EngineDown(
            f"The connection to `{links.to.name}` broke during the upgrade",
            hint="Run `tera host upgrade` again. It continues with this host",
            context={"reason": str(error)},
        ) from None
    finally:
        channel.close()
    links.close()
    _wait(links, package.version, restart_seconds_max)
    return before


def package(channel: Channel) -> bytes:
    """On the host: receive the package."""
    content = bytearray()
    for piece in pieces(channel):
        content += piece
        if len(content) > PACKAGE_BYTES_MAX:
            raise ConnectionError("the package is too large")
    return bytes(content)


def pieces(channel: Channel) -> Iterator[bytes]:
    """On the host: what a server sends in pieces, until the empty one."""
    while True:
        piece: FromServer = channel.receive(FromServer, seconds_max=PIECE_SECONDS_MAX)  # type: ignore[arg-type]
        if not isinstance(piece, Piece):
            raise ConnectionError(f"the server sent {type(piece).__name__} instead of a piece")
        if not piece.content:
            return
        yield piece.content


def _send(channel: Channel, package: Package) -> None:
    digest = sha256(package.content).hexdigest()
    channel.send(Upgrade(version=package.version, digest=digest), seconds_max=PIECE_SECONDS_MAX)
    view = memoryview(package.content)
    for start in range(0, len(view), PIECE_BYTES):
        piece = Piece(content=bytes(view[start : start + PIECE_BYTES]))
        channel.send(piece, seconds_max=PIECE_SECONDS_MAX)
    channel.send(Piece(content=b""), seconds_max=PIECE_SECONDS_MAX)
    answer = received(channel, PIECE_SECONDS_MAX)
    while isinstance(answer, Working):
        answer = received(channel, ANSWER_SECONDS_MAX)
    if isinstance(answer, Failed):
        raise raised(answer)
    if not isinstance(answer, Done):
        raise ConnectionError(f"the host sent {type(answer).__name__} instead of an answer")


def _wait(links: Links, version: str, seconds_max: float) -> None:
    """Wait until the host has restarted."""
    ends_at = time.monotonic() + seconds_max
    found = ""
    while time.monotonic() < ends_at:
        try:
            channel = links.secured()
            try:
                found = links.version_of(channel)
            finally:
                channel.close()
        except (TeraflockError, OSError, TimeoutError):
            found = ""
        if found == version:
            links.forget_failures()
            return
        time.sleep(LOOK_AGAIN_SECONDS)
    raise EngineRefused(
        f"`{links.to.name}` installed version {version}, but "
        + (f"still runs {found}" if found else "does not answer since"),
        hint="Its log on the host has the reason. See docs/hosts.md",
    )
