"""Cards, other accelerators, slices of cards, and the result of looking up a name.

A figure of None is unknown. A figure of 0 means that the card lacks the feature, such as tensor cores or NVLink.
A GB of memory is 2**30 bytes, as in `base.quantities`.
"""

from typing import Final

import msgspec

from teraflock.base.quantities import GIB, MIB

SM_LANES: Final = {
    "Blackwell": 128, "Hopper": 128, "Ada": 128, "Ampere": 128, "Turing": 64, "Volta": 64, "Pascal": 128,
    "Maxwell": 128, "Kepler": 192, "AMD": 64,
}  # fmt: skip
"""fp32 lanes of an SM, by generation."""
CHIP_LANES: Final = {
    "Ampere GA100": 64, "Pascal GP100": 64, "AMD CDNA3 Aqua Vanjaram": 128, "AMD CDNA3": 128, "AMD CDNA4": 128,
    "AMD RDNA3 Navi 31": 128,
}  # fmt: skip
"""The same for architectures that differ from their generation."""


def sm_lanes(architecture: str) -> int:
    """fp32 lanes of an SM."""
    return CHIP_LANES.get(architecture) or SM_LANES[architecture.split()[0]]


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as the operating system sees it. A board with two dies has two."""

    id: str
    name: str
    family: str
    """The name of the product without form and memory size, such as `V100`."""
    rank: int
    """Rank in the family by how common it is in clouds. A name without a variant means rank 1."""
    maker: str
    year: int
    architecture: str
    compute_capability: str = ""
    """CUDA compute capability, such as `7.0`. Empty for a card without CUDA."""
    form: str = ""
    memory_gb: int | float
    usable_memory_mib: int | None = None
    """Total memory that the driver reports before any process runs."""
    memory_type: str
    bandwidth_gbs: float | None = None
    sms: int | None = None
    fp32_tflops: float | None = None
    fp16_tflops: float | None = None
    """Without tensor cores."""
    tf32_tensor_tflops: float | None = None
    fp16_tensor_tflops: float | None = None
    """Dense, with fp32 accumulation. For GeForce cards this is half of the advertised figure."""
    cores: int | None = None
    """CUDA cores, or the lanes that other makers count as cores."""
    fp64_tflops: float | None = None
    """Double precision, for scientific computing. Without tensor cores."""
    fp64_tensor_tflops: float | None = None
    int8_tops: float | None = None
    """Dense 8-bit integer operations, for inference."""
    fp8_tensor_tflops: float | None = None
    """Dense, with fp32 accumulation."""
    bf16: bool
    tdp_watts: float | None = None
    nvlink_gbs: float | None = None
    """Total bandwidth to all other cards, in both directions, over NVLink or AMD's Infinity Fabric (`link_name`)."""
    graphics: bool | None = None
    """Whether the card draws: OpenGL, Vulkan. Compute cards such as the A100 do not."""
    ray_tracing: bool = False
    encoders: int | None = None
    """Hardware video encoders."""
    decoders: int | None = None
    encodes: str = ""
    """Video formats that the encoders write, separated by spaces: `H.264 HEVC AV1`."""
    note: str = ""
    source: str
    """The source of the figures, and how they were checked."""
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
    def link_name(self) -> str:
        return "Infinity Fabric" if self.maker == "AMD" else "NVLink"

    @property
    def tensor_cores(self) -> bool:
        """Whether the card is known to have tensor cores, or AMD's matrix cores."""
        return bool(self.fp16_tensor_tflops)


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator that has offers, but that estimates do not support."""

    id: str
    name: str
    maker: str
    kind: str
    memory_gb: int | float | None = None
    """Memory of one chip."""
    count_per_chip: int = 1
    """By how much one chip raises the number in a name such as `tpu-v4-8`: 2 if the number counts cores."""
    aliases: str = ""
    """Other names, separated by `|`."""
    note: str = ""

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory_gb is None else round(self.memory_gb * GIB)


class CardSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A MIG partition of a card, with its own memory and multiprocessors."""

    family: str
    card_memory_gb: int | float
    profile: str
    """NVIDIA's name of the partition, such as `1g.10gb`."""
    form: str = ""
    """The form of the card, if the slices of this form differ from those of the others."""
    share: float
    """Fraction of the multiprocessors."""
    memory_gb: int | float
    memory_share: float
    """Fraction of the memory and its bandwidth."""
    sms: int | None = None
    """Multiprocessors, if documented or measured. Otherwise `share` of the card's."""
    usable_memory_mib: int | None = None
    """The memory that the driver reports for such a slice, if known. It is less than the slice's share."""

    @property
    def memory_bytes(self) -> int:
        return round(self.memory_gb * GIB)


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """Another name of a family or a card."""

    alias: str
    memory_gb: int | float | None = None
    """If set, the alias applies only to offers with this much memory, if no card of the plain name has it."""
    target: str
    sure: bool
    reason: str


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """What a name in a catalog means: a card, a part of a card, or another accelerator."""

    card: Card | None = None
    accelerator: Accelerator | None = None
    share: float = 1.0
    memory_bytes: int | None = None
    """Memory of the card, the part or the chip."""
    chips: int = 1
    """The number of chips in the name: 512 for `tpu-v5p-1024`."""
    inferred: bool = False
    """Whether the name is ambiguous and the most common card was assumed."""

    @property
    def id(self) -> str:
        named = self.card or self.accelerator
        assert named is not None, "a resolution names a card or an accelerator"
        return named.id
