"""A recommendation as JSON, for `tera recommend --json` and `POST /v1/recommendations`."""

from datetime import date

import msgspec

from teraflock.base.exchange import Rates
from teraflock.base.money import MICROS
from teraflock.offer.rules import price_in
from teraflock.plan.recommend import SORT_FOR, CardOffer, LadderStep, Recommendation, RecommendationWords
from teraflock.wire.offer import OfferShape, shape_offer


class RecommendationRequest(RecommendationWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a recommendation. Fields have the names of the options of `tera recommend`."""


class CardOfferShape(msgspec.Struct, frozen=True, kw_only=True):
    gpu: str
    fit: str
    """`first` for a first choice, or `suitable`."""
    reason: str
    price_per_unit: float | None
    """Price of one unit of `unit`, in the currency and period of the offer."""
    offer: OfferShape


class LadderStepShape(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    advice: str
    offers: tuple[OfferShape, ...]


class AvoidedShape(msgspec.Struct, frozen=True):
    gpu: str
    reason: str


class RecommendationShape(msgspec.Struct, frozen=True, kw_only=True):
    purpose: str
    advice: str
    unit: str
    """What the cards are ranked by, such as `price-per-fp16`."""
    cards: tuple[CardOfferShape, ...]
    steps: tuple[LadderStepShape, ...]
    """For `learning`: from free to paid machines."""
    avoid: tuple[AvoidedShape, ...]


class ShownTerms(msgspec.Struct, frozen=True):
    """How prices are shown."""

    currency: str
    rates: Rates
    on: date


def shape_recommendation(found: Recommendation, terms: ShownTerms) -> RecommendationShape:
    return RecommendationShape(
        purpose=found.purpose,
        advice=found.advice,
        unit=SORT_FOR[found.purpose],
        cards=tuple(_card(each, terms) for each in found.cards),
        steps=tuple(_step(each, terms) for each in found.steps),
        avoid=tuple(AvoidedShape(each.card.id, each.reason) for each in found.avoid),
    )


def _card(each: CardOffer, terms: ShownTerms) -> CardOfferShape:
    micros = price_in(each.offer, terms.currency, terms.rates, terms.on)
    return CardOfferShape(
        gpu=each.verdict.card.id,
        fit=each.verdict.fit,
        reason=each.verdict.reason,
        price_per_unit=micros / MICROS / each.units if micros is not None and each.units else None,
        offer=shape_offer(each.offer, currency=terms.currency, per="hour", rates=terms.rates, on=terms.on),
    )


def _step(each: LadderStep, terms: ShownTerms) -> LadderStepShape:
    return LadderStepShape(
        step=each.name,
        advice=each.advice,
        offers=tuple(
            shape_offer(offer, currency=terms.currency, per="hour", rates=terms.rates, on=terms.on)
            for offer in each.offers
        ),
    )
