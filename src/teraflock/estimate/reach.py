"""How much of the rates on its data sheet a card reaches, beside an H200: fitted by `recording/reach.py`.

Every effect is a logarithm, and effects add up. A chip that was measured keeps its whole effect; other chips of
its generation take half of the generation's, since one or two chips say little about the rest.
"""

from collections.abc import Container
from functools import cache
from importlib import resources
from math import exp, log, log2
from typing import Final

import msgspec

from teraflock.catalog.model import Card

GENERATION_SHARE: Final = 0.5


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    base: dict[str, float]
    """By one trait of a card: see `traits`."""
    generations: dict[str, float]
    chips: dict[str, float]


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    matmul: Effects
    """Of fp32 matrix products, against the curve of the H200."""
    convolution: Effects
    """Of 3x3 convolutions without TF32, against `curve`."""
    bandwidth: Effects
    """Of passes over memory, against the curves of the H200."""
    sag: float
    """Clocks fall as this power of the watts a card has per TFLOP, against the usual of its generation."""
    watts: dict[str, float]
    """Generation → usual watts per fp32 TFLOP."""
    curve: list[float]
    """Logarithm of time over arithmetic at the fp32 peak, of a 3x3 convolution without TF32."""
    bounds: list[float]
    share: float
    """Share of the fp32 peak that matrix products reach on an H200: taken for other convolutions without TF32."""


@cache
def fitted() -> Reach:
    data = resources.files("teraflock.estimate").joinpath("data/reach.json").read_bytes()
    return msgspec.json.decode(data, type=Reach)


def factor(effects: Effects, card: Card) -> float:
    generation, _, chip = card.architecture.partition(" ")
    base = effects.base[trait(card, effects.base)]
    if chip in effects.chips:
        return exp(base + effects.chips[chip])
    return exp(base + GENERATION_SHARE * effects.generations.get(generation, 0.0))


NARROW: Final = frozenset({"Volta", "Turing", "Ampere GA100"})
"""Sixteen fp32 lanes to a scheduler, and integers on lanes of their own. All others have 32 or more, and come less
near their peak."""


def traits(card: Card) -> tuple[str, ...]:
    narrow = card.architecture in NARROW or card.architecture.partition(" ")[0] in NARROW
    return (
        "all",
        "HBM" if card.memory_type.startswith("HBM") else "GDDR",
        "narrow" if narrow else "wide",
    )


def trait(card: Card, known: Container[str]) -> str:
    """The one trait that a table goes by."""
    return next(each for each in traits(card) if each in known)


def shortage(card: Card, watts: dict[str, float]) -> float:
    """Logarithm of the watts per TFLOP against the usual; 0 where a card has its fill."""
    usual = watts.get(card.architecture.partition(" ")[0])
    if not usual or not card.tdp_watts or not card.fp32_tflops:
        return 0.0
    return min(0.0, log(card.tdp_watts / card.fp32_tflops / usual))


def shape(dims: tuple[float, ...], intensity: float) -> list[float]:
    """Where a convolution stands on the curve: rows, columns and depth of its matrix product."""
    m, n, k = (log2(max(1.0, each)) / 10 for each in dims[:3])
    i = log2(max(1.0, intensity)) / 10
    return [1.0, m, n, k, m * m, n * n, k * k, i, i * i]


def on_curve(row: list[float], curve: list[float], bounds: list[float]) -> float:
    """Level beyond what was measured."""
    return curve[0] + sum(
        curve[at] * min(max(row[at], bounds[2 * at - 2]), bounds[2 * at - 1]) for at in range(1, len(row))
    )
