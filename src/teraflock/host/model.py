"""Values of an inspection: cards, processors, memory, disks. None means not readable; values are never guessed."""

from collections.abc import Mapping

import msgspec


class Pcie(msgspec.Struct, frozen=True, kw_only=True):
    """The PCIe link of the card. An idle card lowers its generation. A width below the maximum is a fault."""

    generation: int | None
    generation_max: int | None
    width: int | None
    width_max: int | None


class NvLink(msgspec.Struct, frozen=True, kw_only=True):
    """The links to other cards."""

    links: int
    links_active: int
    version: int | None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    healthy: bool
    """Whether new instances may use the card."""
    problems: tuple[str, ...] = ()
    """Why it is unhealthy, in sentences, and warnings for a healthy card."""
    recovery: str | None = None
    """How to repair it, according to the driver: none, reset, reboot …"""
    ecc_uncorrected: int | None = None
    """Uncorrectable memory errors since the driver was loaded."""
    rows_remapped_correctable: int | None = None
    rows_remapped_uncorrectable: int | None = None
    row_remap_pending: bool | None = None
    row_remap_failed: bool | None = None
    pages_retired: int | None = None
    """For cards before Ampere, which retire pages instead of remapping rows."""
    pages_pending: bool | None = None
    xids: tuple[int, ...] | None = None
    """Faults of the card in the kernel log since boot, latest first. None: the log is not readable."""


class HostSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a card in MIG mode, with its own memory and multiprocessors."""

    uuid: str
    name: str
    profile: str
    """For example `1g.18gb`."""
    gpu: str
    """The catalog's id of the card, a colon and the profile."""
    memory_bytes: int
    memory_used_bytes: int | None = None


class HostCard(msgspec.Struct, frozen=True, kw_only=True):
    pci_address: str
    """In the kernel's form: `0000:3b:00.0`."""
    answers: bool
    """Whether the driver lists the card. If not, all following fields are unknown."""
    name: str = ""
    gpu: str = ""
    """The catalog's id. If the card is not in the catalog, an id made from its name."""
    known: bool = False
    """Whether the card is in the catalog."""
    uuid: str = ""
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    compute_capability: str | None = None
    mig: bool | None = None
    """Whether MIG mode is on. None: the card does not support it."""
    mig_pending: bool | None = None
    """MIG mode after the next reset."""
    slices: tuple[HostSlice, ...] = ()
    pcie: Pcie | None = None
    nvlink: NvLink | None = None
    ecc: bool | None = None
    temperature_celsius: int | None = None
    power_watts: float | None = None
    power_watts_max: float | None = None
    utilisation_percent: int | None = None
    memory_utilisation_percent: int | None = None
    health: Health
    unread: Mapping[str, str] = {}
    """Queries that should have an answer but failed, with the driver's message. Unsupported features are left out."""


class Processors(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    sockets: int
    cores: int
    threads: int
    usable: float
    """Threads that this process may use: fewer in a container, or with a CPU affinity."""


class HostMemory(msgspec.Struct, frozen=True, kw_only=True):
    total_bytes: int
    usable_bytes: int
    """The total, or the limit of the container."""
    available_bytes: int


class HostDisk(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    model: str
    size_bytes: int
    rotates: bool


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """The file system that contains a path."""

    path: str
    total_bytes: int
    free_bytes: int


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str
    """The address at which others reach this host; the loopback address if there is no route."""
    kernel: str
    container: str
    """The kind of container that this runs in; empty if none is recognised."""
    driver: str
    """The version of NVIDIA's driver; empty if it does not answer."""
    cuda: str
    """The highest CUDA version that the driver supports."""
    note: str
    """Why there are no cards, or fewer than on the bus. Empty: no problem."""
    cards: tuple[HostCard, ...]
    processors: Processors
    memory: HostMemory
    disks: tuple[HostDisk, ...]
    space: Space
