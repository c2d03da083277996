"""A card as the estimate sees it: peaks, how much of them is reached, memory left for PyTorch, evidence.

Only Hopper was measured end to end. How much of its peak an older card reaches comes from public
measurements of single operators (docs/estimate.md); where none exist the estimate says so and widens.
"""

from typing import Final

import msgspec

from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.model import Card
from teraflock.estimate.speed import PEAKS_H200, Peaks

MEASURED_ID: Final = "H200-SXM"


class Generation(msgspec.Struct, frozen=True):
    context_mib: int
    """CUDA context and libraries beside what PyTorch reserves. Measured on Hopper, estimated elsewhere."""
    fp32_reach: float
    bandwidth_reach: float
    tensor_reach: float
    square: float
    """Share of the fp32 peak that 3x3 convolutions reach where there is no TF32; 0 where there is."""
    other: float
    width: float
    """How much wider the interval is than on the H200."""
    evidence: str


_NEVER: Final = "scaled from an H200; this generation was never measured"
GENERATIONS: Final = {
    "Blackwell": Generation(770, 1.0, 0.95, 0.9, 0, 0, 2.2, _NEVER),
    "Hopper": Generation(770, 1.0, 1.0, 1.0, 0, 0, 1.3, "scaled from an H200 of the same generation"),
    "Ada": Generation(560, 1.1, 1.0, 1.1, 0, 0, 1.8, _NEVER),
    "Ampere": Generation(
        520, 1.1, 1.0, 1.15, 0, 0, 1.6, "scaled from an H200; fp32 operators measured on an A100"
    ),
    "Turing": Generation(
        460, 0.95, 0.9, 0.8, 0.85, 0.7, 1.8, "scaled from an H200; fp32 operators measured on a T4"
    ),
    "Volta": Generation(
        460, 1.2, 1.0, 0.95, 1.0, 0.8, 1.7, "scaled from an H200; fp32 operators measured on a V100"
    ),
    "Pascal": Generation(
        400, 1.0, 0.85, 1.0, 0.85, 0.7, 2.0, "scaled from an H200; fp32 operators measured on P100 and P4"
    ),
    "Maxwell": Generation(
        350, 0.95, 0.8, 1.0, 0.8, 0.65, 3.0, "no truth exists for this generation: a wide guess"
    ),
    "Kepler": Generation(
        330,
        0.7,
        0.75,
        1.0,
        0.6,
        0.45,
        3.5,
        "no truth exists for this generation, nor does PyTorch 2 run on it",
    ),
}
POWER_CAPPED_WATTS: Final = 160.0
POWER_REACH: Final = 0.75
"""Cards of 70 to 150 W hold three quarters of their boost clock under load (T4, L4, A10, P4)."""


def generation(card: Card) -> Generation | None:
    """None for a card PyTorch has no CUDA for: its time is not estimated."""
    return GENERATIONS.get(card.architecture.split()[0]) if card.cuda else None


def peaks(card: Card) -> Peaks | None:
    known = generation(card)
    if known is None or not card.bandwidth_gbs or not card.fp32_tflops:
        return None
    if card.id == MEASURED_ID:
        return PEAKS_H200
    watts = card.tdp_watts or 300.0
    sag = POWER_REACH if watts <= POWER_CAPPED_WATTS and (card.year or 0) >= 2016 else 1.0
    fp32 = card.fp32_tflops * 1e12 * sag
    tensor = (card.fp16_tensor_tflops or 0.0) * 1e12 * sag * known.tensor_reach
    plain = (card.fp16_tflops or 0.0) * 1e12 * sag
    # Without tensor cores 16 bits run no faster than 32, and on most Pascal cards far slower: CUDA then widens.
    half = tensor or max(fp32 * known.fp32_reach, plain)
    return Peaks(
        bandwidth=card.bandwidth_gbs * 1e9,
        fp32=fp32,
        tf32=(card.tf32_tensor_tflops or 0.0) * 1e12 * sag * known.tensor_reach,
        half=half,
        sms=card.sms or 1,
        fp32_reach=known.fp32_reach,
        bandwidth_reach=known.bandwidth_reach,
        square=fp32 * known.square,
        other=fp32 * known.other,
    )


def context_bytes(card: Card) -> int:
    known = generation(card)
    return (known.context_mib if known else 500) * MIB


DRIVER_SHARE: Final = 0.9957  # PyTorch sees 143,155 of the H200's 143,771 MiB


def reservable_bytes(card: Card) -> int:
    """What PyTorch may reserve on an otherwise empty card."""
    total = card.usable_memory_bytes or round(0.945 * card.memory_gb * GIB)
    return max(0, round(total * DRIVER_SHARE) - context_bytes(card))


def refuses(card: Card, precision: str) -> str:
    """Why a card cannot run a precision at all; empty where it can."""
    if not card.cuda:
        return "no CUDA: PyTorch does not run here"
    if "bf16" in precision and not card.bf16:
        return f"{card.architecture.split()[0]} has no bf16"
    if precision == "tf32" and not card.tf32_tensor_tflops:
        return f"{card.architecture.split()[0]} has no TF32"
    return ""
