"""The messages between a server and a host, and how errors travel.

`Hello`, `Upgrade`, `Piece`, `Working`, `Done` and `Failed` stay as they are in all versions: a server upgrades hosts of
other versions with them.

An error travels as the name of its class, so the loops of the server decide as if the engine were on this machine. A
class that the other end does not know becomes the nearest class above it that it knows.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.errors import TeraflockError, error_classes
from teraflock.instance.driver import Capability
from teraflock.instance.ending import StillEnding
from teraflock.instance.engine_errors import EngineDown, EngineFailed

PROTOCOL: Final = 1
TEXT_CHARACTERS_MAX: Final = 2000
VERSION: Final = "host_version"
"""In the context of the error of a host with another version: its version."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message of a server on every connection."""

    version: str
    protocol: int = PROTOCOL


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message of a host on every connection."""

    version: str
    now: datetime
    simulated: bool
    capabilities: frozenset[str]
    protocol: int = PROTOCOL

    @property
    def known_capabilities(self) -> frozenset[Capability]:
        return frozenset(each for each in Capability if each.value in self.capabilities)


class Upgrade(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Install this version and restart. The package follows in pieces, then an empty one."""

    version: str
    digest: str
    """SHA-256 of the package."""


class HostCall(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    method: str
    arguments: bytes


class Typed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Input for a shell, or its new size."""

    content: bytes = b""
    columns: int = 0
    rows: int = 0


class Working(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Sent every few seconds while a call takes time: the host is alive."""


class Done(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    result: bytes = b""
    streams: bool = False
    """Pieces follow."""


class Piece(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A part of a file, of a shell's output or of a package. Empty: that was all."""

    content: bytes


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    kinds: tuple[str, ...]
    """The names of the error's class and of those above it, the most specific first."""
    sentence: str
    hint: str = ""
    context: Mapping[str, str] = {}
    over_at: datetime | None = None
    """Of `StillEnding`."""


FromServer = Hello | HostCall | Typed | Upgrade | Piece
FromHost = Welcome | Working | Done | Piece | Failed


def failed(error: Exception) -> Failed:
    """The message for an error. An unexpected one is a failure of the engine: its text stays on the host."""
    if not isinstance(error, TeraflockError):
        error = EngineFailed("The host program failed", hint="Its log on the host has the reason")
    return Failed(
        kinds=tuple(each.__name__ for each in type(error).__mro__ if issubclass(each, TeraflockError)),
        sentence=_short(error.sentence),
        hint=_short(error.hint),
        context={_short(str(name)): _short(str(value)) for name, value in error.context.items()},
        over_at=error.over_at if isinstance(error, StillEnding) else None,
    )


def raised(message: Failed) -> TeraflockError:
    """The error of a message, of the most specific class that is known here."""
    classes = {each.__name__: each for each in error_classes()}
    kind = next((classes[name] for name in message.kinds if name in classes), EngineFailed)
    if issubclass(kind, StillEnding):
        if message.over_at is not None:
            return kind(message.sentence, over_at=message.over_at)
        kind = EngineDown
    return kind(message.sentence, hint=message.hint, context=dict(message.context))


def _short(text: str) -> str:
    return text[:TEXT_CHARACTERS_MAX].encode("utf-8", "replace").decode()
