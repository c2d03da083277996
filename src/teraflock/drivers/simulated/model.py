"""What exists in a simulated world. Everything is an immutable value: a change replaces the old value."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec

from teraflock.drivers.simulated.faults import SimulatedFault
from teraflock.instance.driver import Machine, Network, Port


class SimulatedDisk(msgspec.Struct, frozen=True):
    """The content of a guest's disk, as far as it was written."""

    files: Mapping[str, bytes] = {}
    command_exit: int | None = None
    """Exit code of the instance's command. It is on the disk, so that the command does not run again."""
    command_log: bytes = b""
    user_data_exit: int | None = None
    user_data_log: bytes = b""
    own_bytes: int = 0
    """Bytes written since the disk was created, or since its last snapshot or image."""


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    mark: str
    """The installation that created it."""
    whole: bool
    """False: a crash left it incomplete. `create` completes it and `delete` removes it."""
    running: bool = False
    boots: bool = True
    """Whether its image boots."""
    died: bool = False
    """The guest started and stopped by itself."""
    begins_at: datetime | None = None
    """When the engine reports it as running, if it was started."""
    up_at: datetime | None = None
    """When it answers, if it was started."""
    fails_at: datetime | None = None
    """When the launch fails, on an engine that reports failures later."""
    command_ends_at: datetime | None = None
    busy_until: datetime | None = None
    leaving_at: datetime | None = None
    ports: tuple[Port, ...] = ()
    """The open ports."""
    disk: SimulatedDisk = SimulatedDisk()
    snapshots: Mapping[str, SimulatedDisk] = {}
    console: bytes = b""
    born: int = 0
    """Sequence number among all guests ever created in this world."""
    starts: int = 0
    sent_bytes: int = 0
    """Sent out of the host since its last start, when the counter is reset."""
    remote_id: str = ""
    """For a rented machine: the cloud's own id. As in a real cloud, one instance may have two machines."""
    listed_at: datetime | None = None
    """When listings begin to show it."""

    @property
    def key(self) -> str:
        return self.remote_id or self.machine.handle.instance_id

    @property
    def host(self) -> str:
        return self.machine.handle.host


class NetworkThere(msgspec.Struct, frozen=True, kw_only=True):
    """A project's network on one host."""

    network: Network
    host: str
    mark: str
    whole: bool

    @property
    def key(self) -> str:
        return network_key(self.mark, self.network, self.host)


class AddressTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The guest that has an address of a project's network, on any host."""

    key: str
    instance_id: str
    host: str = ""


class SimulatedImage(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    mark: str
    recipe: str
    size_bytes: int
    disk: SimulatedDisk = SimulatedDisk()
    whole: bool = True
    host: str = ""


class Births(msgspec.Struct, frozen=True, kw_only=True):
    """How many guests were ever created."""

    count: int = 0
    key: str = "births"
    host: str = ""


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """Current problems of the whole world."""

    down: bool = False
    away: frozenset[str] = frozenset()
    """Hosts that do not answer."""
    full: frozenset[str] = frozenset()
    """Hosts whose pool has no room left."""
    faults: tuple[SimulatedFault, ...] = ()
    locked_out: bool = False
    """The account's credentials are rejected."""
    broke: bool = False
    """The account has no money."""
    machines_max: int | None = None
    """The account's quota."""
    sold_out: frozenset[str] = frozenset()
    """Regions without capacity."""
    prices: Mapping[str, int] = {}
    """Changed prices, by `price_key`."""
    key: str = "weather"
    host: str = ""


Thing: TypeAlias = Guest | NetworkThere | AddressTaken | SimulatedImage | Births | Weather


def price_key(type: str, region: str, mode: str) -> str:
    return f"{type}@{region}/{mode}"


def network_key(mark: str, network: Network, host: str) -> str:
    return f"{mark}/{network.key}/{host}"


def address_key(mark: str, network: Network, address: str) -> str:
    return f"{mark}/{network.key}/{address}"
