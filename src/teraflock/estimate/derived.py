"""Cards made from cards: a MIG slice, a card with its clock locked or its power limited.

Each is a `Card` like any other, with the rates, the bandwidth and the memory that are left, so everything that takes a
card takes these.
"""

from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import all_slices
from teraflock.catalog.model import Card, Slice
from teraflock.estimate.cards import clock_hz

CROSSBAR: Final = 1.28
"""The cache runs on the clock of the SMs: below 0.78 of its boost clock an H200 no longer draws its whole bandwidth."""
RATES: Final = ("fp32_tflops", "fp16_tflops", "tf32_tensor_tflops", "fp16_tensor_tflops")
SLICE_USABLE: Final = 0.97
"""Of its share of the memory, where no machine was asked: a slice of an H100 or A100 that is called 10 GB has 9.5 to
9.75 GiB. Of an H200 the driver says what its slices have, between 0.91 and 1.0 of their share."""
CLOCK_SHARE_MIN: Final = 0.1
WATTS_SHARE_MIN: Final = 0.1


def sliced(card: Card, part: Slice) -> Card:
    """A slice gets its share of the card's power: the other slices may be at work."""
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
    if clock_mhz is not None:
        card = _with_clock(card, clock_mhz)
    return _with_watts(card, watts) if watts is not None else card


def _with_clock(card: Card, clock_mhz: float) -> Card:
    boost = clock_hz(card) / 1e6
    if not CLOCK_SHARE_MIN * boost <= clock_mhz:
        raise BadInput(f"{card.id} cannot be slowed to {clock_mhz:g} MHz: it boosts to {boost:,.0f}")
    share = min(1.0, clock_mhz / boost)
    return replace(
        card,
        **_rates(card, share),
        id=f"{card.id} at {clock_mhz:g} MHz",
        bandwidth_gbs=card.bandwidth_gbs * min(1.0, CROSSBAR * share) if card.bandwidth_gbs else None,
        tdp_watts=card.tdp_watts if share == 1.0 else None,  # slow SMs need less power than there is
    )


def _with_watts(card: Card, watts: float) -> Card:
    if card.tdp_watts is not None and watts < WATTS_SHARE_MIN * card.tdp_watts:
        raise BadInput(f"{card.id} cannot be limited to {watts:g} W: it is made for {card.tdp_watts:g}")
    return replace(card, id=f"{card.id} at {watts:g} W", tdp_watts=min(watts, card.tdp_watts or watts))


def _rates(card: Card, share: float) -> dict[str, float | None]:
    return {each: value * share if (value := getattr(card, each)) else value for each in RATES}
