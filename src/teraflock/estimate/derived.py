"""Derives cards from cards: a MIG slice, a card with a locked clock or a power limit.

The result is an ordinary `Card` with lower rates, bandwidth and memory, so every function that takes a card accepts it.
"""

from math import inf
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import all_slices
from teraflock.catalog.model import Card, CardSlice
from teraflock.estimate.cards import clock_hz

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
    return card.id.partition(" ")[2] in {each.profile for each in all_slices()}


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
    if card.tdp_watts is not None and watts < WATTS_SHARE_MIN * card.tdp_watts:
        raise BadInput(
            f"A power limit of {watts:g} W is too low for {card.id}: its rated power is {card.tdp_watts:g} W"
        )
    if card.tdp_watts is not None and watts >= card.tdp_watts:
        return card
    return replace(card, id=f"{card.id} at {watts:g} W", tdp_watts=watts)


def _rates(card: Card, share: float) -> dict[str, float | None]:
    return {each: value * share if (value := getattr(card, each)) else value for each in RATES}
