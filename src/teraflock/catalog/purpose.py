"""What a card is good for, and why: training, inference, HPC, rendering, video.

Pure. A verdict rests on figures of the catalog, so it can be shown with its reason. The rules follow published advice:
cards with HBM for large training jobs, INT8 and FP8 for inference, FP64 for scientific computing, and no Kepler cards.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from teraflock.catalog.model import Card

Purpose = Literal["training", "large-training", "inference", "hpc", "rendering", "video", "learning"]
Fit = Literal["first", "suitable", "avoid"]
"""First choice, suitable, or to be avoided."""

MEMORY_GB_MIN: Final = 8
LARGE_TENSOR_TFLOPS_MIN: Final = 100.0
HPC_SHARE_MIN: Final = 0.2
"""Cards made for double precision reach a third or half of their FP32 rate; all others at most 1/16."""


class CardVerdict(msgspec.Struct, frozen=True):
    card: Card
    fit: Fit
    reason: str


def verdict(card: Card, purpose: Purpose) -> CardVerdict:
    fit, reason = _RULES[purpose](card)
    return CardVerdict(card, fit, reason)


def good_for(card: Card) -> list[Purpose]:
    """Return the purposes for which the card is a first choice."""
    return [each for each in _RULES if each != "learning" and verdict(card, each).fit == "first"]


def verdicts(cards: Iterable[Card], purpose: Purpose) -> list[CardVerdict]:
    return [verdict(card, purpose) for card in cards]


def _training(card: Card) -> tuple[Fit, str]:
    if card.architecture.startswith("Kepler"):
        return "avoid", "PyTorch 2 does not support it"
    if not card.cuda and not card.tensor_cores:
        return "avoid", "PyTorch has no build for it"
    if card.memory_gb < MEMORY_GB_MIN:
        return "avoid", f"{card.memory_gb:g} GB: too little memory for training"
    if not card.tensor_cores:
        return "suitable", "no tensor cores: mixed precision is no faster"
    runs = "tensor cores" if card.cuda else "matrix cores; needs PyTorch for ROCm"
    return ("first" if card.cuda else "suitable"), f"{runs}, {card.memory_gb:g} GB"


def _large_training(card: Card) -> tuple[Fit, str]:
    fit, reason = _training(card)
    if fit == "avoid":
        return fit, reason
    if not card.memory_type.startswith("HBM"):
        return "avoid", f"{card.memory_type or 'its memory'}: no HBM, better for smaller jobs"
    links = f", {card.nvlink_gbs:g} GB/s {card.link_name}" if card.nvlink_gbs else ""
    text = f"{card.memory_gb:g} GB {card.memory_type} at {card.bandwidth_gbs:g} GB/s{links}"
    is_first = fit == "first" and (card.fp16_tensor_tflops or 0) >= LARGE_TENSOR_TFLOPS_MIN
    return ("first" if is_first else "suitable"), text


def _inference(card: Card) -> tuple[Fit, str]:
    if card.architecture.startswith("Kepler"):
        return "avoid", "PyTorch 2 does not support it"
    if card.int8_tops is None:
        return "suitable", "its INT8 speed is unknown"
    if not card.int8_tops:
        return "avoid", "no fast INT8 or FP8"
    watts = f" at {card.tdp_watts:g} W" if card.tdp_watts else ""
    fp8 = f", FP8 {card.fp8_tensor_tflops:g} TFLOPS" if card.fp8_tensor_tflops else ""
    return ("first" if card.tensor_cores else "suitable"), f"INT8 {card.int8_tops:g} TOPS{fp8}{watts}"


def _hpc(card: Card) -> tuple[Fit, str]:
    if card.fp64_tflops is None or card.fp32_tflops is None:
        return "avoid", "its FP64 speed is unknown"
    tensor = f", {card.fp64_tensor_tflops:g} with tensor cores" if card.fp64_tensor_tflops else ""
    text = f"FP64 {card.fp64_tflops:g} TFLOPS{tensor}"
    if card.fp64_tflops < HPC_SHARE_MIN * card.fp32_tflops:
        return "avoid", f"{text}: slow in double precision"
    return ("suitable" if card.architecture.startswith("Kepler") else "first"), text


def _rendering(card: Card) -> tuple[Fit, str]:
    if not card.graphics:
        return (
            "avoid",
            "made for computing: it does not draw" if card.graphics is False else "not known to draw",
        )
    if card.ray_tracing:
        return "first", f"ray tracing, {card.memory_gb:g} GB"
    return "suitable", f"draws without ray tracing, {card.memory_gb:g} GB"


def _video(card: Card) -> tuple[Fit, str]:
    if not card.encodes:
        return "avoid", "no video encoder"
    count = f"{card.encoders} × " if card.encoders else ""
    return ("first" if "AV1" in card.encodes else "suitable"), f"{count}encoder for {card.encodes}"


_RULES: Final[dict[Purpose, Callable[[Card], tuple[Fit, str]]]] = {
    "training": _training,
    "large-training": _large_training,
    "inference": _inference,
    "hpc": _hpc,
    "rendering": _rendering,
    "video": _video,
    "learning": _training,
}
PURPOSES: Final[tuple[Purpose, ...]] = tuple(_RULES)
