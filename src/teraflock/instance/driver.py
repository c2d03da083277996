"""What an engine must do for us: the protocol between instances and whatever runs them.

What holds of every engine:
- all it makes bears our installation's mark and the instance's id, so that `sightings` finds it again after a crash;
- every call may be made twice: making what is there, stopping what stands still and deleting what is gone succeed;
- `create` makes the whole of an instance or, after a crash, a part that `create` completes and `delete` removes;
- a call returns when the engine has taken the work, not when the guest is up: `ready` says that, and is asked again;
- what an engine cannot do, its `capabilities` do not name; the service refuses it before anything is touched.

The protocol fits public clouds as well as own servers. An engine without PLACEMENT rents a machine for each instance:
- `Machine.rental` says what to rent. `create` first looks for the instance's mark, so that a machine whose launch was
  not confirmed is found and not rented twice; a machine of an older token is given back first;
- the token is stored before `create` is called. `Rental.asked_at` says when it was first used: where listings lag and
  the cloud ignores tokens, the driver raises `EngineBusy` until the machine shows or `GRACE` has passed;
- `create` returns what the cloud decided (`Made`), `ready` returns where the guest is reached (`Endpoint`);
- `NoRoom` makes the next place be tried, `OverQuota` and `NoMoney` end the launch, and `BadCredentials` ends nothing:
  an account that cannot be read says nothing about its machines.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Final, Protocol

import msgspec

from teraflock.base.errors import Refused, Unavailable
from teraflock.fleet.model import GpuKind, HostReport
from teraflock.instance.model import InstanceId
from teraflock.tenant.model import ProjectId

GRACE: Final = timedelta(seconds=60)
"""How long a listing may lack a machine that was just made."""
BOOT_TIME_MAX: Final = timedelta(seconds=90)
PATIENCE: Final = timedelta(seconds=120)
"""How long own servers take to boot a guest, and how long a launch waits for one that does not answer."""


class Capability(StrEnum):
    PLACEMENT = "placement"
    """We choose the host and record what is free on it. Without it, the engine rents a machine for each instance."""
    CREATE_STOPPED = "create-stopped"
    """`create` makes a machine that is stopped; otherwise it runs, and costs money, from then on."""
    BIDS = "bids"
    """Rents machines to whoever bids most."""
    LIVE_RESIZE = "live-resize"
    """Processors, memory and a growing disk change while the guest runs."""
    STOP = "stop"
    """A stopped instance keeps its disk."""
    STOP_SPOT = "stop-spot"  # also machines of mode `spot` and `bid`
    JUPYTER = "jupyter"  # its port can be reached
    SNAPSHOTS = "snapshots"
    EXEC = "exec"
    FILES = "files"
    IMAGES_FROM_INSTANCES = "images-from-instances"
    BUILDS = "builds"
    """Builds images from our recipes."""
    NOTICE = "notice"
    """May take an instance back, and says so before."""
    TRAFFIC = "traffic"
    """Counts what guests send out of the house."""


class EngineDown(Unavailable):
    """The engine that runs the instance does not answer. Loops retry until it does and undo nothing."""

    code = "engine_down"
    for_tenant: ClassVar[str] = "Its host does not answer now. This continues by itself when the host is back"
    """What the tenant reads where the sentence and the hint are for the operator."""


class EngineBusy(Unavailable):
    """The engine is busy with this instance, or asks to try again later. Loops retry soon."""

    code = "engine_busy"
    for_tenant: ClassVar[str] = "Its host is busy. This continues by itself"


class EngineRefused(Refused):
    """The engine refuses to do this, now and later. Loops undo the operation and show the reason to the tenant."""

    code = "engine_refused"
    remedy = "Ask the operator: the server's log has the engine's reason."
    for_tenant: ClassVar[str] = "Its host could not do it. The operator can see why"


class EngineMissing(EngineRefused):
    """The engine does not have this instance, snapshot or image. Calls that remove something never raise it."""

    code = "engine_missing"
    remedy = "Wait: the server creates a missing instance again. Then try again."


class NoRoom(EngineRefused):
    """The engine's disks, host or zone are full."""

    code = "no_room"
    remedy = "Delete snapshots or images that you no longer need, or ask the operator."
    for_tenant: ClassVar[str] = (
        "The disks of its host are full. Delete snapshots or images that you no longer need, or ask the operator"
    )


class OverQuota(EngineRefused):
    """The account may not have more of this."""

    code = "over_quota"
    for_tenant: ClassVar[str] = "The operator's account at this site has reached its limit. Ask the operator"


class NoMoney(EngineRefused):
    """The account's balance does not cover it."""

    code = "no_money"
    for_tenant: ClassVar[str] = "The operator's account at this site cannot pay for it. Ask the operator"


class BadCredentials(Unavailable):
    """The site does not accept our credentials. Its machines may be running: nothing is concluded about them."""

    code = "bad_credentials"
    for_tenant: ClassVar[str] = (
        "Its site cannot be reached now. This continues by itself when the operator mends it"
    )


class DoesNotBoot(EngineRefused):
    """The instance stopped again after it started, or it never answered."""

    code = "does_not_boot"
    remedy = "Check the image. `tera logs NAME` has the console."
    for_tenant: ClassVar[str] = ""
    """Its own sentence is for the tenant."""


class Handle(msgspec.Struct, frozen=True):
    """Which instance, and where it is."""

    instance_id: InstanceId
    host: str
    """The host's name as the engine knows it; empty where the engine places."""
    remote_id: str = ""
    """The engine's own id of a rented machine, once it is known. Only a shortcut: the instance's mark is enough."""


class GpuSlot(msgspec.Struct, frozen=True):
    slot: str
    """PCI address; of a MIG slice with its UUID behind: `0000:41:00.0/MIG-…`."""
    kind: GpuKind


class Port(msgspec.Struct, frozen=True):
    """A port of the host that leads to a port of the guest."""

    host_port: int
    """0: the engine chooses it, and `ready` returns it."""
    guest_port: int


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A project's own network, the same on every host."""

    project_id: ProjectId
    number: int
    subnet: str
    """Such as `10.128.16.0/20`."""
    gateway: str
    domain: str = ""
    """What the names of its guests end in: `vision.internal`."""


class Rental(msgspec.Struct, frozen=True, kw_only=True):
    """What to rent for a machine."""

    type: str
    """The provider's name of the machine type."""
    region: str
    zone: str = ""
    """Empty: any."""
    mode: str = "on-demand"
    """`on-demand`, `spot` or `bid`."""
    bid_micros_per_hour: int | None = None
    """For the whole machine, in the currency of the type's price."""
    price_limit_micros_per_hour: int | None = None
    """Refuse a machine that costs more."""
    currency: str = ""
    """Of the two above."""
    token: str = ""
    """The same for every attempt of one launch at one place, and never used for another: `id.generation.candidate`."""
    asked_at: datetime | None = None
    """When the engine was first asked with this token; None: it never was."""


class MachineType(msgspec.Struct, frozen=True, kw_only=True):
    """What can be rented in one region."""

    name: str
    region: str
    gpu: str = ""
    """The catalog's id of the card; empty: it has none."""
    gpus: int = 0
    gpu_memory_bytes: int = 0
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    prices: Mapping[str, int]
    """Micro-units per hour by mode. A mode that is missing cannot be had."""
    currency: str


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine decided when it made a machine."""

    remote_id: str
    zone: str = ""
    price_micros_per_hour: int | None = None
    """What it costs us; None: the engine does not say."""
    currency: str = ""
    since: datetime | None = None
    """From when on it costs us money; None: the engine does not say."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where a port of the guest is reached from outside."""

    address: str
    port: int


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """All an engine needs to make one instance, and to bring it back to what it should be."""

    handle: Handle
    hostname: str
    image: str
    """The id of an image the engine holds."""
    recipe: str = ""
    """What the image was built from: an engine without BUILDS boots its nearest. Empty: made from an instance."""
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    gpus: tuple[GpuSlot, ...] = ()
    network: Network
    address: str
    ports: tuple[Port, ...] = ()
    authorized_keys: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """Words of a program to run in the guest; never a shell's."""
    command_run: int = 0
    """Which run of the command this is. A machine fitted to a higher number, while it is stopped, runs it anew."""
    jupyter_token: str = ""
    user_data: str = ""
    environment: Mapping[str, str] = {}
    rental: Rental | None = None
    """On an engine without PLACEMENT."""

    @property
    def id(self) -> InstanceId:
        return self.handle.instance_id


class Seen(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    PENDING = "pending"
    """On its way to one of the others."""
    BROKEN = "broken"


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """One thing on an engine that bears our mark."""

    instance_id: InstanceId
    host: str
    seen: Seen
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    """These as they were asked for, where the engine gives a little more; None where it does not tell."""
    slots: tuple[str, ...] | None = None
    """The cards in it, sorted."""
    altered: bool = False
    """Somebody else changed how it was made: other limits, devices or rights than we gave it."""
    leaving_at: datetime | None = None
    """When the engine takes it back."""
    started_at: datetime | None = None
    """When the guest that runs was last started. None where it does not run, or the engine does not tell."""
    made: Made | None = None
    """Of a rented machine, as it is now: its price may have changed."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A counter of what a guest sent out of the house. What stays in its project's network is not in it."""

    instance_id: InstanceId
    epoch: str
    """The life of the counter: it only grows, and when it begins anew this is another word, never one used before."""
    bytes: int


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    ready: bool
    host_key: str = ""
    """The guest's public SSH key, `ssh-ed25519 AAAA…`, where it has one."""
    endpoints: Mapping[int, Endpoint] = {}
    """By port of the guest, where the engine decides it."""
    user: str = "root"
    """Who logs in."""
    doing: str = ""
    """What it waits for, such as `pulling the image`. Shown to the tenant."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    """It was killed because it took too long."""


class CommandState(msgspec.Struct, frozen=True, kw_only=True):
    """How far an instance's own command is."""

    exit_code: int | None
    """None while it runs."""
    log: bytes
    """The end of what it wrote."""


class FileKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


class GuestFile(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a guest's disk."""

    kind: FileKind
    size_bytes: int = 0
    mode: int = 0o644
    names: tuple[str, ...] = ()
    """What a folder holds, sorted. Written by the guest: trust none of it."""
    content: Iterator[bytes] | None = None
    """Of a file, read as it is asked for. It may be shorter or longer than `size_bytes` says."""


class ComputeDriver(Protocol):
    """Runs instances somewhere."""

    @property
    def site(self) -> str:
        """The name of this engine among several."""
        ...

    @property
    def simulated(self) -> bool: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def patience(self) -> timedelta:
        """How long a launch waits for an engine that does not answer."""
        ...

    def boot_time_max(self, machine: Machine) -> timedelta:
        """How long the guest may take to answer after its start."""
        ...

    def types(self) -> Sequence[MachineType]:
        """What can be rented, as last read; empty with PLACEMENT. Makes no call."""
        ...

    def hosts(self) -> Sequence[HostReport]:
        """The hosts as they are now; none without PLACEMENT. `EngineDown` where none can be asked."""
        ...

    def allow_out(self, host: str, networks: tuple[str, ...]) -> None:
        """Let the guests of a host reach these networks besides the internet, and no other private ones."""
        ...

    def prepare(self, machine: Machine) -> None:
        """Bring the project's network to the machine's host."""
        ...

    def create(self, machine: Machine) -> Made | None:
        """Make it, stopped. An engine that only makes running machines may start it; `start` then does nothing."""
        ...

    def start(self, handle: Handle) -> None: ...

    def expose(self, machine: Machine) -> None:
        """Let its ports be reached from outside, and its network rules hold."""
        ...

    def ready(self, machine: Machine) -> Readiness:
        """Whether the guest answers. Waits a moment at most; `DoesNotBoot` where it never will."""
        ...

    def hide(self, handle: Handle) -> None:
        """Close its ports."""
        ...

    def stop(self, handle: Handle, *, force: bool) -> None:
        """Stop it and wait until it stands still: orderly, then, or at once if `force`, by pulling the plug."""
        ...

    def delete(self, handle: Handle) -> None:
        """Remove it with its disk and snapshots."""
        ...

    def resize(self, machine: Machine) -> None:
        """Bring limits and cards to what the machine says: live where LIVE_RESIZE, else it stands still."""
        ...

    def look(self, handle: Handle) -> Sighting | None: ...

    def sightings(self) -> Iterable[Sighting]:
        """All that bears our mark, orphans included."""
        ...

    def sent(self, handle: Handle) -> Sent | None:
        """The guest's counter, also after it stopped, until it starts again. None: nothing is counted, or not any more.

        It must not keep an instance from being stopped: what cannot be read is None.
        """
        ...

    def all_sent(self) -> Iterable[Sent]:
        """The counters of all guests that bear our mark."""
        ...

    def retire(self, network: Network) -> None:
        """Remove a project's network from all hosts; it has no instances any more."""
        ...

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran: ...

    def command_state(self, handle: Handle) -> CommandState | None: ...

    def user_data_state(self, handle: Handle) -> CommandState | None:
        """How far the instance's user-data is; None where it has none."""
        ...

    def file(self, handle: Handle, path: str) -> AbstractContextManager[GuestFile]:
        """An entry of the guest's disk, running or stopped. Links are not followed by the last part of the path.

        Paths are resolved within the guest's own disk, never on the host. `EngineMissing` where there is none.
        """
        ...

    def console(self, handle: Handle) -> bytes:
        """The end of what the guest wrote to its console."""
        ...

    def snapshot(self, handle: Handle, snapshot_id: str) -> int:
        """Keep the disk as it is; the bytes that this snapshot adds to what is kept, the same whenever it is asked."""
        ...

    def restore(self, handle: Handle, snapshot_id: str) -> None:
        """Bring the disk back; the instance stands still."""
        ...

    def delete_snapshot(self, handle: Handle, snapshot_id: str) -> None: ...

    def images(self) -> Mapping[str, int]:
        """The ids of our images that the engine holds, and their bytes."""
        ...

    def build_image(self, image_id: str, recipe: str) -> None:
        """Build it from one of our recipes, or do nothing where it is held and the recipe is unchanged."""
        ...

    def publish(self, handle: Handle, image_id: str) -> None:
        """Make an image from an instance's disk as it is now."""
        ...

    def delete_image(self, image_id: str) -> None: ...
