"""A host as it was found: cards, processors, memory, disks. None is what could not be read, never a guess."""

from collections.abc import Mapping

import msgspec


class Pcie(msgspec.Struct, frozen=True, kw_only=True):
    """The card's way to the processor. An idle card lowers its generation; a width below the most is a fault."""

    generation: int | None
    generation_max: int | None
    width: int | None
    width_max: int | None


class NvLink(msgspec.Struct, frozen=True, kw_only=True):
    """The ways to other cards."""

    links: int
    links_active: int
    version: int | None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    healthy: bool
    """Whether something new may be put on the card."""
    problems: tuple[str, ...] = ()
    """Why not, in sentences; and what should be looked at even if it may."""
    recovery: str | None = None
    """What the driver says would mend it: none, reset, reboot …"""
    ecc_uncorrected: int | None = None
    """Memory errors that could not be corrected, since the driver was loaded."""
    rows_remapped_correctable: int | None = None
    rows_remapped_uncorrectable: int | None = None
    row_remap_pending: bool | None = None
    row_remap_failed: bool | None = None
    pages_retired: int | None = None
    """On cards before Ampere, which retire pages in place of remapping rows."""
    pages_pending: bool | None = None
    xids: tuple[int, ...] | None = None
    """Faults of the card in the kernel's log since the host started, the last first; None: not readable."""


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a card in MIG mode, with memory and multiprocessors of its own."""

    uuid: str
    name: str
    profile: str
    """Such as `1g.18gb`."""
    gpu: str
    """The catalog's id of the card with the profile behind a colon."""
    memory_bytes: int


class Card(msgspec.Struct, frozen=True, kw_only=True):
    pci_address: str
    """As the kernel writes it: `0000:3b:00.0`."""
    answers: bool
    """Whether the driver knows it. One that is only seen on the bus has none of what follows."""
    name: str = ""
    gpu: str = ""
    """The catalog's id; a card it does not know is called after its name."""
    known: bool = False
    """Whether the catalog knows it."""
    uuid: str = ""
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    compute_capability: str | None = None
    mig: bool | None = None
    """Whether it is cut into slices; None: it cannot be."""
    mig_pending: bool | None = None
    """The same after its next reset."""
    slices: tuple[Slice, ...] = ()
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
    """What should have an answer and had none, with the driver's words. What a card does not have is not here."""


class Processors(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    sockets: int
    cores: int
    threads: int
    usable: float
    """Threads this process may use: fewer in a container, or where its affinity is set."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    total_bytes: int
    usable_bytes: int
    """The total, or the limit of the container."""
    available_bytes: int


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    model: str
    size_bytes: int
    rotates: bool


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """The file system that holds a path."""

    path: str
    total_bytes: int
    free_bytes: int


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str
    """From which others would be reached; the loopback where there is no way out."""
    kernel: str
    container: str
    """What kind of container this runs in; empty: none that could be recognised."""
    driver: str
    """The version of NVIDIA's driver; empty: it does not answer."""
    cuda: str
    """The highest version of CUDA that the driver serves."""
    note: str
    """Why there are no cards, or fewer than on the bus; empty: nothing to say."""
    cards: tuple[Card, ...]
    processors: Processors
    memory: Memory
    disks: tuple[Disk, ...]
    space: Space
