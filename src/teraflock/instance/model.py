"""Instances: what was ordered, what they hold, and the progress of their operations."""

from collections.abc import Mapping, Set
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, NewType

import msgspec

from teraflock.base.size import Size
from teraflock.dataset.model import DatasetMount
from teraflock.fleet.model import GpuKind, HostId
from teraflock.instance.states import Phase, Wanted
from teraflock.instance.volume.model import VolumeMount
from teraflock.tenant.model import MemberId, OrganisationId, ProjectId

InstanceId = NewType("InstanceId", str)
SnapshotId = NewType("SnapshotId", str)


class Access(StrEnum):
    SSH = "ssh"
    JUPYTER = "jupyter"
    COMMAND = "command"
    """Runs one command, keeps its log and exit code, and stops."""


SSH_PORT: Final = 22
JUPYTER_PORT: Final = 8888


def guest_ports(access: Access) -> tuple[int, ...]:
    """The ports of a guest that can be reached from outside."""
    return (SSH_PORT, JUPYTER_PORT) if access == Access.JUPYTER else (SSH_PORT,)


class RestartPolicy(StrEnum):
    """What happens to an instance that stopped by itself, or that its engine no longer has."""

    NEVER = "never"
    """It stays stopped. If its disk is lost, it fails."""
    SAME_HOST = "same-host"
    """It is started again. If its disk is lost, it is created again on its host; a rented one in the same region."""
    ELSEWHERE = "elsewhere"
    """Like `same-host`, but if its disk is lost, it may be created on another host or in another region."""


class PlaceWish(msgspec.Struct, frozen=True, kw_only=True):
    """Which own hosts may run an instance, and how the instances of one order are arranged."""

    on: Mapping[str, str] = {}
    """Labels that its host must have."""
    not_with: tuple[str, ...] = ()
    """Never on the host of these instances: names, ids, or labels as `KEY=VALUE`."""
    spread: str = ""
    """As evenly as possible over each `host`, `zone` or `region`."""
    pack: bool = False
    """On as few hosts as possible."""
    together: bool = False
    """As close to each other as possible: on one host, else in one zone, else in one region."""


class RentalChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that may be rented for an instance, and how the instance is there."""

    site: str
    type: str
    regions: tuple[str, ...]
    """The regions to try, in this order."""
    zone: str = ""
    mode: str = "on-demand"
    bid_micros_per_hour: int | None = None
    price_limit_micros_per_hour: int | None = None
    currency: str = ""
    size: Size
    keeps_disk: bool = False
    watches_guest: bool = True
    offer: str = ""
    """The offer of the catalog from which it was chosen."""


class RentalSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The rented machine as it was ordered."""

    type: str
    regions: tuple[str, ...]
    """The regions to try, in this order."""
    zone: str = ""
    bid_micros_per_hour: int | None = None
    price_limit_micros_per_hour: int | None = None
    currency: str = ""
    choices: tuple[RentalChoice, ...] = ()
    """All machines that may be rented, in this order. The fields above are those of the selected one. Empty: only this
    one."""


class NetworkSpec(msgspec.Struct, frozen=True):
    """A network that an instance is in, by its name and by the key that engines know it by."""

    name: str
    key: str


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What is fixed at launch. Stored as JSON, because no query filters by it."""

    authorized_keys: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user_data: str = ""
    environment: Mapping[str, str] = {}
    jupyter_token: str = ""
    image_id: str = ""
    recipe: str = ""
    """The recipe of the image. Empty: the image was made from an instance."""
    mode: str = "on-demand"
    """The purchase mode: `on-demand`, `spot` or `bid`. Purchases for months or years are part of billing."""
    rental: RentalSpec | None = None
    """None: it runs on an own host."""
    restart_policy: RestartPolicy = RestartPolicy.SAME_HOST
    watches_guest: bool = True
    """Whether its site can run commands in it. Otherwise it is unknown when its user-data ends."""
    keeps_disk: bool = True
    """Whether its site can stop it and keep its disk. If not, it is deleted instead of stopped."""
    time_limit_seconds: int | None = None
    """How long it may run after each start."""
    place: PlaceWish = PlaceWish()
    graphics: bool = False
    delete_when_done: bool = False
    """Delete it, instead of stopping it, when its command ends or its time limit is reached."""
    networks: tuple[NetworkSpec, ...] = ()
    """One for each address. Empty: from before projects had several networks, so it is in that of its project."""
    data: tuple[DatasetMount, ...] = ()


class Operation(StrEnum):
    LAUNCH = "launch"
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    RESIZE = "resize"
    """Changes limits while it runs."""
    REFIT = "refit"
    """Restores limits and devices that were changed outside Teraflock, while it runs."""
    RESIZE_RESTART = "resize-restart"
    """Changes cards, or limits on an engine that cannot change them while it runs."""
    SNAPSHOT = "snapshot"
    RESTORE = "restore"
    """Restores the disk of a stopped instance."""
    RESTORE_RESTART = "restore-restart"
    PUBLISH = "publish"
    DELETE = "delete"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A one-time request, in addition to the wanted state. Stored until it is done or undone."""

    operation: Operation
    subject: str = ""
    """The id of the snapshot or image that it is about. Of a launch: the copy of its disk to start from."""
    shape_before: Size | None = None
    """The shape before a resize, so that the resize can be undone."""
    slots_before: tuple[str, ...] = ()
    slots_after: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The journal of the current operation. After a crash, it continues after the last completed step."""

    operation: Operation
    since: datetime
    """When the current step began. A worker may have died long before another took over."""
    step: str = ""
    """The last completed step, or the next one to undo. Empty: none."""
    undoing: bool = False
    attempts: int = 0
    """How often the next step has failed."""
    tries: int = 0
    """How many places were tried before this one."""
    try_next: bool = False
    """There was no room. Once this launch is undone, the next place is tried."""
    doing: str = ""
    """What the current step waits for, in the words of the engine."""


class Preemptible(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of mode `spot` or `bid` on an own host. It runs on idle cards, and gives way with notice to instances
    on demand and to higher bids. Then it is stopped, keeps its disk, and waits until it can run again."""

    bid_micros_per_hour: int | None = None
    """What it offers for each card, in the first currency of the price book. None: spot."""
    card_micros_per_hour: int = 0
    """What each card costs now, as the last auction decided. 0: the spot price."""
    leaving_at: datetime | None = None
    """When it must stop. None: nobody needs its cards."""
    waits_since: datetime | None = None
    """Since when it waits to run again. None: it runs, or the tenant stopped it."""


class HeldGpu(msgspec.Struct, frozen=True):
    slot: str
    kind: GpuKind
    gpu: str


class HeldPort(msgspec.Struct, frozen=True):
    host_port: int
    guest_port: int


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance holds on its host."""

    vcpus: int = 0
    ram_bytes: int = 0
    disk_bytes: int = 0
    snapshots_bytes: int = 0
    """Size of its snapshots."""
    gpus: tuple[HeldGpu, ...] = ()
    ports: tuple[HeldPort, ...] = ()


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """The operator stopped the instance. Only the operator can lift the hold; the tenant can delete the instance."""

    reason: str
    since: datetime


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    id: InstanceId
    project_id: ProjectId
    name: str
    wanted: Wanted
    phase: Phase
    shape: Size
    """The wanted size. `held` is what it has."""
    held: Held = Held()
    image: str
    access: Access
    spec: Spec
    wanted_at: datetime
    """When the tenant, or a rule, last changed what is wanted."""
    site: str = ""
    """The engine or account that runs it."""
    host_id: HostId | None = None
    candidate: int = 0
    """Counts the places that were tried. It selects one of them in turn: see `candidates.py`."""
    address: str | None = None
    more_addresses: tuple[str, ...] = ()
    """Of its further interfaces, in their order."""
    volumes: tuple[VolumeMount, ...] = ()
    """The volumes that it should have."""
    host_key: str = ""
    problem: str = ""
    """Why it failed or waits, in words for the tenant."""
    problem_operator: str = ""
    """The same with details for the operator. Empty: there are none."""
    notice: str = ""
    """An incident, such as the loss of its disk. Shown until the tenant acknowledges it."""
    hold: Hold | None = None
    preemptible: Preemptible | None = None
    exit_code: int | None = None
    labels: Mapping[str, str] = {}
    command_run: int = 0
    """Counts the starts of its command. The engine keeps the log and the exit code of the last start only."""
    stop_at: datetime | None = None
    """When its time limit ends. Set when it begins to run, cleared by the next start."""
    stop_told: bool = False
    """The event before `stop_at` was recorded."""
    user_data_waits: bool = False
    """Its user-data was started in the guest, and has not ended yet."""
    user_data_exit_code: int | None = None
    created_at: datetime
    created_by: MemberId
    running_since: datetime | None = None
    gone_at: datetime | None = None
    request: Request | None = None
    progress: Progress | None = None
    generation: int = 0
    """Counts operations."""
    sequence: int = 0
    """Counts events."""
    due_at: datetime
    settled: bool = False
    """Nothing to do until the tenant asks for something or a sighting differs."""


class SnapshotState(StrEnum):
    MAKING = "making"
    READY = "ready"
    FAILED = "failed"


SNAPSHOT_MOVES: Final[Mapping[SnapshotState, Set[SnapshotState]]] = {
    SnapshotState.MAKING: {SnapshotState.READY, SnapshotState.FAILED},
    SnapshotState.READY: frozenset(),
    SnapshotState.FAILED: frozenset(),
}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    id: SnapshotId
    project_id: ProjectId
    instance_id: InstanceId
    name: str
    state: SnapshotState
    problem: str = ""
    """Why it failed."""
    size_bytes: int = 0
    """What it adds to the image and to earlier snapshots. Fixed when it is created."""
    created_at: datetime


class InstanceFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects instances of a project."""

    phases: tuple[Phase, ...] = ()
    """Empty: all of them."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that an instance must have, all of them."""
    name: str = ""
    """A pattern: `*` matches any text, `?` one character."""


class Rented(msgspec.Struct, frozen=True, kw_only=True):
    """The rented machine of an instance."""

    type: str
    region: str
    zone: str
    user: str
    """The user to log in as."""
    remote_id: str = ""
    endpoints: Mapping[int, tuple[str, int]] = {}
    """The address and port for each port of the guest, once they are known."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """An instance, with what a tenant may see of its host."""

    instance: Instance
    host_name: str | None
    host_address: str | None
    simulated: bool
    rented: Rented | None = None
    """None: it is on an own host, or has no host."""


class WantedRunning(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget needs to know about an instance that should run."""

    id: InstanceId
    size: Size
    host_id: str
    """Empty: it has no host."""
    region: str = ""
    mode: str
    card_micros_per_hour: int = 0
    """With mode `bid` on an own host: the most that each card may cost."""
    phase: Phase


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """An instance with its project and organisation, for operators."""

    view: View
    project_name: str
    organisation_id: OrganisationId
    organisation_name: str


class LocatedFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects instances of all projects. An empty field matches everything."""

    organisation: str = ""
    project: str = ""
    host: str = ""
    phase: str = ""
    ref: str = ""
    """The id or the name of an instance."""


class Log(msgspec.Struct, frozen=True, kw_only=True):
    source: Literal["command", "console", "user-data"]
    text: str
    exit_code: int | None
