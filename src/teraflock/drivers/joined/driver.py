"""The driver of a joined host: every call of the protocol goes to the host program there.

The methods are made from the table in `methods.py`. What the engine can do is remembered from the last connection, so
that reading it does not wait for the host.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from teraflock.base.limits import CARDS_MAX
from teraflock.drivers.joined.calling import ANSWER_SECONDS_MAX, Links, Loan, received
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import Failed, Piece, Typed, raised
from teraflock.drivers.joined.methods import (
    FILE,
    KEEP,
    KEEP_VOLUME,
    METHODS,
    PACK,
    PACK_VOLUME,
    STREAMS,
    TERMINAL,
    FileHead,
    Method,
)
from teraflock.drivers.joined.upgrading import upgrade
from teraflock.fleet.model import GpuReport, HostReport
from teraflock.fleet.telemetry.model import HostReading
from teraflock.instance.driver import (
    BOOT_TIME_MAX,
    PATIENCE,
    Capability,
    GuestFile,
    Machine,
    MachineType,
    Sighting,
)
from teraflock.instance.engine_errors import EngineFailed
from teraflock.instance.join.model import Package

LOG: Final = logging.getLogger("teraflock.engines")
HOSTS: Final = "hosts"
SIGHTINGS: Final = "sightings"
READINGS: Final = "readings"
TEXT_CHARACTERS_MAX: Final = 200
GUESTS_MAX: Final = 10_000
TERMINAL_SECONDS_MAX: Final = 3600.0 * 24
"""How long a shell may be silent. Its reader ends it when it is no longer needed."""
ALWAYS: Final = frozenset({Capability.PLACEMENT, Capability.FIREWALL})
"""What every joined host can do. Used until the host has answered once: its instances need their rules."""


class JoinedDriver:
    """One host. Its methods are added below."""

    patience = PATIENCE

    def __init__(self, site: str, links: Links) -> None:
        self.site = site
        self.links = links

    @property
    def simulated(self) -> bool:
        return bool(self.links.welcome and self.links.welcome.simulated)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.links.welcome.known_capabilities if self.links.welcome else ALWAYS

    def boot_time_max(self, machine: Machine) -> timedelta:
        return BOOT_TIME_MAX

    def types(self) -> tuple[MachineType, ...]:
        return ()

    def close(self) -> None:
        self.links.close()

    def upgrade(self, package: Package) -> str:
        return upgrade(self.links, package)

    def file(self, *positional: object, **named: object) -> AbstractContextManager[GuestFile]:
        return _opened_file(self.links, FILE, METHODS[FILE].packed(*positional, **named))

    def pack_disk(self, *positional: object, **named: object) -> AbstractContextManager[GuestFile]:
        return _opened_file(self.links, PACK, METHODS[PACK].packed(*positional, **named))

    def pack_volume(self, *positional: object, **named: object) -> AbstractContextManager[GuestFile]:
        return _opened_file(self.links, PACK_VOLUME, METHODS[PACK_VOLUME].packed(*positional, **named))

    def keep_image(self, image_id: str, content: Iterable[bytes]) -> None:
        self._keep(KEEP, METHODS[KEEP].packed(image_id), content)

    def keep_volume(self, host: str, volume_id: str, size_bytes: int, content: Iterable[bytes]) -> None:
        self._keep(KEEP_VOLUME, METHODS[KEEP_VOLUME].packed(host, volume_id, size_bytes), content)

    def _keep(self, method: str, arguments: bytes, content: Iterable[bytes]) -> None:
        with self.links.borrowed() as loan:
            try:
                self.links.call(loan, method, arguments, content)
            finally:
                loan.is_clean = False  # the host may have answered before it got everything

    def open_terminal(self, *positional: object, **named: object) -> "JoinedTerminal":
        with self.links.borrowed() as loan:
            self.links.call(loan, TERMINAL, METHODS[TERMINAL].packed(*positional, **named))
            loan.is_taken = True
            return JoinedTerminal(loan.channel)


class JoinedTerminal:
    """A shell on a joined host. It ends with its connection."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def read(self) -> bytes:
        try:
            answer = received(self._channel, TERMINAL_SECONDS_MAX)
        except (OSError, TimeoutError):
            return b""
        return answer.content if isinstance(answer, Piece) else b""

    def write(self, content: bytes) -> None:
        self._send(Typed(content=content))

    def resize(self, columns: int, rows: int) -> None:
        self._send(Typed(columns=columns, rows=rows))

    def close(self) -> None:
        self._channel.close()

    def _send(self, message: Typed) -> None:
        try:
            self._channel.send(message, seconds_max=ANSWER_SECONDS_MAX)
        except (OSError, TimeoutError):
            self.close()  # `read` then says that it ended


@contextmanager
def _opened_file(links: Links, method: str, arguments: bytes) -> Iterator[GuestFile]:
    with links.borrowed() as loan:
        done = links.call(loan, method, arguments)
        head = msgspec.structs.asdict(msgspec.msgpack.decode(done.result, type=FileHead))
        yield GuestFile(**head, content=_pieces(loan) if done.streams else None)


def _pieces(loan: Loan) -> Iterator[bytes]:
    while True:
        answer = received(loan.channel, ANSWER_SECONDS_MAX)
        if isinstance(answer, Failed):
            loan.is_clean = True
            raise raised(answer)
        if not isinstance(answer, Piece):
            raise ConnectionError(f"the host sent {type(answer).__name__} instead of a part of a file")
        if not answer.content:
            loan.is_clean = True
            return
        yield answer.content


def _remote(method: Method) -> Callable[..., Any]:
    def call(self: JoinedDriver, *positional: object, **named: object) -> Any:
        arguments = method.packed(*positional, **named)
        with self.links.borrowed() as loan:
            done = self.links.call(loan, method.name, arguments)
        try:
            return msgspec.msgpack.decode(done.result, type=method.result)
        except msgspec.DecodeError as error:
            raise EngineFailed(
                f"The host `{self.site}` sent an invalid answer", context={"reason": str(error)}
            ) from None

    call.__name__ = method.name
    return call


def _own_host(self: JoinedDriver) -> tuple[HostReport, ...]:
    """What the host reports about itself, at the address that the server knows. It cannot report other hosts."""
    found = _remote(METHODS[HOSTS])(self)
    own = [each for each in found if each.name == self.site]
    if len(own) != len(found):
        LOG.warning("%s reports other hosts, too: ignored", self.site)
    address = self.links.to.address
    return tuple(
        replace(each, address=address, gpus=tuple(filter(_is_plain, each.gpus[:CARDS_MAX])))
        for each in own[:1]
    )


def _is_plain(gpu: GpuReport) -> bool:
    """Whether the texts about a card can be stored and shown. Others are not cards of a catalog."""
    return _are_plain(gpu.slot, gpu.gpu, gpu.name, gpu.near)


def _are_plain(*words: str) -> bool:
    return all(len(each) <= TEXT_CHARACTERS_MAX and each.isprintable() for each in words)


def _own_readings(self: JoinedDriver) -> tuple[HostReading, ...]:
    """The readings of the host itself and its guests."""
    found = _remote(METHODS[READINGS])(self)
    own = [each for each in found if each.host == self.site and _zoned(each.now)]
    return tuple(
        replace(
            each,
            cards=tuple(
                card for card in each.cards[:CARDS_MAX] if _are_plain(card.slot, card.name, card.uuid)
            ),
            guests=tuple(guest for guest in each.guests[:GUESTS_MAX] if _are_plain(guest.instance_id)),
        )
        for each in own[:1]
    )


def _own_sightings(self: JoinedDriver) -> tuple[Sighting, ...]:
    """The guests on the host itself. An own host announces no end of a guest."""
    found = _remote(METHODS[SIGHTINGS])(self)
    own = [each for each in found if each.host == self.site and len(each.instance_id) <= TEXT_CHARACTERS_MAX]
    return tuple(
        replace(each, leaving_at=None, made=None, started_at=_zoned(each.started_at))
        for each in own[:GUESTS_MAX]
    )


def _zoned(at: datetime | None) -> datetime | None:
    """A time with its zone. One without cannot be compared with ours, and says nothing."""
    return at if at is not None and at.tzinfo is not None else None


_CHECKED: Final = {HOSTS: _own_host, SIGHTINGS: _own_sightings, READINGS: _own_readings}
"""Calls whose answers are not taken as they are."""

for _name, _found in METHODS.items():
    if _name not in STREAMS:
        setattr(JoinedDriver, _name, _CHECKED.get(_name) or _remote(_found))
