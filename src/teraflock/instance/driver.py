"""The protocol between instances and the engines that run them.

Every driver guarantees:
- everything it creates has a label with our installation and the instance's id, so that `sightings` finds it after a
  crash;
- every call may be repeated: creating what exists, stopping what is stopped and deleting what is gone succeed;
- `create` makes a complete instance or, after a crash, a part that `create` completes and `delete` removes;
- a call returns when the engine has accepted the work, not when the guest is up. `ready` reports that, and is repeated;
- `capabilities` lists what the engine can do. The service refuses everything else before it calls the driver.

The protocol is for public clouds as well as own hosts. An engine without PLACEMENT rents a machine for each instance:
- `Machine.rental` is what to rent. `create` first looks for a machine with the instance's label, so that a launch that
  was not confirmed does not rent a second machine. It gives back a machine with an older token;
- the token is stored before `create` is called, and `Rental.asked_at` is the time of its first use. If listings lag,
  the driver raises `EngineBusy` until the machine is listed or `GRACE` has passed;
- `create` returns what the cloud decided (`Made`), `ready` returns where the guest can be reached (`Endpoint`);
- after `NoRoom` the launch tries the next place. `OverQuota` and `NoMoney` end the launch. `BadCredentials` ends
  nothing: an account that cannot be read gives no information about its machines.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from teraflock.base.size import Size
from teraflock.dataset.driver import DatasetDriver
from teraflock.dataset.model import DatasetMount
from teraflock.fleet.model import GpuKind, HostReport
from teraflock.fleet.telemetry.model import HostReading
from teraflock.instance.model import InstanceId
from teraflock.instance.volume.driver import VolumeDriver
from teraflock.instance.volume.model import VolumeMount
from teraflock.network.driver import BalancerDriver, WallDriver
from teraflock.tenant.model import ProjectId

GRACE: Final = timedelta(seconds=60)
"""How long a listing may lack a machine that was just created."""
BOOT_TIME_MAX: Final = timedelta(seconds=90)
PATIENCE: Final = timedelta(seconds=120)
"""For own hosts: how long a guest may take to boot, and how long a launch waits for a host that does not answer."""


class Capability(StrEnum):
    PLACEMENT = "placement"
    """Teraflock chooses the host and records what is free on it. Otherwise the engine rents a machine per instance."""
    CREATE_STOPPED = "create-stopped"
    """`create` makes a stopped machine. Otherwise the machine runs, and costs money, from then on."""
    BIDS = "bids"
    """Rents machines to the highest bidder."""
    LIVE_RESIZE = "live-resize"
    """Can change processors and memory, and grow a disk, while the guest runs."""
    STOP = "stop"  # a stopped instance keeps its disk
    STOP_SPOT = "stop-spot"  # also machines of mode `spot` and `bid`
    JUPYTER = "jupyter"  # at a port of its own, or on rented machines through SSH
    SNAPSHOTS = "snapshots"
    EXEC = "exec"
    FILES = "files"
    IMAGES_FROM_INSTANCES = "images-from-instances"
    BUILDS = "builds"
    """Builds images from our recipes."""
    NOTICE = "notice"
    """May reclaim an instance, and announces it."""
    TRAFFIC = "traffic"
    """Counts what guests send to other networks."""
    SEVERAL_COPIES = "several-copies"
    """Can create an instance on one host while another host, which does not answer, may still have a copy of it."""
    FIREWALL = "firewall"
    """Enforces security groups."""
    SLICES = "slices"
    """Divides cards into slices."""
    BALANCER = "balancer"
    """Runs load balancers in the networks of projects."""
    TELEMETRY = "telemetry"  # reads what cards and guests use
    VOLUMES = "volumes"  # disks that outlive instances
    DATASETS = "datasets"  # on its hosts, shared by guests


class Handle(msgspec.Struct, frozen=True):
    """Identifies an instance and its host."""

    instance_id: InstanceId
    host: str
    """The name that the engine uses for the host. Empty if the engine chooses hosts itself."""
    remote_id: str = ""
    """The provider's id of a rented machine, once it is known. Only a shortcut: the mark is sufficient."""
    host_key: str = ""  # that a rented machine showed when it became ready; no other one is accepted


class GpuSlot(msgspec.Struct, frozen=True):
    slot: str
    """PCI address. A MIG slice has its UUID after it: `0000:41:00.0/MIG-…`."""
    kind: GpuKind


class Port(msgspec.Struct, frozen=True):
    """A port of the host that is forwarded to a port of the guest."""

    host_port: int
    """0: the engine chooses the port, and `ready` returns it."""
    guest_port: int


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A private network of a project, the same on every host."""

    project_id: ProjectId
    number: int
    subnet: str
    """For example `10.128.16.0/20`."""
    gateway: str
    domain: str = ""
    """The domain of its guests' names, such as `vision.internal`."""
    id: str = ""
    """Identifies it. Empty: it is the only one of its project."""
    name: str = ""
    """Part of its guests' longer names, such as `web.backend.vision.internal`."""

    @property
    def key(self) -> str:
        return self.id or self.project_id


class Nic(msgspec.Struct, frozen=True):
    """A network interface of a guest."""

    network: Network
    address: str


class Rental(msgspec.Struct, frozen=True, kw_only=True):
    """What to rent for an instance."""

    type: str
    """The provider's name for the machine type."""
    region: str
    zone: str = ""
    """Empty: any zone."""
    mode: str = "on-demand"
    """`on-demand`, `spot` or `bid`."""
    bid_micros_per_hour: int | None = None
    """For the whole machine, in `currency`."""
    price_limit_micros_per_hour: int | None = None
    """Do not rent a machine that costs more."""
    currency: str = ""
    """The currency of both amounts."""
    token: str = ""
    """`id.generation.candidate`: the same for every attempt of a launch at one place, and different for all others."""
    asked_at: datetime | None = None
    """When this token was first used. None: never."""


class MachineType(Size, frozen=True, kw_only=True):
    """A machine type in one region: a size that can be rented."""

    name: str
    region: str
    gpu_memory_bytes: int = 0
    prices: Mapping[str, int]
    """Millionths per hour for each available purchase mode."""
    currency: str


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider decided when it created a machine."""

    remote_id: str
    zone: str = ""
    price_micros_per_hour: int | None = None
    """What it costs the operator. None: unknown."""
    currency: str = ""
    since: datetime | None = None
    """From when on it costs us money; None: the engine does not say."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where a port of the guest can be reached from outside."""

    address: str
    port: int


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an engine needs to create an instance, or to repair it."""

    handle: Handle
    hostname: str
    image: str
    """The id of an image that the engine has."""
    recipe: str = ""
    """The recipe of the image. A rented machine adds it to the provider's own image. Empty: made from an instance."""
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    gpus: tuple[GpuSlot, ...] = ()
    graphics: bool = False  # whether it can draw with its cards, too
    network: Network
    address: str
    more_nics: tuple[Nic, ...] = ()
    """Further interfaces. They reach private networks only: the internet is reached through the first one."""
    ports: tuple[Port, ...] = ()
    authorized_keys: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """A program and its arguments, to run in the guest without a shell."""
    command_run: int = 0
    """The number of the run. A stopped machine that gets a higher number runs the command again."""
    jupyter_token: str = ""
    user_data: str = ""
    environment: Mapping[str, str] = {}
    data: tuple[DatasetMount, ...] = ()
    volumes: tuple[VolumeMount, ...] = ()
    """Datasets and volumes are on its host before it is created."""
    rental: Rental | None = None
    """Set for engines without PLACEMENT."""

    @property
    def id(self) -> InstanceId:
        return self.handle.instance_id

    @property
    def nics(self) -> tuple[Nic, ...]:
        return (Nic(self.network, self.address), *self.more_nics)


class Seen(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    PENDING = "pending"
    """Between two of the other states."""
    BROKEN = "broken"


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """A machine on an engine that has our mark."""

    instance_id: InstanceId
    host: str
    seen: Seen
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    """The requested values, even if the engine gives slightly more. None: the engine does not report them."""
    slots: tuple[str, ...] | None = None
    """The slots of its cards, sorted. None: the engine does not report them."""
    altered: bool = False
    """Its limits, devices or permissions were changed outside Teraflock."""
    leaving_at: datetime | None = None
    """When the engine reclaims it."""
    started_at: datetime | None = None
    """When the running guest was last started. None: it does not run, or the engine does not report it."""
    made: Made | None = None
    """The rented machine as it is now: its price may have changed."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A counter of what a guest sent to other networks. Traffic within its project's network does not count."""

    instance_id: InstanceId
    epoch: str
    """Identifies one lifetime of the counter, in which it only grows. A counter that starts again has a new epoch."""
    bytes: int


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    ready: bool
    host_key: str = ""
    """The guest's public SSH key, `ssh-ed25519 AAAA…`, if it has one."""
    endpoints: Mapping[int, Endpoint] = {}
    """For each port of the guest, if the engine chooses them."""
    user: str = "root"
    """The user to log in as."""
    doing: str = ""
    """What it waits for, such as `pulling the image`. Tenants see it."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    """It was killed because it took too long."""


class CommandState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a command that an instance runs by itself."""

    exit_code: int | None
    """None: it is still running."""
    log: bytes
    """The end of its output."""


class FileKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


class GuestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, folder or link on a guest's disk."""

    kind: FileKind
    size_bytes: int = 0
    mode: int = 0o644
    names: tuple[str, ...] = ()
    """The names in a folder, sorted. The guest controls them: do not trust them."""
    content: Iterator[bytes] | None = None
    """The content of a file, read on demand. It may be shorter or longer than `size_bytes`."""


class ComputeDriver(WallDriver, BalancerDriver, DatasetDriver, VolumeDriver, Protocol):
    """Runs instances on one engine. See the module docstring."""

    @property
    def site(self) -> str:
        """The name of the site."""
        ...

    @property
    def simulated(self) -> bool: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def patience(self) -> timedelta:
        """How long a launch waits while the engine does not answer."""
        ...

    def boot_time_max(self, machine: Machine) -> timedelta:
        """How long the guest may take to answer after its start."""
        ...

    def types(self) -> Sequence[MachineType]:
        """The machine types from the last reading. Empty with PLACEMENT. Must not call the engine."""
        ...

    def hosts(self) -> Sequence[HostReport]:
        """The current hosts. Empty without PLACEMENT. Raise `EngineDown` if the engine does not answer."""
        ...

    def readings(self) -> Sequence[HostReading]:
        """What the cards and running guests of all hosts use now. Empty without TELEMETRY.

        A host that does not answer is left out. Raise `EngineDown` if the engine does not answer.
        """
        ...

    def slice_card(self, host: str, address: str, profiles: tuple[str, ...]) -> None:
        """Divide a card into slices, such as `3g.71gb` twice. Without profiles, make it whole again.

        The caller knows that no instance holds a part of it. Raise `Refused` if the card cannot be divided like this.
        """
        ...

    def prepare(self, machine: Machine) -> None:
        """Create the project's network on the machine's host."""
        ...

    def create(self, machine: Machine) -> Made | None:
        """Create it, stopped. If the engine creates only running machines, it may run, and `start` does nothing."""
        ...

    def start(self, handle: Handle) -> None: ...

    def expose(self, machine: Machine) -> None:
        """Open its ports to the outside, and apply its network rules."""
        ...

    def ready(self, machine: Machine) -> Readiness:
        """Check whether the guest answers. Do not wait long. Raise `DoesNotBoot` if it never will."""
        ...

    def hide(self, handle: Handle) -> None:
        """Close its ports."""
        ...

    def stop(self, handle: Handle, *, force: bool) -> None:
        """Stop it, and wait until it has stopped. Shut it down first; if that fails, or with `force`, power it off."""
        ...

    def delete(self, handle: Handle) -> None:
        """Delete it with its disk and snapshots."""
        ...

    def resize(self, machine: Machine) -> None:
        """Set limits and cards to those of the machine. Without LIVE_RESIZE it is stopped when this is called."""
        ...

    def look(self, handle: Handle) -> Sighting | None: ...

    def sightings(self) -> Iterable[Sighting]:
        """Everything that has our mark, also without an instance."""
        ...

    def sent(self, handle: Handle) -> Sent | None:
        """The guest's counter, also after it stopped, until it starts again. None: there is no counter.

        An error must not prevent a stop: return None if the counter cannot be read.
        """
        ...

    def all_sent(self) -> Iterable[Sent]:
        """The counters of all guests that have our mark."""
        ...

    def retire(self, network: Network) -> None:
        """Remove the network of a project without instances from all hosts."""
        ...

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran: ...

    def command_state(self, handle: Handle) -> CommandState | None: ...

    def user_data_state(self, handle: Handle) -> CommandState | None:
        """The state of the instance's user-data. None: it has no user-data."""
        ...

    def file(self, handle: Handle, path: str) -> AbstractContextManager[GuestFile]:
        """Open a path on the guest's disk, running or stopped. If the path itself is a link, do not follow it.

        Resolve paths within the guest's disk, never on the host. Raise `EngineMissing` if the path does not exist.
        """
        ...

    def console(self, handle: Handle) -> bytes:
        """The end of the guest's console output."""
        ...

    def snapshot(self, handle: Handle, snapshot_id: str) -> int:
        """Create a snapshot of the disk. Return the bytes that it adds, the same number for every call."""
        ...

    def restore(self, handle: Handle, snapshot_id: str) -> None:
        """Restore the disk of a stopped instance."""
        ...

    def delete_snapshot(self, handle: Handle, snapshot_id: str) -> None: ...

    def images(self) -> Mapping[str, int]:
        """The ids and sizes of our images on the engine."""
        ...

    def build_image(self, image_id: str, recipe: str) -> None:
        """Build an image from a recipe. Do nothing if the engine has it and the recipe has not changed."""
        ...

    def publish(self, handle: Handle, image_id: str) -> None:
        """Create an image from an instance's current disk."""
        ...

    def delete_image(self, image_id: str) -> None: ...
