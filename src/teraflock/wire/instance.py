"""Instances on the wire. Requests refuse unknown fields; responses may get new fields."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from teraflock.base.limits import (
    ALTERNATIVES_MAX,
    INSTANCES_PER_LAUNCH_MAX,
    LABEL_KEY,
    TIME_LIMIT_SECONDS_MAX,
    TIME_LIMIT_SECONDS_MIN,
    USER_DATA_BYTES_MAX,
    VARIABLE,
    whole,
)
from teraflock.wire.field import Name, Ref
from teraflock.wire.queue import QueuedAnswer
from teraflock.wire.shape import ShapeAnswer, ShapeRequest
from teraflock.wire.word import closed

LabelKey = Annotated[str, Meta(min_length=1, max_length=63, pattern=whole(LABEL_KEY))]
LabelValue = Annotated[str, Meta(max_length=255, pattern=r"^[^\u0000]*$")]
Word = Annotated[str, Meta(max_length=4096, pattern=r"^[^\u0000]*$")]
VariableName = Annotated[str, Meta(max_length=255, pattern=whole(VARIABLE))]
NotWith = Annotated[str, Meta(min_length=1, max_length=319, pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)")]
AccessWord = Literal["ssh", "jupyter", "command"]
PhaseWord = Literal[
    "queued", "starting", "running", "changing", "away", "stopping", "stopped", "failed", "deleting", "gone"
]
StateWord = Annotated[str, closed(*get_args(PhaseWord))]
WantedWord = Annotated[str, closed("running", "stopped", "gone")]
OperationWord = Annotated[
    str,
    closed(
        "launch", "start", "stop", "restart", "resize", "refit", "resize-restart", "snapshot", "restore",
        "restore-restart", "publish", "delete",
    ),
]  # fmt: skip
ModeWord = Literal["on-demand", "spot", "bid"]
RestartPolicyWord = Literal["never", "same-host", "elsewhere"]
Micros = Annotated[int, Meta(ge=1, le=10**15)]
LogSource = Literal["command", "console", "user-data"]
TimeLimit = Annotated[int, Meta(ge=TIME_LIMIT_SECONDS_MIN, le=TIME_LIMIT_SECONDS_MAX)]

VolumeWord = Annotated[
    str, Meta(min_length=1, max_length=700, pattern=r"^[a-z0-9_-]+(:[A-Za-z0-9._/-]+)?$(?!\n)")
]


class AlternativeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another machine to rent. The fields mean what they mean in a launch."""

    site: Ref = ""
    provider: Ref = ""
    type: Ref = ""
    shape: ShapeRequest = ShapeRequest()
    region: Ref = ""
    zone: Ref = ""
    mode: ModeWord = "on-demand"
    bid_micros_per_hour: Micros | None = None
    max_price_micros_per_hour: Micros | None = None
    offer: Ref = ""


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name | None = None
    """With `instances` above 1, each name gets a number at the end. Default: a generated name."""
    shape: ShapeRequest = ShapeRequest()
    image: Annotated[Ref, Meta(min_length=1)] = "base"
    access: AccessWord = "ssh"
    command: Annotated[tuple[Word, ...], Meta(max_length=256)] = ()
    user_data: Annotated[str, Meta(max_length=USER_DATA_BYTES_MAX, pattern=r"^[^\u0000]*$")] = ""
    """A script whose first line starts with `#!`. It runs once, at the first start."""
    authorized_keys: Annotated[tuple[Annotated[str, Meta(max_length=8192)], ...], Meta(max_length=32)] = ()
    labels: Annotated[Mapping[LabelKey, LabelValue], Meta(max_length=64)] = {}
    environment: Annotated[Mapping[VariableName, Word], Meta(max_length=64)] = {}
    mode: ModeWord = "on-demand"
    """The purchase mode. `spot` is cheaper but can be interrupted; `bid` needs `bid_micros_per_hour`."""
    time_limit_seconds: TimeLimit | None = None
    """Stop the instance this long after each start."""
    delete_when_done: bool = False
    """Delete the instance, instead of stopping it, when its command ends or its time limit is reached."""
    graphics: bool = False
    """On own hosts: the instance can also draw with its GPUs (EGL, Vulkan), not only compute."""
    instances: Annotated[int, Meta(ge=1, le=INSTANCES_PER_LAUNCH_MAX)] = 1
    host: Ref | None = None
    """Place it on this host only."""
    site: Ref = ""
    """Run it at this site. Default: on any own host."""
    provider: Ref = ""
    """Rent at this provider, with the cheapest account that the project may use. Needs `type`, or a GPU in `shape`."""
    type: Ref = ""
    """The machine type to rent at `site` or `provider`. It fixes the shape."""
    burst: bool = False
    """Use own hosts while they have room for the same GPUs, and rent otherwise."""
    region: Ref = ""
    """The region to rent in. Default: the cheapest region with capacity."""
    zone: Ref = ""
    bid_micros_per_hour: Micros | None = None
    """With mode `bid`: the most you pay. On own hosts for each GPU, in the currency of the price book; for a rented
    machine as a whole, in the currency of its type's price. With mode `spot`, only for a rented machine: its highest
    price."""
    max_price_micros_per_hour: Micros | None = None
    """The highest price of a rented machine."""
    offer: Ref = ""
    """The offer of the catalog that you chose. For your records."""
    alternatives: Annotated[tuple[AlternativeRequest, ...], Meta(max_length=ALTERNATIVES_MAX)] = ()
    """What to rent instead, in this order, if a machine is not free, does not boot, lacks its GPUs, or is a lost spot
    machine. Alternatives that cannot be rented at the time of the launch are left out."""
    security_groups: Annotated[tuple[Ref, ...], Meta(max_length=10)] = ()
    """Names of security groups. Default: the group `default`."""
    networks: Annotated[tuple[Ref, ...], Meta(max_length=8)] = ()
    """Names of networks, one for each interface. The first leads to the internet. Default: the network `default`."""
    subnets: Annotated[tuple[Ref, ...], Meta(max_length=8)] = ()
    """`SUBNET` or `NETWORK/SUBNET`, at most one for each network. Default: the subnet `default`."""
    addresses: Annotated[tuple[Ref, ...], Meta(max_length=8)] = ()
    """Fixed addresses, at most one for each network. Default: the lowest free address."""
    data: Annotated[tuple[Annotated[Ref, Meta(min_length=1)], ...], Meta(max_length=16)] = ()
    """Datasets that it reads, under `/data/NAME`."""
    volumes: Annotated[tuple[VolumeWord, ...], Meta(max_length=16)] = ()
    """Volumes that it gets, as `NAME` or `NAME:PATH`. It is placed on the host that has them."""
    on: Annotated[Mapping[LabelKey, LabelValue], Meta(max_length=16)] = {}
    """Labels that an own host must have, such as `zone`. `region` is the region of the host."""
    not_with: Annotated[tuple[NotWith, ...], Meta(max_length=16)] = ()
    """Never on the host of these instances: names, ids, or labels as `KEY=VALUE`."""
    spread: Literal["", "host", "zone", "region"] = ""
    """Distribute the instances as evenly as possible over hosts, zones or regions."""
    pack: bool = False
    """Use as few hosts as possible."""
    together: bool = False
    """Place the instances close to each other: on one host, else in one zone, else in one region."""
    queue: bool = False
    """If there is no room or no quota now, wait for it. The response then has `queued` instead of `items`."""
    priority: Annotated[int, Meta(ge=-100, le=100)] = 0
    """Among the queued launches of the project. Higher ones start first."""
    restart_policy: RestartPolicyWord | None = None
    """What to do if it stops by itself or is lost. Default: `same-host`; for a rented machine `never`, or
    `elsewhere` if it is a spot machine with alternatives."""


class ChangeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    labels: Annotated[Mapping[LabelKey, LabelValue | None], Meta(max_length=64)] = {}
    """Labels to set. A null removes a label. Labels that you leave out do not change."""
    bid_micros_per_hour: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    """A new bid for each GPU, in the currency of the price book. Only for mode `bid` on own hosts."""


class ResizeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    shape: ShapeRequest


class ExecRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[tuple[Word, ...], Meta(min_length=1, max_length=256)]
    stdin: Annotated[str, Meta(max_length=1 << 20)] = ""
    seconds_max: Annotated[int, Meta(ge=1, le=600)] = 60


class ExecAnswer(msgspec.Struct, frozen=True, kw_only=True):
    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    """Whether the command was killed after `seconds_max`. The exit code is 124 then."""


class SshAnswer(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    user: str
    host_key: str
    """The guest's public host key, for a `known_hosts` file. Empty until it is known."""


class JupyterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    """The address with its token. Anyone who has it can log in."""
    through_ssh: bool = False
    """Whether Jupyter listens inside the machine only. The address then works while `tera jupyter NAME` runs."""


class GpuAnswer(msgspec.Struct, frozen=True, kw_only=True):
    slot: str
    kind: Annotated[str, closed("physical", "mig")]
    gpu: str


class HoldAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Who stopped an instance and why. The tenant cannot start it until the hold is lifted."""

    by: str
    reason: str
    since: datetime


class UserDataAnswer(msgspec.Struct, frozen=True, kw_only=True):
    state: Annotated[str, closed("running", "done")]
    exit_code: int | None
    """Null while it runs, or if its end is unknown."""


class CandidateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that may be rented for an instance."""

    site: str
    type: str
    region: str
    mode: str
    max_price_micros_per_hour: int | None
    currency: str
    offer: str


class RentalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that is rented for an instance."""

    type: str
    region: str
    zone: str
    """Empty until the provider has chosen one."""
    candidates: tuple[CandidateAnswer, ...] = ()
    """All machines that may be rented, in the order in which they are tried. Empty: the launch had no alternatives."""
    candidate: int = 0
    """The number of the selected one. The first is 0."""


class InterfaceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    network: str
    address: str
    ipv6_address: str = ""
    """Empty: the instance is on a rented machine."""


class InstanceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    project_id: str
    state: StateWord
    wanted: WantedWord
    operation: OperationWord | None
    """The operation in progress."""
    step: str | None
    problem: str
    """Why it failed or waits, in a sentence. Empty: there is no problem."""
    shape: ShapeAnswer
    gpus: tuple[GpuAnswer, ...]
    """The cards that it holds now."""
    image: str
    data: tuple[str, ...] = ()
    """Datasets that it reads, under `/data/NAME`."""
    access: Annotated[str, closed("ssh", "jupyter", "command")]
    command: tuple[str, ...]
    exit_code: int | None
    """The exit code of its command, once that has ended."""
    user_data: UserDataAnswer | None = None
    """The progress of its user-data script. Null: it has none."""
    time_limit_seconds: int | None = None
    stop_at: datetime | None = None
    """When its time limit ends. Null until its first start."""
    delete_when_done: bool = False
    graphics: bool = False
    """Whether it can draw with its GPUs."""
    labels: Mapping[str, str]
    host: str | None
    private_address: str | None
    """In its first network."""
    ssh: SshAnswer | None
    jupyter: JupyterAnswer | None
    simulated: bool
    created_at: datetime
    created_by: str
    running_since: datetime | None
    notice: str = ""
    """What happened to it, such as the loss of its disk. Shown until you acknowledge it."""
    hold: HoldAnswer | None = None
    site: str = ""
    """The site that runs it."""
    rental: RentalAnswer | None = None
    """Null: it is on an own host, or on none."""
    mode: Annotated[str, closed(*get_args(ModeWord))] = "on-demand"
    restart_policy: Annotated[str, closed(*get_args(RestartPolicyWord))] = "same-host"
    doing: str = ""
    """What the current step waits for, as reported by the site."""
    interfaces: tuple[InterfaceAnswer, ...] = ()
    """Empty: it is on a rented machine, or on no host."""
    bid_micros_per_hour: int | None = None
    """What it offers for each GPU. Null: it has no bid on an own host."""
    card_micros_per_hour: int | None = None
    """With a bid: what each GPU costs now, as the last auction decided."""
    leaving_at: datetime | None = None
    """When it stops because others need its GPUs. Null: nobody does."""
    waits_for_cards: bool = False
    """Others took its GPUs. It keeps its disk and starts again when it can."""


class InstancePage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[InstanceAnswer, ...]
    next: str | None
    """The cursor of the next page."""


class LaunchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[InstanceAnswer, ...]
    queued: QueuedAnswer | None = None
    """The launch waits for room. Null: it was launched."""


class LogAnswer(msgspec.Struct, frozen=True, kw_only=True):
    source: LogSource
    text: str
    exit_code: int | None
