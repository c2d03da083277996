"""Data parallelism: each GPU has its own batch, and gradients are averaged during the backward pass.

Ring all-reduce over NVLink or AMD's Infinity Fabric if the card has it, else over PCIe; between machines over the
network. Not measured: computed from data sheets, with the share of a link's bandwidth that ring all-reduces typically
reach.
"""

from collections.abc import Iterator
from typing import Final

from teraflock.catalog.model import Card

NVLINK_REACH: Final = 0.7
PCIE_REACH: Final = 0.6
NETWORK_REACH: Final = 0.8
MESH_LINKS: Final = 7
"""Links of a GPU in AMD's machines of eight."""
OVERLAP: Final = 0.55
"""Share of a step that can overlap with gradient transfers: most of the backward pass."""
SYNC_SHARE: Final = 0.02


SHARDED: Final = (
    "the memory of sharded jobs was checked with language models under PyTorch's FSDP; their time is computed"
)
TENSOR: Final = (
    "the speed with tensor parallelism is computed, not measured: two all-reduces per layer and pass, without overlap,"
    f" at {NVLINK_REACH:.0%} of NVLink or {PCIE_REACH:.0%} of PCIe bandwidth"
)
LINKS: Final = (
    "the speed of several GPUs is computed, not measured:"
    f" it assumes {NVLINK_REACH:.0%} of NVLink or {PCIE_REACH:.0%} of PCIe bandwidth"
)
COPIES: Final = "each GPU processes batches of its own with a copy of the model; the GPUs exchange nothing"
HOST_BYTES_PER_SECOND: Final = 50e9
"""Memory bandwidth of a host's cores in an optimizer's step. Assumed."""
OFFLOADED: Final = (
    "the speed with `--offload` is computed, not measured: it assumes"
    f" {HOST_BYTES_PER_SECOND / 1e9:.0f} GB/s of host memory bandwidth and {PCIE_REACH:.0%} of PCIe bandwidth"
)


def assumptions(
    *, groups: int, exchanges: bool, tensor_parallel: int, stage: int, offload: bool
) -> Iterator[str]:
    """What an estimate for several GPUs of one machine assumes."""
    if groups > 1:
        yield LINKS if exchanges else COPIES
    if tensor_parallel > 1:
        yield TENSOR
    if stage and groups > 1:
        yield SHARDED
    if offload:
        yield OFFLOADED


def step_seconds(
    seconds: float,
    gradient_bytes: float,
    card: Card,
    gpus: int,
    *,
    network_bytes_per_second: float | None = None,
) -> float:
    """`gpus` is the total. With a network they are in several machines, and the slowest link limits the transfer. In
    inference they exchange nothing and do not wait for each other."""
    if gpus <= 1 or not gradient_bytes:
        return seconds
    link = link_bytes_per_second(card, gpus)
    if network_bytes_per_second is not None:
        link = min(link, network_bytes_per_second * NETWORK_REACH)
    travel = 2 * (gpus - 1) / gpus * gradient_bytes / link
    return seconds * (1 + SYNC_SHARE) + max(0.0, travel - OVERLAP * seconds)


def link_bytes_per_second(card: Card, gpus: int) -> float:
    """What one of `gpus` GPUs can send. NVIDIA's reach each other with their whole bandwidth; AMD's have a link to each
    of the others in a machine of eight."""
    if card.nvlink_gbs:
        used = min(gpus - 1, MESH_LINKS) / MESH_LINKS if card.maker == "AMD" else 1.0
        return card.nvlink_gbs / 2 * 1e9 * NVLINK_REACH * used
    return pcie_bytes_per_second(card)


def pcie_bytes_per_second(card: Card) -> float:
    lanes16 = 64e9 if card.year >= 2022 and card.architecture.startswith(("Hopper", "Blackwell")) else 0.0
    return (lanes16 or (32e9 if card.year >= 2020 else 16e9)) * PCIE_REACH


def offload_seconds(card: Card, gradient_bytes: float, state_bytes: float) -> float:
    """The extra time of a step when the optimizer runs on the host: send gradients, read and write the state, return
    weights. None of it overlaps with the GPU's work."""
    return 2 * gradient_bytes / pcie_bytes_per_second(card) + 2 * state_bytes / HOST_BYTES_PER_SECOND
