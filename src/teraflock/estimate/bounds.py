"""What limits the time of an operation on a GPU, and so how it changes on another GPU.

We measured an H200 with all of its SMs and with fewer, at full bandwidth (`lab/fit_split.py`). The measurements show
three kinds of operations:

- a single pass over memory takes the larger of the memory time and the SM time;
- convolutions and matrix products run several kernels, so their times above the floor add up;
- a batch norm gives one block to each channel: with few channels, additional SMs are idle.

The model also includes the slowdown of older generations, the effect of a low power limit, and what convolutions take
without tensor cores, measured on an H200 with TF32 off (`lab/fit_plain.py`).
"""

import os
from collections.abc import Mapping
from functools import cache
from math import log2
from typing import Final

import msgspec

from teraflock.estimate.operation import LAST_NORM, Work

DATA: Final = f"{os.path.dirname(__file__)}/data/cards.json"  # noqa: PTH120 -- as in estimate/reach.py

CONVOLUTION: Final = "convolution"
MATMUL: Final = "matmul"
DEPTHWISE: Final = "depthwise"
REST: Final = "rest"
PLAIN: Final = "plain"
CLASSES: Final = (CONVOLUTION, MATMUL, DEPTHWISE, PLAIN, REST)
"""Classes of work that scale differently to other cards. `plain` is fp32 matrix products without tensor cores on cards
of the H200's generation. `estimate/reach.py` has the curves for older ones."""

SINGLE: Final = "pass"
BATCH_NORMS: Final = frozenset(
    f"{maker}_batch_norm{backward}" for maker in ("native", "cudnn") for backward in ("", "_backward")
)
FEW_BLOCKS: Final = ("_foreach", "sum", "cat", "embedding")
"""Sums over columns, concatenations and lists of tensors start few blocks, or many kernels in sequence."""


class CardModel(msgspec.Struct, frozen=True, kw_only=True):
    """The fitted numbers, which `lab/fit_split.py` and `lab/fit_cards.py` write."""

    sm_share: dict[str, float]
    """By kind of operation (`sm_kind`): the share of the time above the floor that shrinks with more SMs."""
    batch_norm: list[float]
    """The same for a batch norm: increase per doubling of its channels, and log2 of the channels at which it is 0."""
    bytes_per_clock: float
    """Bytes that one SM can read and write per cycle."""
    clock: float
    """Exponent of the clock in the speed of the SMs. Below 1, because some of what they wait for has another clock."""
    age: dict[str, float]
    """By class: logarithm of the slowdown per five years of age of a card's generation."""
    power: dict[str, float]
    """By class: exponent of the watts per TFLOP, relative to the generation's usual value, in a card's speed."""
    plain: dict[str, float]
    """By family of convolutions in plain fp32: logarithm of the time relative to the curve in `estimate/reach.py`. The
    curve was fitted on forward passes; families that are not here follow it."""
    grouped: dict[str, list[float]]
    """Grouped convolutions in plain fp32, `f`orward and `b`ackward: logarithm of the time relative to the arithmetic at
    the peak rate, and what each doubling of a group's window adds. A narrow group leaves most lanes idle."""
    doubt: dict[str, list[float]]
    """Kind of evidence → 10th and 90th percentile of the error of a time, as logarithms, down and up."""


@cache
def card_model() -> CardModel:
    with open(DATA, "rb") as file:  # noqa: PTH123
        return msgspec.json.decode(file.read(), type=CardModel)


def work_class(work: Work, *, tf32: bool) -> str:
    if "depthwise" in work.family:
        return DEPTHWISE
    if work.family.startswith("conv"):
        return CONVOLUTION
    if work.family != "matmul":
        return REST
    return PLAIN if work.dtype != "h" and not tf32 else MATMUL


def sm_kind(work: Work) -> str:
    """The key in `CardModel.sm_share` for an operation. `batch_norm` has its own formula."""
    if work.family != "bytes":
        head = work.family.partition(":")[0]
        return head if head in ("convf", "convb", "matmul") and "depthwise" not in work.family else "other"
    if work.name.removesuffix(LAST_NORM) in BATCH_NORMS:
        return "batch_norm"
    if work.name == "native_layer_norm_backward":
        return work.name
    return "lists" if work.name.startswith(FEW_BLOCKS) else SINGLE


def sm_share(work: Work, model: CardModel) -> float:
    return share_at(sm_kind(work), work, model.sm_share, model.batch_norm)


def share_at(kind: str, work: Work, shares: Mapping[str, float], batch_norm: list[float]) -> float:
    if kind != "batch_norm":
        return shares[kind]
    slope, start = batch_norm
    return min(max(slope * (log2(max(1.0, work.dims[2])) - start), 0.0), 0.95)
