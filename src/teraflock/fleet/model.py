"""Hosts and their cards, as an engine reports them and as the database stores them."""

from collections.abc import Mapping, Set
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

import msgspec

HostId = NewType("HostId", str)
HOSTS_MAX: Final = 100_000
"""How many hosts one question about all of them reads."""


class GpuKind(StrEnum):
    PHYSICAL = "physical"
    """The whole card, passed through by its PCI address."""
    MIG = "mig"
    """A slice of a card, with its own memory and multiprocessors. It counts as a card of its own GPU model."""


class GpuReport(msgspec.Struct, frozen=True, kw_only=True):
    """One card, or one slice of a card, as a host reports it."""

    slot: str
    """PCI address. A MIG slice has its UUID after it: `0000:41:00.0/MIG-…`."""
    kind: GpuKind = GpuKind.PHYSICAL
    gpu: str
    """The id of the GPU model in the catalog. A slice has its profile after a colon, such as `a100-80:1g.10gb`."""
    name: str
    """The name that the GPU's own driver reports."""
    memory_bytes: int
    healthy: bool = True
    idle: bool = False
    """It does nothing right now. False if that cannot be measured."""
    near: str = ""
    """Cards with the same text share NVLink or a NUMA node. Empty: unknown."""


class DiskLimits(StrEnum):
    """Whether a host enforces the sizes of guests' disks."""

    HOLD = "hold"
    LOST = "lost"
    """Not at the moment: the host is counting again what each disk contains."""
    OFF = "off"


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """A host as its engine reports it now."""

    name: str
    address: str
    """The address at which its forwarded ports can be reached from outside."""
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    """Size of the pool for guests' disks."""
    disk_used_bytes: int = 0
    disk_limits: DiskLimits = DiskLimits.HOLD
    allow_out: tuple[str, ...] = ()
    """Private networks that its guests can reach, in addition to the internet."""
    gpus: tuple[GpuReport, ...] = ()


class HostKind(StrEnum):
    OWN = "own"
    """Has capacity of its own. Teraflock places instances on it."""
    RENTED = "rented"
    """Rented for one instance, and given back with it."""


class HostState(StrEnum):
    READY = "ready"
    DRAINING = "draining"
    """Keeps its instances, but gets no new ones."""
    AWAY = "away"
    """Two readings in a row did not find it."""
    GONE = "gone"
    """A rented host that was given back, or a joined host that was removed. Its row is kept for bills and audits."""


HOST_MOVES: Final[Mapping[HostState, Set[HostState]]] = {
    HostState.READY: {HostState.DRAINING, HostState.AWAY, HostState.GONE},
    HostState.DRAINING: {HostState.READY, HostState.AWAY, HostState.GONE},
    HostState.AWAY: {HostState.READY, HostState.DRAINING, HostState.GONE},
    HostState.GONE: {HostState.READY},  # joined again
}


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A card in the database: its report, and the instance that holds it."""

    slot: str
    kind: GpuKind
    gpu: str
    name: str
    memory_bytes: int
    healthy: bool
    instance_id: str | None
    near: str = ""


class HostCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a host costs the operator."""

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
    """What the operator wants. A loop sets it on the host."""
    simulated: bool
    region: str = "home"
    """Prices can depend on it. The operator can change it."""
    labels: Mapping[str, str] = {}
    drain_at: datetime | None = None
    """Draining: when instances that may move are moved. None: never."""
    registered_at: datetime
    seen_at: datetime
    gpus: tuple[Gpu, ...] = ()
    kind: HostKind = HostKind.OWN
    type: str = ""
    """The provider's machine type, if it is rented."""
    zone: str = ""
    remote_id: str = ""
    """The provider's id of the machine, once it is known."""
    login: str = "root"
    token: str = ""
    """The launch token that was last used to rent it."""
    token_at: datetime | None = None
    made_at: datetime | None = None
    """When the provider confirmed that it exists."""
    ending_at: datetime | None = None
    """When the provider was last asked to end its machine."""
    gone_at: datetime | None = None
    cost: HostCost | None = None
    vcpus_held: int = 0
    ram_bytes_held: int = 0
    disk_bytes_held: int = 0
    alike: int = 1
    """The number of identical hosts that this one represents."""


class Idle(msgspec.Struct, frozen=True):
    """Cards that an instance holds and does not use."""

    gpus: int
    since: datetime
    """When the last of them was used, or when the instance got it."""
