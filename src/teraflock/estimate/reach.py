"""The share of its data sheet rates that a card reaches, compared to an H200. `lab/reach.py` fits it.

Every effect is a logarithm, and effects add up. A measured chip has its own effect. All others use a trait from their
data sheet. One chip of a generation predicts little about another: the two measured Pascal chips differ more than chips
of different generations.
"""

import os
from collections.abc import Container, Sequence
from functools import cache
from math import exp, inf, log, log2
from typing import Final

import msgspec

from teraflock.catalog.cards import all_cards
from teraflock.catalog.model import Card

DATA: Final = f"{os.path.dirname(__file__)}/data/reach.json"  # noqa: PTH120 -- loading pathlib costs a cold start 7 ms


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    base: dict[str, float]
    """Effect by trait of a card (`traits`)."""
    chips: dict[str, float]
    """Additional effect of a measured chip."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Logarithm of time relative to the arithmetic at the fp32 peak, by the shape of an operation."""

    slopes: list[float]
    bounds: list[float]
    """Measured minimum and maximum of each coordinate except the first. The curve is constant outside."""

    def at(self, row: list[float]) -> float:
        slopes, bounds = self.slopes, self.bounds
        total = slopes[0]
        for at in range(1, len(row)):
            total += slopes[at] * min(max(row[at], bounds[2 * at - 2]), bounds[2 * at - 1])
        return total


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    matmul: Effects
    """fp32 matrix products, relative to their curve."""
    convolution: Effects
    """3x3 convolutions without TF32, relative to their curve."""
    bandwidth: Effects
    """Passes over memory, relative to the curves of the H200."""
    sag: float
    """Exponent of a card's watts per TFLOP, relative to its generation's usual value, in its clock."""
    watts: dict[str, float]
    """Generation → usual watts per fp32 TFLOP."""
    matmul_curve: Curve
    convolution_curve: Curve


@cache
def fitted() -> Reach:
    with open(DATA, "rb") as file:  # noqa: PTH123 -- as below
        return msgspec.json.decode(file.read(), type=Reach)


def factor(effects: Effects, card: Card) -> float:
    _, _, chip = card.architecture.partition(" ")
    return exp(effects.base[trait(card, effects.base)] + effects.chips.get(chip, 0.0))


NARROW: Final = frozenset({"Volta", "Turing", "Ampere GA100"})
"""Chips with 16 fp32 lanes per scheduler and separate integer lanes. All others have 32 or more fp32 lanes and reach a
smaller share of their peak."""


ECC_SHARE: Final = 0.96
"""Error correction stored in GDDR uses a sixteenth of the memory and some bandwidth. HBM has dedicated bits for it."""


def traits(card: Card) -> tuple[str, ...]:
    narrow = card.architecture in NARROW or card.architecture.partition(" ")[0] in NARROW
    usable = card.usable_memory_mib or 0
    inline = card.memory_type.startswith("GDDR") and 0 < usable < ECC_SHARE * 1024 * card.memory_gb
    return "all", "inline_ecc" if inline else "free", "narrow" if narrow else "wide"


def trait(card: Card, known: Container[str]) -> str:
    """The trait of the card that a table has an entry for."""
    return next(each for each in traits(card) if each in known)


DRIVER_WATTS: Final = {"RTX4000": 125.0, "RTX5000": 230.0, "RTX6000": 260.0, "RTX8000": 260.0}
"""Power limits that the driver shows for Quadro cards with Turing chips. Their data sheets give the power of the board,
which has 35 W more for the display that its USB port can feed."""
ASSUMED_WATTS: Final = {"L2": 72.0}
"""NVIDIA has not published the power of the L2. It is assumed to have that of the L4, which has the same memory."""


def power_watts(card: Card) -> float | None:
    """The watts that the chip and its memory may use."""
    limit, rated = DRIVER_WATTS.get(card.id.partition(" ")[0]), card.tdp_watts or ASSUMED_WATTS.get(card.id)
    return min(rated, limit) if rated and limit else rated


def shortage(card: Card, watts: dict[str, float]) -> float:
    """Logarithm of the watts per TFLOP relative to the usual value; 0 if the card has at least that.

    Chips that are always sold with more than their generation's usual value, and AMD's, which have none, are short of
    power below the least that a card with this chip has: an A100 limited to 250 W is as fast as one sold with 250 W.
    """
    usual = max(
        watts.get(card.architecture.partition(" ")[0], 0.0), _least_watts().get(card.architecture, 0.0)
    )
    own = power_watts(card)
    if not usual or not own or not card.fp32_tflops:
        return 0.0
    return min(0.0, log(own / card.fp32_tflops / usual))


@cache
def _least_watts() -> dict[str, float]:
    """Chip → the least watts per TFLOP of a card in the catalog."""
    least: dict[str, float] = {}
    for card in all_cards():
        if (own := power_watts(card)) and card.fp32_tflops:
            least[card.architecture] = min(own / card.fp32_tflops, least.get(card.architecture, inf))
    return least


def shape(dims: Sequence[float], intensity: float) -> list[float]:
    """The position of an operation on its curve: rows, columns, depth and number of its matrix products."""
    m, n, k, b = (log2(max(1.0, each)) / 10 for each in dims)
    i = log2(max(1.0, intensity)) / 10
    return [1.0, m, n, k, m * m, n * n, k * k, i, i * i, b, float(b > 0)]
