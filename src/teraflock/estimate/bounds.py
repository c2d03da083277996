"""What bounds an operation's time on a GPU, and so how it changes on another one.

An H200 was measured with all of its SMs and with fewer of them beside the whole bandwidth (`lab/fit_split.py`).
That tells three kinds of operations apart:

- a single pass over memory takes as long as memory or the SMs do, whichever is more;
- convolutions and matrix products run several kernels, so what they take above their floor adds up;
- a batch norm gives one block to each channel: with few channels, further SMs have nothing to do.

The rest of the model is how much longer older generations take, and what a shortage of power does.
"""

import os
from collections.abc import Mapping
from functools import cache
from math import log2
from typing import Final

import msgspec

from teraflock.estimate.operation import Work

DATA: Final = f"{os.path.dirname(__file__)}/data/cards.json"  # noqa: PTH120 -- as in estimate/reach.py

CONVOLUTION: Final = "convolution"
MATMUL: Final = "matmul"
DEPTHWISE: Final = "depthwise"
REST: Final = "rest"
PLAIN: Final = "plain"
CLASSES: Final = (CONVOLUTION, MATMUL, DEPTHWISE, PLAIN, REST)
"""Kinds of work that differ in how other cards do them. `plain` is fp32 matrix products without tensor cores, on cards
of the H200's generation: for older ones `estimate/reach.py` has curves of their own."""

SINGLE: Final = "pass"


class CardModel(msgspec.Struct, frozen=True, kw_only=True):
    """The fitted numbers: `lab/fit_split.py` and `lab/fit_cards.py` write them."""

    sm_share: dict[str, float]
    """By kind of operation (`sm_kind`): how much of the time above the floor shrinks as SMs are added."""
    batch_norm: list[float]
    """The same of a batch norm: per doubling of its channels, and the doublings at which it is nothing."""
    bytes_per_clock: float
    """What one SM can read and write in a cycle."""
    clock: float
    """The power of the clock by which the SMs are slower: some of what they wait for does not run on it."""
    age: dict[str, float]
    """By class: logarithm of how much longer a card takes per five years of its generation's age."""
    power: dict[str, float]
    """By class: the power of the watts per TFLOP, against the usual of the generation, by which a card is slower."""
    doubt: dict[str, list[float]]
    """Kind of evidence → how far off a time may be, as logarithms, down and up: tenth and ninetieth percentile."""


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
    """By which number of `CardModel.sm_share` an operation goes; `batch_norm` has a line instead."""
    if work.family != "bytes":
        head = work.family.partition(":")[0]
        return head if head in ("convf", "convb", "matmul") and "depthwise" not in work.family else "other"
    if work.name in BATCH_NORMS:
        return "batch_norm"
    if work.name == "native_layer_norm_backward":
        return work.name
    return "lists" if work.name.startswith(FEW_BLOCKS) else SINGLE


BATCH_NORMS: Final = frozenset(
    f"{maker}_batch_norm{backward}" for maker in ("native", "cudnn") for backward in ("", "_backward")
)
FEW_BLOCKS: Final = ("_foreach", "sum", "cat", "embedding")
"""Sums over columns, concatenations and lists of tensors start few blocks, or many kernels one after the other."""


def sm_share(work: Work, model: CardModel) -> float:
    return share_at(sm_kind(work), work, model.sm_share, model.batch_norm)


def share_at(kind: str, work: Work, shares: Mapping[str, float], batch_norm: list[float]) -> float:
    if kind != "batch_norm":
        return shares[kind]
    slope, start = batch_norm
    return min(max(slope * (log2(max(1.0, work.dims[2])) - start), 0.0), 0.95)
