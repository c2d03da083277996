"""A card as the estimate sees it: peaks, how much of them is reached, memory left for PyTorch, evidence.

Only Hopper was measured end to end. How much of its fp32 peak and of its bandwidth another card reaches is fitted
on measurements of single operators (`estimate/reach.py`); what tensor cores reach was set by hand, from data
sheets, and where nothing was measured the estimate says so and widens.
"""

from math import exp
from typing import Final

import msgspec

from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.model import Card
from teraflock.estimate.reach import Reach, factor, fitted, shortage
from teraflock.estimate.speed import PEAKS_H200, Peaks

MEASURED_ID: Final = "H200-SXM"


class Generation(msgspec.Struct, frozen=True):
    context_mib: int
    """CUDA context and libraries beside what PyTorch reserves. Measured on Hopper, estimated elsewhere."""
    tensor_reach: float
    """Share of the peak that tensor cores reach, against the H200's: set by hand, never measured."""
    width: float
    """How much wider the interval is than on the H200."""
    evidence: str


_NEVER: Final = "scaled from an H200; this generation was never measured"
_OPERATORS: Final = "scaled from an H200; fp32 operators measured on "
GENERATIONS: Final = {
    "Blackwell": Generation(770, 0.9, 2.2, _NEVER),
    "Hopper": Generation(770, 1.0, 1.3, "scaled from an H200 of the same generation"),
    "Ada": Generation(560, 1.1, 1.8, _NEVER),
    "Ampere": Generation(520, 1.15, 1.6, _OPERATORS + "an A100"),
    "Turing": Generation(460, 0.8, 1.8, _OPERATORS + "a T4"),
    "Volta": Generation(460, 0.95, 1.7, _OPERATORS + "a V100"),
    "Pascal": Generation(400, 1.0, 2.0, _OPERATORS + "P100 and P4"),
    "Maxwell": Generation(350, 1.0, 3.0, "no truth exists for this generation: a wide guess"),
    "Kepler": Generation(330, 1.0, 3.5, "no truth exists for this generation, nor does PyTorch 2 run on it"),
}


def generation(card: Card) -> Generation | None:
    """None for a card PyTorch has no CUDA for: its time is not estimated."""
    return GENERATIONS.get(card.architecture.split()[0]) if card.cuda else None


def peaks(card: Card, reach: Reach | None = None) -> Peaks | None:
    """`reach` in place of the fitted one is for judging a fit that has not seen the card."""
    known = generation(card)
    if known is None or not card.bandwidth_gbs or not card.fp32_tflops:
        return None
    if card.id == MEASURED_ID:
        return PEAKS_H200
    reach = reach or fitted()
    sag = exp(reach.sag * shortage(card, reach.watts))
    fp32 = card.fp32_tflops * 1e12 * sag
    same = card.architecture.startswith("Hopper")  # runs the H200's own kernels, and goes by its curves
    fp32_reach = 1.0 if same else factor(reach.matmul, card)
    tensor = (card.fp16_tensor_tflops or 0.0) * 1e12 * sag * known.tensor_reach
    plain = (card.fp16_tflops or 0.0) * 1e12 * sag
    # Without tensor cores 16 bits run no faster than 32, and on most Pascal cards far slower: CUDA then widens.
    half = tensor or max(fp32 * fp32_reach, plain)
    return Peaks(
        bandwidth=card.bandwidth_gbs * 1e9,
        fp32=fp32,
        tf32=(card.tf32_tensor_tflops or 0.0) * 1e12 * sag * known.tensor_reach,
        half=half,
        sms=card.sms or 1,
        fp32_reach=fp32_reach,
        bandwidth_reach=factor(reach.bandwidth, card),
        square=0.0 if same else fp32 * factor(reach.convolution, card),
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
