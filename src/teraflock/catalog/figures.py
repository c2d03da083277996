"""Figures of cards by which offers are filtered and sorted: precision rates, cores, graphics, video.

Pure. A card whose figure is unknown passes no filter on it.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from teraflock.base.errors import one_of
from teraflock.catalog.model import Card

Figure = Callable[[Card], float | None]


def best_fp64(card: Card) -> float | None:
    """Double precision with or without tensor cores, whichever is faster."""
    known = [each for each in (card.fp64_tflops, card.fp64_tensor_tflops) if each is not None]
    return max(known, default=None)


def best_fp16(card: Card) -> float | None:
    """Tensor cores, or plain fp16 or fp32 on cards without them."""
    plain = [each for each in (card.fp32_tflops, card.fp16_tflops) if each is not None]
    return card.fp16_tensor_tflops or max(plain, default=None)


FIGURES: Final[dict[str, Figure]] = {
    "fp64": lambda card: card.fp64_tflops,
    "fp16": best_fp16,
    "int8": lambda card: card.int8_tops,
    "fp8": lambda card: card.fp8_tensor_tflops,
}
"""Figures for sort orders such as `price-per-fp64`, in TFLOPS or TOPS of one card."""

CODECS: Final = ("H.264", "HEVC", "AV1")


class CardNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on a card. The default has none."""

    fp64_min: float | None = None
    int8_min: float | None = None
    fp8_min: float | None = None
    cores_min: float | None = None
    graphics: bool = False
    ray_tracing: bool = False
    encodes: str | None = None
    """A video format."""

    def __bool__(self) -> bool:
        return self != CardNeeds()


def codec_named(text: str) -> str:
    """`h264`, `H.265` and `hevc` → the format as the catalog writes it."""
    folded = text.casefold().replace(".", "").replace("h265", "hevc")
    named = {each.casefold().replace(".", ""): each for each in CODECS}
    if folded not in named:
        one_of("video format", text, CODECS)
    return named[folded]


def meets(card: Card, needs: CardNeeds) -> bool:
    return (
        _at_least(best_fp64(card), needs.fp64_min)
        and _at_least(card.int8_tops, needs.int8_min)
        and _at_least(card.fp8_tensor_tflops, needs.fp8_min)
        and _at_least(card.cores, needs.cores_min)
        and (not needs.graphics or card.graphics is True)
        and (not needs.ray_tracing or card.ray_tracing)
        and (needs.encodes is None or needs.encodes in card.encodes.split())
    )


def cards_meeting(needs: CardNeeds, cards: Iterable[Card]) -> tuple[str, ...]:
    return tuple(card.id for card in cards if meets(card, needs))


def _at_least(value: float | None, least: float | None) -> bool:
    return least is None or (value is not None and value >= least)
