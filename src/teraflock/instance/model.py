"""Instances: what was asked for, what is held for them, and how far the work on them is."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NewType

import msgspec

from teraflock.fleet.model import GpuKind, HostId
from teraflock.instance.states import Phase, Wanted
from teraflock.tenant.model import MemberId, ProjectId

InstanceId = NewType("InstanceId", str)
SnapshotId = NewType("SnapshotId", str)


class Access(StrEnum):
    SSH = "ssh"
    JUPYTER = "jupyter"
    COMMAND = "command"
    """Runs one program, keeps its log and exit code, and stops."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    gpu: str = ""
    """The catalog's id of the card, or of a slice; empty: none."""
    gpus: int = 0
    vcpus: int
    ram_bytes: int
    disk_bytes: int


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What is fixed at launch. Kept as JSON in the row: nothing selects by it."""

    authorized_keys: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user_data: str = ""
    labels: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    jupyter_token: str = ""


class Operation(StrEnum):
    LAUNCH = "launch"
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    RESIZE = "resize"
    SNAPSHOT = "snapshot"
    RESTORE = "restore"
    PUBLISH = "publish"
    DELETE = "delete"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Something asked for once, besides the wanted state."""

    operation: Operation
    """RESTART, SNAPSHOT, RESTORE or PUBLISH."""
    subject: str = ""
    """The id of the snapshot or image it is about."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The journal of the work under way: after a crash it goes on behind the last step done."""

    operation: Operation
    step: str = ""
    """The last step that is done; empty: none."""
    undoing: bool = False
    attempts: int = 0
    """How often the next step was tried without success."""


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
    gpus: tuple[HeldGpu, ...] = ()
    ports: tuple[HeldPort, ...] = ()


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    id: InstanceId
    project_id: ProjectId
    name: str
    wanted: Wanted
    phase: Phase
    shape: Shape
    """As wanted; `held` says what it has."""
    held: Held = Held()
    image: str
    access: Access
    spec: Spec
    host_id: HostId | None = None
    address: str | None = None
    host_key: str = ""
    problem: str = ""
    exit_code: int | None = None
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
    created_at: datetime
