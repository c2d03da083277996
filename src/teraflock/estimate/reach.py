"""How much of the rates on its data sheet a card reaches, beside an H200: fitted by `lab/reach.py`.

Every effect is a logarithm, and effects add up. A chip that was measured keeps an effect of its own; all others go by
a trait of theirs that a data sheet tells. What one chip of a generation does says little about the next: the two
Pascal chips that were measured lie further apart than chips of different generations.
"""

import os
from collections.abc import Container, Sequence
from functools import cache
from math import exp, log, log2
from typing import Final

import msgspec

from teraflock.catalog.model import Card

DATA: Final = f"{os.path.dirname(__file__)}/data/reach.json"  # noqa: PTH120 -- loading pathlib costs a cold start 7 ms


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    base: dict[str, float]
    """By one trait of a card: see `traits`."""
    chips: dict[str, float]
    """What a chip that was measured adds to that."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Logarithm of time over arithmetic at the fp32 peak, by the shape of an operation."""

    slopes: list[float]
    bounds: list[float]
    """Least and most of each coordinate but the first, as measured: beyond, the curve goes on level."""

    def at(self, row: list[float]) -> float:
        slopes, bounds = self.slopes, self.bounds
        total = slopes[0]
        for at in range(1, len(row)):
            total += slopes[at] * min(max(row[at], bounds[2 * at - 2]), bounds[2 * at - 1])
        return total


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    matmul: Effects
    """Of fp32 matrix products, against their curve."""
    convolution: Effects
    """Of 3x3 convolutions without TF32, against theirs."""
    bandwidth: Effects
    """Of passes over memory, against the curves of the H200."""
    sag: float
    """Clocks fall as this power of the watts a card has per TFLOP, against the usual of its generation."""
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
"""Sixteen fp32 lanes to a scheduler, and integers on lanes of their own. All others have 32 or more, and come less
near their peak."""


ECC_SHARE: Final = 0.96
"""Error correction kept in GDDR itself takes a sixteenth of it, and bandwidth with it; HBM has bits of its own."""


def traits(card: Card) -> tuple[str, ...]:
    narrow = card.architecture in NARROW or card.architecture.partition(" ")[0] in NARROW
    usable = card.usable_memory_mib or 0
    inline = card.memory_type.startswith("GDDR") and 0 < usable < ECC_SHARE * 1024 * card.memory_gb
    return "all", "inline_ecc" if inline else "free", "narrow" if narrow else "wide"


def trait(card: Card, known: Container[str]) -> str:
    """The one trait that a table goes by."""
    return next(each for each in traits(card) if each in known)


def shortage(card: Card, watts: dict[str, float]) -> float:
    """Logarithm of the watts per TFLOP against the usual; 0 where a card has its fill."""
    usual = watts.get(card.architecture.partition(" ")[0])
    if not usual or not card.tdp_watts or not card.fp32_tflops:
        return 0.0
    return min(0.0, log(card.tdp_watts / card.fp32_tflops / usual))


def shape(dims: Sequence[float], intensity: float) -> list[float]:
    """Where an operation stands on its curve: rows, columns, depth and number of its matrix products."""
    m, n, k, b = (log2(max(1.0, each)) / 10 for each in dims)
    i = log2(max(1.0, intensity)) / 10
    return [1.0, m, n, k, m * m, n * n, k * k, i, i * i, b, float(b > 0)]
