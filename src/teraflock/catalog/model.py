"""Cards, other accelerators, slices of cards, and what a name was found to mean.

A figure that is None is not known; a figure that is 0 is known to be absent (no tensor cores, no NVLink).
A GB of memory is 2**30 bytes, as in `base.quantities`.
"""

import msgspec

from teraflock.base.quantities import GIB, MIB


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as an operating system sees it: of a board with two dies, one die."""

    id: str
    name: str
    family: str
    """What a bare name means, such as `V100`: every form and memory size of one product."""
    rank: int
    """Place in the family by how common it is in clouds; 1 is meant where a name leaves the variant open."""
    maker: str
    year: int
    architecture: str
    compute_capability: str = ""
    """CUDA's, such as `7.0`; empty for a card that has no CUDA."""
    form: str = ""
    memory_gb: int | float
    usable_memory_mib: int | None = None
    """What the driver reports in total, before any process runs."""
    memory_type: str
    bandwidth_gbs: float | None = None
    sms: int | None = None
    fp32_tflops: float | None = None
    fp16_tflops: float | None = None
    """Without tensor cores."""
    tf32_tensor_tflops: float | None = None
    fp16_tensor_tflops: float | None = None
    """Dense, accumulating in fp32: half of the headline figure on GeForce cards."""
    bf16: bool
    tdp_watts: float | None = None
    nvlink_gbs: float | None = None
    """To all neighbours together, both directions."""
    note: str = ""
    source: str
    """Where the figures come from, and how far they were checked."""
    usable_source: str

    @property
    def memory_bytes(self) -> int:
        return round(self.memory_gb * GIB)

    @property
    def usable_memory_bytes(self) -> int | None:
        return None if self.usable_memory_mib is None else self.usable_memory_mib * MIB

    @property
    def cuda(self) -> bool:
        return bool(self.compute_capability)

    @property
    def tensor_cores(self) -> bool:
        """Whether it is known to have them, or AMD's matrix cores."""
        return bool(self.fp16_tensor_tflops)


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """A kind that is listed and priced, but for which no estimate can be made."""

    id: str
    name: str
    maker: str
    kind: str
    memory_gb: int | float | None = None
    """Of one chip."""
    count_per_chip: int = 1
    """What the number in a name such as `tpu-v4-8` counts for each chip: 2 where it counts cores."""
    aliases: str = ""
    """Further names, with `|` between them."""
    note: str = ""

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory_gb is None else round(self.memory_gb * GIB)


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a card with memory and multiprocessors of its own (MIG)."""

    family: str
    card_memory_gb: int | float
    profile: str
    """The maker's name of it, such as `1g.10gb`."""
    share: float
    """Of the multiprocessors."""
    memory_gb: int | float
    memory_share: float
    """Of the memory, and of its bandwidth."""
    sms: int | None = None
    """Multiprocessors, where the maker or a machine told; else `share` of the card's."""
    usable_memory_mib: int | None = None
    """What the driver says such a slice has, where that was read off a machine: less than its share."""

    @property
    def memory_bytes(self) -> int:
        return round(self.memory_gb * GIB)


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """Another way to write a family or one card."""

    alias: str
    memory_gb: int | float | None = None
    """If given, the alias holds only where this much memory is listed and the plain name has none such."""
    target: str
    sure: bool
    reason: str


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """The one thing that a catalog's name means: a card, a part of a card, or another accelerator."""

    card: Card | None = None
    accelerator: Accelerator | None = None
    share: float = 1.0
    memory_bytes: int | None = None
    """Of the card, the part or the chip."""
    chips: int = 1
    """How many the name itself stands for: 512 for `tpu-v5p-1024`."""
    inferred: bool = False
    """The name left open which card exactly it is, and the likeliest was taken."""

    @property
    def id(self) -> str:
        named = self.card or self.accelerator
        assert named is not None, "a resolution names a card or an accelerator"
        return named.id
