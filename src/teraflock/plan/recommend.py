"""Recommend cards and offers for a purpose.

Use case → cards with a verdict → the cheapest offer of each card
by the figure that matters for the purpose. For learning: the ladder from free to paid machines.
"""

from collections.abc import Container, Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import BadInput, one_of
from teraflock.base.quantities import Whole, Word, check_between
from teraflock.catalog.cards import all_cards
from teraflock.catalog.purpose import PURPOSES, CardVerdict, Fit, Purpose, verdicts
from teraflock.catalog.retired import retired_on
from teraflock.offer.model import DOUBTFUL_PRICE, Mode, Offer, Query, Sort
from teraflock.offer.rules import measure
from teraflock.offer.service import OfferService
from teraflock.offer.words import OfferWords, query_from

SORT_FOR: Final[dict[Purpose, Sort]] = {
    "training": "price-per-fp16",
    "large-training": "price-per-fp16",
    "inference": "price-per-int8",
    "hpc": "price-per-fp64",
    "rendering": "price-per-tflops",
    "video": "price-per-gpu",
    "learning": "price",
}
ADVICE: Final[dict[Purpose, str]] = {
    "training": "Most training fits a card with tensor cores and 16 to 48 GB, such as A4000, A5000 or A6000. For large"
    " jobs see `large-training`",
    "large-training": "Large jobs need HBM and fast links: the class of V100 and A100 and its successors. P100 is the"
    " oldest card of the class. V100 at on-demand prices is often more than a model needs",
    "inference": "Inference gains most from INT8 or FP8, and from low power. Memory must hold the model and its cache",
    "hpc": "Scientific computing often needs FP64. Most cards compute it at 1/32 or 1/64 of their FP32 speed",
    "rendering": "Rendering needs a card that draws. Compute cards such as A100 and H100 do not",
    "video": "Video needs hardware encoders. Cards since Ada also encode AV1",
    "learning": "Start free and move up when a step no longer suffices. For 5 to 10 hours a month, compare costs with"
    " `tera plan --hours-per-month 10 --disk 50`",
}


class CardOffer(msgspec.Struct, frozen=True):
    """A recommended card with its best offer."""

    verdict: CardVerdict
    offer: Offer
    units: float | None
    """What the price is divided by: TFLOPS, TOPS or GPUs of the whole offer."""


class LadderStep(msgspec.Struct, frozen=True):
    name: str
    advice: str
    offers: tuple[Offer, ...]


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    purpose: Purpose
    advice: str
    cards: tuple[CardOffer, ...]
    steps: tuple[LadderStep, ...] = ()
    avoid: tuple[CardVerdict, ...] = ()
    """Cards that offers exist for, and why not to use them."""


LIMIT: Final = 8
LIMIT_MAX: Final = 100
FITS: Final[tuple[Fit, ...]] = ("first", "suitable")


class RecommendationWords(OfferWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request: a purpose, and filters as for `tera offers`. `sort` and `as_of` do not apply."""

    purpose: Word
    limit: Whole = LIMIT


def recommend(words: RecommendationWords, service: OfferService) -> Recommendation:
    one_of("purpose", words.purpose, PURPOSES)
    check_between("limit", words.limit, 1, LIMIT_MAX)
    if words.sort != "price" or words.as_of is not None:
        raise BadInput("`--sort` and `--as-of` do not apply to recommendations", hint="Leave them out")
    purpose = next(each for each in PURPOSES if each == words.purpose)
    query = replace(query_from(words, service.providers, service.today()), sort=SORT_FOR[purpose])
    known = verdicts((card for card in all_cards() if not query.gpus or card.id in query.gpus), purpose)
    offered = service.offered_gpus()
    avoid = tuple(each for each in known if each.fit == "avoid" and each.card.id in offered)
    is_ladder = purpose == "learning"
    return Recommendation(
        purpose=purpose,
        advice=ADVICE[purpose],
        cards=() if is_ladder else tuple(_ranked(known, query, service, words.limit)),
        steps=_ladder(known, query, service) if is_ladder else (),
        avoid=avoid,
    )


def _ranked(
    known: Iterable[CardVerdict], query: Query, service: OfferService, limit: int
) -> Iterator[CardOffer]:
    """First choices, then suitable cards, each by price per unit."""
    room = limit
    for fit in FITS:
        wanted = {each.card.id: each for each in known if each.fit == fit}
        if wanted and room > 0:
            offers = service.each(replace(query, gpus=tuple(wanted)))
            best = best_by_card(offers, wanted, room)
            room -= len(best)
            yield from (
                CardOffer(wanted[gpu], offer, measure(offer, query.sort)) for gpu, offer in best.items()
            )


def best_by_card(offers: Iterable[Offer], wanted: Container[str], limit: int) -> dict[str, Offer]:
    """Return the first choosable offer of each wanted card, until `limit` cards have one."""
    found: dict[str, Offer] = {}
    for offer in offers:
        if offer.gpu in wanted and offer.gpu not in found and offer.mode != "free" and is_choosable(offer):
            found[offer.gpu] = offer
            if len(found) == limit:
                break
    return found


def is_choosable(offer: Offer) -> bool:
    """Whether an offer is a whole card that still exists, with a price to rely on."""
    return (
        offer.standing == "priced"
        and offer.gpu_share == 1
        and bool(offer.gpu_count)
        and not retired_on(offer.provider, offer.instance_type)
        and not any(flag in offer.flags for flag in DOUBTFUL_PRICE)
    )


LADDER: Final[tuple[tuple[str, Mode | None, str], ...]] = (
    (
        "your own machine",
        None,
        "write and test the script there; `tera estimate MODEL --batch N --gpu NAME` says what fits."
        " Too small for large models",
    ),
    ("free notebook", "free", "good for experiments; it can end at any time and then loses its files"),
    ("preemptible", "spot", "cheap; save checkpoints, because the machine can be taken back at short notice"),
    (
        "on-demand",
        "on-demand",
        "runs until you stop it; its disk can cost money even while the machine is stopped",
    ),
)
OFFERS_PER_STEP: Final = 3


def _ladder(known: Iterable[CardVerdict], query: Query, service: OfferService) -> tuple[LadderStep, ...]:
    """The steps for learners, each with its cheapest offers of different cards."""
    usable = tuple(each.card.id for each in known if each.fit != "avoid")
    steps = []
    for name, mode, advice in LADDER:
        found: tuple[Offer, ...] = ()
        if mode and usable and (not query.modes or mode in query.modes):
            asked = (
                query.gpus if mode == "free" else usable
            )  # free notebooks often do not say which card they have
            offers = service.each(replace(query, gpus=asked, modes=(mode,)))
            found = _cheapest(offers, usable, mode)
        steps.append(LadderStep(name, advice, found))
    return tuple(steps)


def _cheapest(offers: Iterable[Offer], usable: Container[str], mode: Mode) -> tuple[Offer, ...]:
    if mode != "free":
        return tuple(best_by_card(offers, usable, OFFERS_PER_STEP).values())
    free = {(offer.provider, offer.gpu): offer for offer in offers if not offer.gpu or offer.gpu in usable}
    return tuple(free.values())[:OFFERS_PER_STEP]
