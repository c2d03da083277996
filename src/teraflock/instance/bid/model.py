"""Values of the auction for idle cards: bidders, demands, results, and the published history."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from teraflock.base.size import Size
from teraflock.fleet.placement import PlaceTerms
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId


class Bidder(msgspec.Struct, frozen=True, kw_only=True):
    """One preemptible instance, or a queued launch with a bid, at one host."""

    id: str
    need: Size
    """What it needs of the host in order to run. Without a disk if it has one there."""
    bid: int
    """Micros per card and hour. Spot bids the floor."""
    since: datetime
    """The earlier of two equal bids wins."""
    pays: bool = True
    """Whether the auction sets its price. False: spot, which pays the spot price."""
    runs: bool = False
    """It holds what it needs now."""
    is_firm: bool = False
    """It began to run a short while ago: other bids cannot displace it yet, instances on demand can."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """A queued launch that may take the cards of preemptible instances."""

    id: str
    need: Size
    instances: int
    terms: PlaceTerms
    since: datetime
    bid: int | None = None
    """None: on demand, which comes before every bid."""


class CardClaim(msgspec.Struct, frozen=True):
    """What a queued launch on demand wants of one host."""

    queued_id: str
    need: Size


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What the demands want of one host."""

    claims: tuple[CardClaim, ...] = ()
    queued: tuple[Bidder, ...] = ()
    """Queued launches with a bid that would run there, or that lose there."""


class BidResult(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs on one host."""

    winners: frozenset[str] = frozenset()
    prices: dict[str, int] = {}
    """What each card of a winner with a bid costs per hour, in micros."""


class AuctionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A bidder in a stored result."""

    id: str
    bid: int
    won: bool
    price: int | None = None
    """None: it lost, or it pays the spot price."""
    is_firm: bool = False
    gpus: int
    vcpus: int
    ram_bytes: int


class Auction(msgspec.Struct, frozen=True, kw_only=True):
    """The result for the cards of one model in one host. It applies until the next result."""

    id: str
    at: datetime
    host_id: str
    region: str
    gpu: str
    currency: str
    floor_micros: int
    price_micros: int
    """The highest losing bid that counts, or the floor."""
    entries: tuple[AuctionEntry, ...] = ()


class AuctionPrice(msgspec.Struct, frozen=True, kw_only=True):
    """What is published of a result: no host, no bidders."""

    id: str
    at: datetime
    region: str
    gpu: str
    currency: str
    floor_micros: int
    price_micros: int


class CardWish(msgspec.Struct, frozen=True):
    """A launch that is not written yet."""

    need: Size
    instances: int
    bid: int | None
    """None: on demand."""


class CardPrices(Protocol):
    """The least that a bid must offer. Billing provides it: instances do not know about prices."""

    @property
    def currency(self) -> str:
        """Of all bids. It never changes."""
        ...

    def floor(self, gpu: str, host_id: str, region: str) -> int:
        """Micros per card and hour."""
        ...

    def affords(self, project_id: ProjectId, wishes: Sequence[CardWish]) -> bool:
        """Whether a project can pay for all these launches. Who cannot takes no cards from others."""
        ...


class FreeCards(msgspec.Struct, frozen=True):
    """Without a price book, every bid is enough."""

    currency: str = "USD"

    def floor(self, gpu: str, host_id: str, region: str) -> int:
        return 0

    def affords(self, project_id: ProjectId, wishes: Sequence[CardWish]) -> bool:
        return True


ReadPrices = Callable[[Transaction, datetime], CardPrices]


def no_prices(tx: Transaction, now: datetime) -> CardPrices:
    return FreeCards()
