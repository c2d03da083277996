"""Hosts and their cards on the wire."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from teraflock.wire.instance import LabelKey, LabelValue
from teraflock.wire.word import closed


class HostGpuAnswer(msgspec.Struct, frozen=True, kw_only=True):
    slot: str
    kind: Annotated[str, closed("physical", "mig")]
    gpu: str
    name: str
    memory_bytes: int
    healthy: bool
    free: bool


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    site: str
    name: str
    state: Annotated[str, closed("ready", "draining", "away", "gone")]
    """`gone` is a rented host that was given back, or a joined host that was removed."""
    address: str
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    """The size of the storage pool for the disks of instances."""
    disk_used_bytes: int
    """What is written in the pool. Disks are thin-provisioned, so instances may hold more than this."""
    disk_limits: Literal["hold", "lost", "off"]
    """Whether disk sizes are enforced. `lost`: not now, because the host is recounting what each disk uses."""
    allow_out: tuple[str, ...]
    """Private networks that instances on this host may reach."""
    vcpus_held: int
    ram_bytes_held: int
    disk_bytes_held: int
    gpus: tuple[HostGpuAnswer, ...]
    simulated: bool
    region: str
    labels: Mapping[str, str] = {}
    drain_at: datetime | None = None
    """When instances that may move are moved from the draining host. Null: never."""
    seen_at: datetime
    kind: Annotated[str, closed("own", "rented")] = "own"
    """`rented`: rented for one instance and given back with it. Its name is the id of that instance."""
    type: str = ""
    """The provider's machine type. For rented hosts."""
    zone: str = ""
    remote_id: str = ""
    """The provider's id of the machine. For rented hosts."""
    cost_micros_per_hour: int | None = None
    """What it costs the operator. Null: unknown."""
    cost_currency: str = ""
    gone_at: datetime | None = None


class CardCapacityAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The cards of one model on all own hosts that take new instances."""

    gpu: str
    cards: int
    free: int
    broken: int
    largest: int
    """The most free cards on one host."""
    fits: Mapping[int, int]
    """How many instances with 1, 2, 4, 8 or 16 cards fit, counting cards only."""


class HostCapacityList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[CardCapacityAnswer, ...]


class SlicingRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    profiles: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=20)], ...], msgspec.Meta(max_length=7)]
    """Slices such as `3g.71gb`. Empty: the whole card."""


class SlicingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How a card should be divided."""

    card: str
    """The PCI address."""
    gpu: str
    profiles: tuple[str, ...]
    state: Annotated[str, closed("done", "waiting", "refused")]
    problem: str
    """Why the host refused it."""


class SlicingPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SlicingAnswer, ...]
    next: str | None = None


class HostPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[HostAnswer, ...]
    next: str | None


class HostChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Literal["ready", "draining"] | None = None
    region: str | None = None
    """The region of the host. Prices can differ by region."""
    drain_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """With the state `draining`: when instances that may move are moved to other hosts. Null: never."""
    labels: Annotated[Mapping[LabelKey, LabelValue | None], msgspec.Meta(max_length=64)] | None = None
    """Labels to set. A null removes a label. Launches can ask for labels; `zone` says which hosts are close."""
    allow_out: tuple[str, ...] | None = None
    """All private networks that its instances may reach, such as `192.168.10.0/24`. All others are blocked."""


class HostUpgradeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A joined host that now has the version of the server."""

    host: str
    before: str
    """The version that it had. The same as `version`: nothing was done."""
    version: str


class HostRemovedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was lost with a removed host. Zero for a host that was empty."""

    instances: int
    volumes: int
    volumes_recovered: int
    """Volumes whose copies on other hosts took their place."""


class InvitationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=40)] = ""
    """The name for the host. Empty: its own host name."""
    address: Annotated[str, msgspec.Meta(max_length=60)] = ""
    """The IP address at which the server reaches it. Empty: the one it joins from."""
    trusted_wire: bool = False
    """Whether traffic between this host and others may be unencrypted."""


class InvitationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A token with which one host may join."""

    token: str
    """Shown once, and not stored."""
    server: str
    """Address and port at which hosts join."""
    fingerprint: str
    """SHA-256 of the server's certificate there."""
    expires_at: datetime


class HostCostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an own host costs us from a time on. A later entry counts from its time on, whatever came before."""

    number: int
    host_id: str
    host: str
    starts_at: datetime
    micros_per_hour: int | None
    """Null: the cost was removed; it is not known from then on."""
    currency: str
    recorded_at: datetime


class HostCostPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[HostCostAnswer, ...]
    next: str | None


class HostCostRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    micros_per_hour: Annotated[int, msgspec.Meta(ge=0, le=10**12)] | None
    """Millionths of the currency; null removes the cost."""
    currency: Annotated[str, msgspec.Meta(pattern=r"^([A-Z]{3})?$(?!\n)")] = ""
    """Such as `USD`."""
    starts_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """From when it counts, with its zone; a past day is booked again. Null: from now on."""
