"""Pure rules for dividing cards."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from teraflock.base.errors import BadInput, unknown_name
from teraflock.catalog.cards import cards_by_id, slices_of
from teraflock.catalog.model import CardSlice
from teraflock.fleet.model import Gpu, GpuReport, HostState
from teraflock.fleet.slicing.model import Slicing, SlicingState, SlicingView


def address_of(slot: str) -> str:
    """The PCI address of a card. The slot of a slice has its UUID after it."""
    return slot.partition("/")[0]


def profile_of(gpu: str) -> str:
    """The profile of a slice, such as `1g.18gb`. Empty: a whole card."""
    return gpu.partition(":")[2]


def fulfils(slicing: Slicing, cards: Iterable[Gpu | GpuReport]) -> bool:
    """Whether the card is divided as wanted. `cards` may have other cards of the host, too."""
    here = [card for card in cards if address_of(card.slot) == slicing.address]
    return Counter(profile_of(card.gpu) for card in here) == Counter(slicing.profiles or ("",))


def withheld(reports: Sequence[GpuReport], slicings: Iterable[Slicing]) -> tuple[GpuReport, ...]:
    """The reports, in which cards that are about to be divided are not healthy: no instance gets them."""
    closed = {each.address for each in slicings if not each.problem and not fulfils(each, reports)}
    return tuple(
        replace(report, healthy=False) if address_of(report.slot) in closed else report for report in reports
    )


def state_of(view: SlicingView) -> SlicingState:
    if view.slicing.problem:
        return SlicingState.REFUSED
    return SlicingState.DONE if fulfils(view.slicing, view.cards) else SlicingState.WAITING


def may_divide(view: SlicingView) -> bool:
    """Whether the host should divide the card now: nobody holds a part of it, or it lost slices in a reboot.

    In the second case, the host itself waits until no running guest uses the card.
    """
    if view.host_state == HostState.AWAY or state_of(view) != SlicingState.WAITING:
        return False
    here = [card for card in view.cards if address_of(card.slot) == view.slicing.address]
    holders = [card for card in here if card.instance_id is not None]
    return not holders or (bool(view.slicing.profiles) and not any(card.healthy for card in here))


def checked_profiles(gpu: str, profiles: Sequence[str]) -> tuple[str, ...]:
    """The profiles in canonical order. Refuses what the card cannot have."""
    card = cards_by_id().get(gpu)
    known = {each.profile: each for each in slices_of(card)} if card else {}
    if profiles and not known:
        raise BadInput(f"`{gpu}` cannot be divided", hint="MIG works on A30, A100, H100 and newer cards")
    for profile in profiles:
        if profile not in known:
            raise unknown_name("profile", profile, list(known), see=f"`{gpu}` has: {', '.join(known)}")
    parts = [known[profile] for profile in profiles]
    units = max((_units(each) for each in known.values()), default=0)
    if sum(map(_units, parts)) > units or sum(each.memory_share for each in parts) > 1:
        raise BadInput(
            f"{' + '.join(profiles)} is more than one `{gpu}`",
            hint=f"The first numbers add up to {units} at most, and the memory to that of the card",
        )
    return tuple(sorted(profiles))


def _units(part: CardSlice) -> int:
    """`3g.71gb` has three of the card's compute units."""
    return int(part.profile.partition("g.")[0])
