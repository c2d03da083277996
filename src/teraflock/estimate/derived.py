"""Derives cards from cards: a MIG slice, a card with a locked clock or a power limit.

The result is an ordinary `Card` with lower rates, bandwidth and memory, so every function that takes a card accepts it.
"""

from math import inf
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import cards_by_id, slices_of
from teraflock.catalog.model import Card, CardSlice
from teraflock.estimate.cards import clock_hz
from teraflock.estimate.reach import power_watts

CROSSBAR: Final = 1.28
"""The cache uses the clock of the SMs: below 0.78 of its boost clock an H200 cannot use its full bandwidth."""
RATES: Final = ("fp32_tflops", "fp16_tflops", "tf32_tensor_tflops", "fp16_tensor_tflops")
SLICE_USABLE: Final = 0.97
"""Usable part of a slice's memory share, for cards whose slices were not read from a driver. A 10 GB slice of an H100
or A100 has 9.5 to 9.75 GiB. The slices of an H200, as its driver reports them, have 0.91 to 1.0 of their share."""
CLOCK_SHARE_MIN: Final = 0.1
WATTS_SHARE_MIN: Final = 0.1


def sliced(card: Card, part: CardSlice) -> Card:
    """A slice gets its share of the card's power, because the other slices may be busy."""
    whole = card.sms or 0
    sms = min(whole, part.sms or max(1, round(part.share * whole)))
    share = sms / whole if whole else part.share
    usable = card.usable_memory_mib
    share_mib = round(usable * part.memory_share * SLICE_USABLE) if usable else None
    return replace(
        card,
        **_rates(card, share),
        id=f"{card.id} {part.profile}",
        name=f"{card.name}, slice {part.profile}",
        sms=sms or None,
        memory_gb=part.memory_gb,
        usable_memory_mib=part.usable_memory_mib or share_mib,
        bandwidth_gbs=card.bandwidth_gbs * part.memory_share if card.bandwidth_gbs else None,
        tdp_watts=card.tdp_watts * share if card.tdp_watts else None,
        nvlink_gbs=0.0,
    )


def is_slice(card: Card) -> bool:
    return _whole_of(card) is not card


def throttled(card: Card, *, clock_mhz: float | None = None, watts: float | None = None) -> Card:
    """A limit above what the card has changes nothing, not even its name."""
    for name, value in (("clock", clock_mhz), ("power-limit", watts)):
        if value is not None and not 0 < value < inf:
            raise BadInput(f"`--{name}` must be greater than 0, not {value:g}")
    if clock_mhz is not None:
        card = _with_clock(card, clock_mhz)
    return _with_watts(card, watts) if watts is not None else card


def _with_clock(card: Card, clock_mhz: float) -> Card:
    boost = clock_hz(card) / 1e6
    if not CLOCK_SHARE_MIN * boost <= clock_mhz:
        raise BadInput(
            f"A clock of {clock_mhz:g} MHz is too low for {card.id}: its boost clock is {boost:,.0f} MHz"
        )
    share = clock_mhz / boost
    if share >= 1.0:
        return card  # it runs at its boost clock
    return replace(
        card,
        **_rates(card, share),
        id=f"{card.id} at {clock_mhz:g} MHz",
        bandwidth_gbs=card.bandwidth_gbs * min(1.0, CROSSBAR * share) if card.bandwidth_gbs else None,
        tdp_watts=None,  # slower SMs never reach the power limit
    )


def _with_watts(card: Card, watts: float) -> Card:
    """A limit belongs to the whole card: a slice has its share of it."""
    whole = _whole_of(card)
    rated, share = power_watts(whole), 1.0 if whole is card else (card.sms or 1) / (whole.sms or 1)
    if rated is not None and watts < WATTS_SHARE_MIN * rated:
        raise BadInput(
            f"A power limit of {watts:g} W is too low for {whole.id}: its rated power is {rated:g} W"
        )
    if rated is not None and watts >= rated:
        return card
    return replace(card, id=f"{card.id} at {watts:g} W", tdp_watts=watts * share)


def _whole_of(card: Card) -> Card:
    """The card that a slice is a part of. Any other card is whole."""
    name, _, rest = card.id.partition(" ")
    profile = rest.partition(" ")[0]
    whole = cards_by_id().get(name)
    return whole if whole and any(each.profile == profile for each in slices_of(whole)) else card


def _rates(card: Card, share: float) -> dict[str, float | None]:
    return {each: value * share if (value := getattr(card, each)) else value for each in RATES}
