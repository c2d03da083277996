"""Hosts and their cards, as reported and as kept."""

from datetime import datetime
from enum import StrEnum
from typing import NewType

import msgspec

HostId = NewType("HostId", str)


class GpuKind(StrEnum):
    PHYSICAL = "physical"
    """The whole card, passed through by its PCI address."""
    MIG = "mig"
    """A slice with memory and multiprocessors of its own: a kind of card in its own right."""


class GpuReport(msgspec.Struct, frozen=True, kw_only=True):
    """One card, or one slice of a card, as a host reports it."""

    slot: str
    """PCI address; of a MIG slice with its UUID behind: `0000:41:00.0/MIG-…`."""
    kind: GpuKind = GpuKind.PHYSICAL
    gpu: str
    """The catalog's id; for a slice with its profile behind a colon, such as `a100-80:1g.10gb`."""
    name: str
    """As the driver calls it."""
    memory_bytes: int
    healthy: bool = True
    idle: bool = False
    """It does nothing right now. Not said of one that cannot be asked."""


class DiskLimits(StrEnum):
    """Whether a host keeps guests to the size of their disks."""

    HOLD = "hold"
    LOST = "lost"
    """Not at the moment: the host counts anew what each disk holds."""
    OFF = "off"


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """A host as it is right now."""

    name: str
    address: str
    """Where its forwarded ports are reached from outside."""
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    """Of the pool that guests' disks lie in."""
    disk_used_bytes: int = 0
    disk_limits: DiskLimits = DiskLimits.HOLD
    allow_out: tuple[str, ...] = ()
    """Networks besides the internet that its guests reach."""
    gpus: tuple[GpuReport, ...] = ()


class HostKind(StrEnum):
    OWN = "own"
    """It has capacity, and we place instances on it."""
    RENTED = "rented"
    """Made for one instance, and given back with it."""


class HostState(StrEnum):
    READY = "ready"
    DRAINING = "draining"
    """Keeps what it has, gets nothing new."""
    AWAY = "away"
    """Did not answer, twice in a row."""
    GONE = "gone"
    """A rented host that was given back. Its row stays for bills and audits."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A card as kept: its report, and who has it."""

    slot: str
    kind: GpuKind
    gpu: str
    name: str
    memory_bytes: int
    healthy: bool
    instance_id: str | None


class HostCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a host costs us."""

    micros_per_hour: int
    currency: str


class Host(msgspec.Struct, frozen=True, kw_only=True):
    id: HostId
    site: str
    name: str
    state: HostState
    address: str
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    disk_used_bytes: int = 0
    disk_limits: DiskLimits = DiskLimits.HOLD
    allow_out: tuple[str, ...] = ()
    """As the operator wants it; the host is brought to it."""
    simulated: bool
    region: str = "home"
    """Where it stands, for prices: the operator's word, or this one."""
    registered_at: datetime
    seen_at: datetime
    gpus: tuple[Gpu, ...] = ()
    kind: HostKind = HostKind.OWN
    type: str = ""
    """Of a rented host: the provider's machine type."""
    zone: str = ""
    remote_id: str = ""
    """Of a rented host: the provider's id, once it is known."""
    login: str = "root"
    token: str = ""
    """The launch token that was last used to rent it."""
    token_at: datetime | None = None
    made_at: datetime | None = None
    """When the provider said that it exists."""
    gone_at: datetime | None = None
    cost: HostCost | None = None
    vcpus_held: int = 0
    ram_bytes_held: int = 0
    disk_bytes_held: int = 0
    alike: int = 1
    """How many hosts this one stands for, where alike ones are read as one."""


class Idle(msgspec.Struct, frozen=True):
    """Cards that an instance has and does not use."""

    gpus: int
    since: datetime
    """When the last of them was still seen at work, or was first seen at all."""
