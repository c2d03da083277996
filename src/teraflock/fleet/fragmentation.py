"""How the free cards are spread over the hosts. Pure.

Cards that are free on different hosts cannot serve one instance. So eight free cards can be too few for an instance
with two.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

SIZES: Final = (1, 2, 4, 8, 16)


class CardBlock(msgspec.Struct, frozen=True):
    """Hosts that are alike: so many have so many cards of one model, of which so many are free or broken."""

    gpu: str
    cards: int
    free: int
    broken: int
    hosts: int


class CardCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The cards of one model on all hosts."""

    gpu: str
    cards: int
    free: int
    broken: int
    largest: int
    """The most free cards on one host."""
    fits: Mapping[int, int]
    """How many instances with so many cards fit, counting cards only. For sizes that some host has."""


def capacities(blocks: Iterable[CardBlock]) -> tuple[CardCapacity, ...]:
    by_model: dict[str, list[CardBlock]] = {}
    for block in blocks:
        by_model.setdefault(block.gpu, []).append(block)
    return tuple(_capacity(gpu, by_model[gpu]) for gpu in sorted(by_model))


def _capacity(gpu: str, blocks: list[CardBlock]) -> CardCapacity:
    widest = max(each.cards for each in blocks)
    return CardCapacity(
        gpu=gpu,
        cards=sum(each.cards * each.hosts for each in blocks),
        free=sum(each.free * each.hosts for each in blocks),
        broken=sum(each.broken * each.hosts for each in blocks),
        largest=max(each.free for each in blocks),
        fits={
            size: sum(each.free // size * each.hosts for each in blocks) for size in SIZES if size <= widest
        },
    )
