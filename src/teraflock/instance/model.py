"""Instances: what was asked for, what is held for them, and how far the work on them is."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, NewType

import msgspec

from teraflock.base.size import Size
from teraflock.fleet.model import GpuKind, HostId
from teraflock.instance.states import Phase, Wanted
from teraflock.tenant.model import MemberId, OrganisationId, ProjectId

InstanceId = NewType("InstanceId", str)
SnapshotId = NewType("SnapshotId", str)


class Access(StrEnum):
    SSH = "ssh"
    JUPYTER = "jupyter"
    COMMAND = "command"
    """Runs one program, keeps its log and exit code, and stops."""


SSH_PORT: Final = 22
JUPYTER_PORT: Final = 8888


def guest_ports(access: Access) -> tuple[int, ...]:
    """The ports of a guest that are reached from outside."""
    return (SSH_PORT, JUPYTER_PORT) if access == Access.JUPYTER else (SSH_PORT,)


class RestartPolicy(StrEnum):
    """What happens to an instance that stopped by itself, or is no longer on its engine."""

    NEVER = "never"
    """It is stopped; where its disk is lost too, it has failed."""
    SAME_HOST = "same-host"
    """It is started again, or made again on its host; a rented one in the same region."""
    ELSEWHERE = "elsewhere"
    """The same, but where its disk is lost it may be made on another host, or in another region."""


class RentalSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant rents, as it was ordered."""

    type: str
    regions: tuple[str, ...]
    """Where it may be, in the order in which they are tried."""
    zone: str = ""
    bid_micros_per_hour: int | None = None
    price_limit_micros_per_hour: int | None = None
    currency: str = ""


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What is fixed at launch. Kept as JSON in the row: nothing selects by it."""

    authorized_keys: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user_data: str = ""
    environment: Mapping[str, str] = {}
    jupyter_token: str = ""
    image_id: str = ""
    recipe: str = ""
    """Of the image; empty: it was made from an instance."""
    mode: str = "on-demand"
    """How it is paid: `on-demand`, `spot` or `bid`. Purchases for months or years are recorded in the bill."""
    rental: RentalSpec | None = None
    """None: it runs on one of our hosts."""
    restart_policy: RestartPolicy = RestartPolicy.SAME_HOST
    watches_guest: bool = True
    """Whether its site can look into it: else nobody knows when its user-data ends."""
    keeps_disk: bool = True
    """Whether its site can stop it and keep its disk. One that cannot be stopped is deleted instead."""
    time_limit_seconds: int | None = None
    """How long it may run after each start."""
    delete_when_done: bool = False
    """Delete it, instead of stopping it, when its command ends or its time limit is reached."""


class Operation(StrEnum):
    LAUNCH = "launch"
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    RESIZE = "resize"
    """Limits alone, while it runs."""
    REFIT = "refit"
    """Limits and devices that other hands changed on the engine, put back while it runs."""
    RESIZE_RESTART = "resize-restart"
    """With other cards, or on an engine that changes nothing live."""
    SNAPSHOT = "snapshot"
    RESTORE = "restore"
    """Of a disk that stands still."""
    RESTORE_RESTART = "restore-restart"
    PUBLISH = "publish"
    DELETE = "delete"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Something asked for once, besides the wanted state. Kept until it is done or undone."""

    operation: Operation
    subject: str = ""
    """The id of the snapshot or image it is about."""
    shape_before: Size | None = None
    """Of a resize, so that it can be undone."""
    slots_before: tuple[str, ...] = ()
    slots_after: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The journal of the work under way: after a crash it goes on behind the last step done."""

    operation: Operation
    since: datetime
    """When the step under way began: a worker may have died long before another took over."""
    step: str = ""
    """The last step that is done, or that is still to be undone; empty: none."""
    undoing: bool = False
    attempts: int = 0
    """How often the next step was tried without success."""
    tries: int = 0
    """How many places were tried before this one."""
    try_next: bool = False
    """There was no room: once this launch is undone, the next place is tried."""
    doing: str = ""
    """What the step under way waits for, as the engine says it."""


class HeldGpu(msgspec.Struct, frozen=True):
    slot: str
    kind: GpuKind
    gpu: str


class HeldPort(msgspec.Struct, frozen=True):
    host_port: int
    guest_port: int


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What is set aside for an instance on its host."""

    vcpus: int = 0
    ram_bytes: int = 0
    disk_bytes: int = 0
    snapshots_bytes: int = 0
    """What its snapshots keep beside it."""
    gpus: tuple[HeldGpu, ...] = ()
    ports: tuple[HeldPort, ...] = ()


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """The operator stopped an instance. Only the operator lifts this; the tenant may still delete the instance."""

    reason: str
    since: datetime


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    id: InstanceId
    project_id: ProjectId
    name: str
    wanted: Wanted
    phase: Phase
    shape: Size
    """As wanted; `held` says what it has."""
    held: Held = Held()
    image: str
    access: Access
    spec: Spec
    wanted_at: datetime
    """When the tenant, or a rule, last said what is wanted."""
    site: str = ""
    """The engine or account that runs it."""
    host_id: HostId | None = None
    candidate: int = 0
    """Counts the places that were tried for it, each one of `spec.rental.regions`, in turn."""
    address: str | None = None
    host_key: str = ""
    problem: str = ""
    """Why it failed or waits, for its tenant."""
    problem_operator: str = ""
    """The same with what only the operator can act on; empty where there is nothing more to say."""
    notice: str = ""
    """Something that happened to it, such as the loss of its disk: shown until the tenant acknowledges it."""
    hold: Hold | None = None
    exit_code: int | None = None
    labels: Mapping[str, str] = {}
    command_run: int = 0
    """Counts the starts of its command. The engine keeps the log and the exit code of the last one only."""
    stop_at: datetime | None = None
    """When its time limit ends. Set when it begins to run, cleared by the next start."""
    stop_told: bool = False
    """The event before `stop_at` was recorded."""
    user_data_waits: bool = False
    """Its user-data was given to a guest, and its end is not known yet."""
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
    """Nothing to do until the tenant or a sighting says otherwise."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    id: SnapshotId
    project_id: ProjectId
    instance_id: InstanceId
    name: str
    state: str
    """`making`, `ready` or `failed`."""
    problem: str = ""
    """Why it failed."""
    size_bytes: int = 0
    """What it keeps that no snapshot before it, nor the image, had: fixed when it is made."""
    created_at: datetime


class InstanceFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which instances of a project are listed."""

    phases: tuple[Phase, ...] = ()
    """Empty: all of them."""
    labels: tuple[tuple[str, str], ...] = ()
    """Pairs that all have to be there."""
    name: str = ""
    """A pattern: `*` stands for any text, `?` for one character."""


class Rented(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that was rented for an instance."""

    type: str
    region: str
    zone: str
    user: str
    """Who logs in."""
    remote_id: str = ""
    endpoints: Mapping[int, tuple[str, int]] = {}
    """By port of the guest: the address and port where it is reached, once they are known."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """An instance, and what of its host a tenant may see."""

    instance: Instance
    host_name: str | None
    host_address: str | None
    simulated: bool
    rented: Rented | None = None
    """None: it is on one of our hosts, or on none."""


class WantedRunning(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget needs to know about an instance that should run."""

    id: InstanceId
    size: Size
    host_id: str
    """Empty: it has no host."""
    mode: str
    phase: Phase


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """An instance with whose it is, for operators."""

    view: View
    project_name: str
    organisation_id: OrganisationId
    organisation_name: str


class Log(msgspec.Struct, frozen=True, kw_only=True):
    source: Literal["command", "console", "user-data"]
    text: str
    exit_code: int | None
