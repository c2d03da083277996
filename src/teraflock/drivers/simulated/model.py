"""What exists in a simulated world. All of it is values: a change is a new value put in place of the old one."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec

from teraflock.drivers.simulated.faults import Fault
from teraflock.instance.driver import Machine, Network, Port


class Disk(msgspec.Struct, frozen=True):
    """What a guest's disk holds, as far as anyone wrote to it."""

    files: Mapping[str, bytes] = {}
    command_exit: int | None = None
    """How the instance's command ended: kept on the disk, so that it does not begin again."""
    command_log: bytes = b""
    user_data_exit: int | None = None
    user_data_log: bytes = b""
    own_bytes: int = 0
    """Written since it came from its image or snapshot, or was last kept as one."""


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    mark: str
    """The installation that made it."""
    whole: bool
    """False: a crash left a part of it, which `create` completes and `delete` removes."""
    running: bool = False
    boots: bool = True
    """Whether its image comes up."""
    died: bool = False
    """It was started and went down by itself."""
    begins_at: datetime | None = None
    """When the engine has it running, if it was started."""
    up_at: datetime | None = None
    """When it answers, if it was started."""
    fails_at: datetime | None = None
    """When the launch turns out to have failed, on an engine that says so later."""
    command_ends_at: datetime | None = None
    busy_until: datetime | None = None
    leaving_at: datetime | None = None
    ports: tuple[Port, ...] = ()
    """Those that are open."""
    disk: Disk = Disk()
    snapshots: Mapping[str, Disk] = {}
    console: bytes = b""
    born: int = 0
    """Which of all guests that were ever made in this world it is."""
    starts: int = 0
    sent_bytes: int = 0
    """Out of the house, since its last start: the counter begins anew then."""
    remote_id: str = ""
    """Of a rented machine: the cloud's own id. There may be two machines for one instance, as in a real cloud."""
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
    """Which guest has an address of a project's network, on whatever host it is."""

    key: str
    instance_id: str
    host: str = ""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    mark: str
    recipe: str
    size_bytes: int
    disk: Disk = Disk()
    whole: bool = True
    host: str = ""


class Births(msgspec.Struct, frozen=True, kw_only=True):
    """How many guests were ever made."""

    count: int = 0
    key: str = "births"
    host: str = ""


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the whole world just now."""

    down: bool = False
    away: frozenset[str] = frozenset()
    """Hosts that do not answer."""
    full: frozenset[str] = frozenset()
    """Hosts whose pool has no room left."""
    faults: tuple[Fault, ...] = ()
    locked_out: bool = False
    """The account's credentials are not accepted."""
    broke: bool = False
    """The account has no money."""
    machines_max: int | None = None
    """The account's quota."""
    sold_out: frozenset[str] = frozenset()
    """Regions without room."""
    prices: Mapping[str, int] = {}
    """Prices that changed, see `price_key`."""
    key: str = "weather"
    host: str = ""


Thing: TypeAlias = Guest | NetworkThere | AddressTaken | Image | Births | Weather


def price_key(type: str, region: str, mode: str) -> str:
    return f"{type}@{region}/{mode}"


def network_key(mark: str, network: Network, host: str) -> str:
    return f"{mark}/{network.project_id}/{host}"


def address_key(mark: str, network: Network, address: str) -> str:
    return f"{mark}/{network.project_id}/{address}"
