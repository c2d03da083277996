"""What an estimate knows about a card: its peaks, the share of them it reaches, memory for PyTorch, evidence.

We measured only the H200. The shares of peak fp32 rate and bandwidth that other cards reach are fitted on measurements
of single operators (`estimate/reach.py`). The slowdowns of older generations and of cards with little power are fitted
on whole steps from public tables (`estimate/bounds.py`).
"""

from functools import cache
from math import exp
from typing import Final

import msgspec

from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.cards import all_cards
from teraflock.catalog.model import Card, sm_lanes
from teraflock.estimate.bounds import (
    CLASSES,
    CONVOLUTION,
    DEPTHWISE,
    MATMUL,
    PLAIN,
    REST,
    CardModel,
    card_model,
)
from teraflock.estimate.reach import Reach, factor, fitted, shortage
from teraflock.estimate.speed import CLOCK_H200, PEAKS_H200, Peaks

MEASURED_ID: Final = "H200-SXM"
TWO_DIES: Final = frozenset({"Blackwell GB100", "Blackwell Ultra"})
"""Chips made of two dies, each with half of the cache and the memory."""
DIES_SLOWER: Final = {CONVOLUTION: 1.15, REST: 1.15}
"""Set by hand after one public figure: a B200 trains ResNet-50 under autocast as fast as an H200, although it has more
SMs and bandwidth. Data on the other die takes longer to reach, and libraries were tuned for one die."""
ROCM_SLOWER: Final = 1.3
"""Assumed: MIOpen and hipBLAS reach less of the data sheet than cuDNN and cuBLAS."""
LABEL_SHARE: Final = 0.97


class Generation(msgspec.Struct, frozen=True):
    context_mib: int
    """CUDA context and libraries, which PyTorch does not count as reserved. Measured on Hopper, otherwise assumed."""
    year: int
    steps: bool = True
    """Whether the fit included whole steps on a card of this generation."""


GENERATIONS: Final = {
    "Blackwell": Generation(770, 2025),
    "Hopper": Generation(770, 2022),
    "Ada": Generation(560, 2022),
    "Ampere": Generation(520, 2020),
    "Turing": Generation(460, 2018),
    "Volta": Generation(460, 2017),
    "Pascal": Generation(400, 2016),
    "Maxwell": Generation(350, 2014, steps=False),
    "Kepler": Generation(330, 2012),
    "AMD": Generation(900, 2018, steps=False),
}
YEAR_NOW: Final = 2025
AGE_MAX: Final = 1.4
"""In units of five years. In cross-validation, Pascal and Kepler were no slower for their age than Turing."""


def is_rocm(card: Card) -> bool:
    """Whether PyTorch's ROCm builds support the card: Instinct cards since the MI50, and Radeon cards with RDNA3."""
    return card.architecture.startswith(("AMD CDNA", "AMD GCN5 Vega 20", "AMD RDNA3"))


def generation(card: Card) -> Generation | None:
    """None for a card that PyTorch does not support."""
    return GENERATIONS.get(card.architecture.split()[0]) if card.cuda or is_rocm(card) else None


def age(card: Card) -> float:
    """Age of the card's generation in units of five years; 0 for Hopper, whose kernels were measured."""
    known = generation(card)
    if card.architecture.startswith("Hopper"):
        return 0.0
    return min(AGE_MAX, (YEAR_NOW - known.year) / 5) if known else AGE_MAX


def clock_hz(card: Card) -> float:
    """The boost clock: the fp32 rate of the data sheet divided by the lanes."""
    known = generation(card)
    if known is None or not card.sms or not card.fp32_tflops:
        return CLOCK_H200
    return card.fp32_tflops * 1e12 / (2 * card.sms * sm_lanes(card.architecture))


def peaks(card: Card, reach: Reach | None = None, model: CardModel | None = None) -> Peaks | None:
    """`reach` and `model` replace the fitted values to evaluate a fit that has not seen the card."""
    known = generation(card)
    if known is None or not card.bandwidth_gbs or not card.fp32_tflops:
        return None
    if card.id == MEASURED_ID:
        return PEAKS_H200
    reach, model = reach or fitted(), model or card_model()
    short = shortage(card, reach.watts)
    same = card.architecture.startswith("Hopper") or card.architecture in TWO_DIES
    # These run fp32 as the H200 does. The curves of `estimate/reach.py` are of older cards, which reach less.
    fp32 = card.fp32_tflops * 1e12 * (1.0 if same else exp(reach.sag * short))
    old = age(card)
    slower = {each: exp(old * model.age[each] - short * model.power[each]) for each in CLASSES}
    fp32_reach = 1.0 if same else factor(reach.matmul, card)
    if is_rocm(card):
        slower = {each: value * ROCM_SLOWER for each, value in slower.items()}
    if card.architecture in TWO_DIES:
        slower = {each: value * DIES_SLOWER.get(each, 1.0) for each, value in slower.items()}
    half = (card.fp16_tensor_tflops or 0.0) * 1e12
    return Peaks(
        bandwidth=card.bandwidth_gbs * 1e9,
        fp32=fp32,
        tf32=(card.tf32_tensor_tflops or 0.0) * 1e12,
        half=half,
        half_unhalved=max(half, _unhalved(card)),
        sms=card.sms or _likely_sms(card),
        fp32_reach=fp32_reach,
        bandwidth_reach=factor(reach.bandwidth, card),
        square=0.0 if same else fp32 * factor(reach.convolution, card),
        clock=clock_hz(card),
        convolution=slower[CONVOLUTION],
        matmul=slower[MATMUL],
        depthwise=slower[DEPTHWISE],
        plain=slower[PLAIN],
        rest=slower[REST],
    )


FULL_TENSOR: Final = {"Turing": 8.0, "Ampere": 4.0, "Hopper": 14.7, "Ada": 4.0, "Blackwell": 4.0}
"""16-bit tensor rate relative to the fp32 rate, for the least of a generation's chips at their full rate. Makers sell
chips with less: GeForce cards have half of it with fp32 accumulation, and the H20 a quarter."""


def _unhalved(card: Card) -> float:
    """The 16-bit tensor rate that the chip of a card has at its full rate, per second. 0 without tensor cores."""
    if not card.fp16_tensor_tflops or is_rocm(card):
        return 0.0
    return FULL_TENSOR.get(card.architecture.split()[0], 0.0) * (card.fp32_tflops or 0.0) * 1e12


@cache
def known_peaks(card: Card) -> Peaks | None:
    """`peaks` with the fitted values, cached per card."""
    return peaks(card)


def _likely_sms(card: Card) -> int:
    """The SMs of a card without a published number, from its fp32 rate at the H200's clock."""
    return max(1, round((card.fp32_tflops or 0.0) * 1e12 / (2 * sm_lanes(card.architecture) * CLOCK_H200)))


FITTED_CARDS: Final = frozenset(
    [
        "A100-PCIe-80",
        "A100-SXM4-40",
        "A4500",
        "A6000",
        "GTX1080",
        "H100-PCIe",
        "K80",
        "RTX3080",
        "RTX5090",
        "RTX6000",
        "RTX6000Ada",
        "RTX8000",
        "TitanRTX",
        "TitanV",
        "TitanXp",
    ]
)
"""Cards whose whole steps `lab/fit_cards.py` uses."""


def evidence_kind(card: Card) -> str:
    """The kind of evidence for a card: a key of `CardModel.doubt`, or `measured`."""
    known = generation(card)
    if card.id == MEASURED_ID:
        return "measured"
    if card.id.startswith(f"{MEASURED_ID} "):
        return "same"
    if card.id in FITTED_CARDS:
        return "fitted"
    if is_rocm(card):
        return "rocm"
    return "seen" if known and known.steps else "never"


EVIDENCE: Final = {
    "measured": "measured on this card: curves fitted on some runs and tested on others",
    "same": "typical error 7 %: scaled from a whole H200 by a model tested with fewer SMs, lower clocks, less power",
    "fitted": "typical error 7 %: scaled from an H200 by a model fitted on 15 cards, including this one",
    "seen": "typical error 8 %: scaled from an H200 by a model tested on 15 other cards",
    "never": "rough estimate: scaled from an H200; no card of this generation was tested",
    "rocm": "very rough estimate: computed from the data sheet; PyTorch for ROCm was not measured",
}
TOO_OLD: Final = "; PyTorch 2 does not support it"


@cache
def evidence(card: Card) -> str:
    return EVIDENCE[evidence_kind(card)] + (TOO_OLD if card.architecture.startswith("Kepler") else "")


@cache
def doubt(card: Card) -> list[float]:
    """Extra uncertainty of the GPU time compared to the H200, as logarithms, down and up."""
    return card_model().doubt.get(evidence_kind(card), [0.0, 0.0])


def context_bytes(card: Card) -> int:
    known = generation(card)
    return (known.context_mib if known else 500) * MIB


USABLE_SHARE: Final = 0.974
"""The part of a card's memory that its driver reports, if the catalog does not say: the least among cards that do not
store error correction in it (`reach.ECC_SHARE`). The catalog has the figures of those that do."""
DRIVER_SHARE: Final = 0.9957  # PyTorch sees 143,155 of the H200's 143,771 MiB


@cache
def reservable_bytes(card: Card) -> int:
    """What PyTorch may reserve on an otherwise empty card."""
    total = card.usable_memory_bytes or round(USABLE_SHARE * card.memory_gb * GIB)
    return max(0, round(total * DRIVER_SHARE) - context_bytes(card))


def reservable_of_label(label_bytes: int) -> int:
    """What PyTorch may reserve on a card with this advertised memory: the median of such cards in the catalog."""
    alike = sorted(
        reservable_bytes(card)
        for card in all_cards()
        if card.cuda and card.usable_memory_mib and card.memory_bytes == label_bytes
    )
    usual = round(LABEL_SHARE * label_bytes) - GENERATIONS["Ampere"].context_mib * MIB
    return alike[(len(alike) - 1) // 2] if alike else max(0, usual)


def unsupported(card: Card) -> str:
    """Why there is no estimate for a card; empty if there is one."""
    if card.cuda or is_rocm(card):
        return ""
    return f"estimates do not support {card.architecture}, only CUDA and ROCm"


def refuses(card: Card, precision: str) -> str:
    """Why a card cannot run a precision; empty if it can."""
    if why := unsupported(card):
        return why
    if "bf16" in precision and not card.bf16:
        return f"{_lineage(card)} does not support bf16"
    if precision == "fp8" and not card.fp8_tensor_tflops:
        return _without_rate(card, "fp8_tensor_tflops", "FP8")
    if precision == "tf32" and not card.tf32_tensor_tflops:
        return _without_rate(card, "tf32_tensor_tflops", "TF32")
    return ""


def _without_rate(card: Card, rate: str, name: str) -> str:
    """Whether the generation of a card lacks these tensor cores, or only the catalog lacks the card's rate."""
    if any(getattr(each, rate) for each in all_cards() if _lineage(each) == _lineage(card)):
        return f"the {name} rate of {card.name} is unknown"
    return f"{_lineage(card)} has no {name} {'matrix' if is_rocm(card) else 'tensor'} cores"


def _lineage(card: Card) -> str:
    """The name of a generation of chips: `Turing`, or `AMD CDNA2`, as AMD's chips differ more between each other."""
    words = card.architecture.split()
    return " ".join(words[:2]) if words[:1] == ["AMD"] else words[0]
