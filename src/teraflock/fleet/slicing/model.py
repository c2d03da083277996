"""Values for dividing cards."""

from datetime import datetime
from enum import StrEnum

import msgspec

from teraflock.fleet.model import Gpu, HostId, HostState


class Slicing(msgspec.Struct, frozen=True, kw_only=True):
    """How an operator wants a card to be divided."""

    host_id: HostId
    address: str
    """The PCI address of the card."""
    gpu: str
    """The GPU model of the whole card."""
    profiles: tuple[str, ...]
    """Such as `3g.71gb`, sorted. Empty: the whole card."""
    problem: str = ""
    """Why the host refused it."""
    asked_at: datetime


class SlicingState(StrEnum):
    DONE = "done"
    WAITING = "waiting"
    """Instances hold parts of the card, or its host has not carried it out yet."""
    REFUSED = "refused"


class SlicingView(msgspec.Struct, frozen=True, kw_only=True):
    """A wish with what its card is now."""

    slicing: Slicing
    site: str
    host: str
    host_state: HostState
    cards: tuple[Gpu, ...]
    """The card, or its slices."""
