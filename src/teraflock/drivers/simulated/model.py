"""What exists in a simulated world. Everything is an immutable value: a change replaces the old value."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec

from teraflock.drivers.simulated.faults import SimulatedFault
from teraflock.instance.driver import Machine, Network, Port
from teraflock.network.balancer.model import BalancerSpec


class SimulatedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that the server started in a guest for a run."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    began_at: datetime
    start: int
    """The start of the guest in which it runs. It does not survive another one."""
    first_step: int = 0
    """For `train`: the step of the checkpoint from which it continues."""
    exit_code: int | None = None
    log: bytes = b""
    progress: str = ""


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
    programs: Mapping[str, SimulatedProgram] = {}
    """Programs of runs, by key."""
    mounted: Mapping[str, bytes] = {}
    """Files of datasets, which the guest can only read."""
    written_ns: Mapping[str, int] = {}
    """When a file was written, for files that programs of runs wrote."""


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
    is_second: bool = False
    """A host that does not answer still has a copy of the same instance."""
    remote_id: str = ""
    """For a rented machine: the cloud's own id. As in a real cloud, one instance may have two machines."""
    listed_at: datetime | None = None
    """When listings begin to show it."""

    @property
    def key(self) -> str:
        id = self.machine.handle.instance_id
        return self.remote_id or (copy_key(id, self.host) if self.is_second else id)

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


class SimulatedBalancer(msgspec.Struct, frozen=True, kw_only=True):
    """A balancer on a host. After its end, only its counter is left."""

    spec: BalancerSpec
    mark: str
    running: bool = True
    epoch: str
    sent_bytes: int = 0
    """Sent out of the host."""

    @property
    def key(self) -> str:
        return f"{self.spec.id}@{self.host}"

    @property
    def host(self) -> str:
        return self.spec.host


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


class DividedCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card that was divided after its host was made, or made whole again."""

    host: str
    address: str
    profiles: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.host}/{self.address}"


class SimulatedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset on a host, or what was received of it."""

    dataset_id: str
    host: str
    mark: str
    received: bytes = b""
    files: Mapping[str, bytes] | None = None
    """None: it is not complete."""

    @property
    def key(self) -> str:
        return dataset_key(self.mark, self.host, self.dataset_id)


class SimulatedVolume(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    host: str
    mark: str
    size_bytes: int
    files: Mapping[str, bytes] = {}
    """Its content while no instance has it."""
    snapshots: Mapping[str, Mapping[str, bytes]] = {}


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


Thing: TypeAlias = (
    Guest
    | DividedCard
    | NetworkThere
    | SimulatedBalancer
    | AddressTaken
    | SimulatedImage
    | SimulatedDataset
    | SimulatedVolume
    | Births
    | Weather
)


def copy_key(instance_id: str, host: str) -> str:
    """The key of a second copy of an instance."""
    return f"{instance_id}@{host}"


def dataset_key(mark: str, host: str, dataset_id: str) -> str:
    return f"{mark}/{host}/{dataset_id}"


def price_key(type: str, region: str, mode: str) -> str:
    return f"{type}@{region}/{mode}"


def network_key(mark: str, network: Network, host: str) -> str:
    return f"{mark}/{network.key}/{host}"


def address_key(mark: str, network: Network, address: str) -> str:
    return f"{mark}/{network.key}/{address}"
