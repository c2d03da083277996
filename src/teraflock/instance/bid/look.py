"""Reads one host or all of them, and computes what an auction changes there. Writes nothing."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import QuotaReached
from teraflock.base.ids import new_id
from teraflock.base.size import Size
from teraflock.fleet import store as fleet
from teraflock.fleet.model import HostState
from teraflock.fleet.placement import Policy
from teraflock.fleet.room import Room
from teraflock.instance.bid import rules, store
from teraflock.instance.bid.model import (
    Auction,
    AuctionEntry,
    Bidder,
    BidResult,
    CardPrices,
    CardWish,
    Demand,
    Share,
)
from teraflock.instance.claims import check_quota_of_several
from teraflock.instance.model import Instance
from teraflock.instance.queue import store as queue
from teraflock.instance.queue.model import Waiting
from teraflock.storage.database import Transaction
from teraflock.tenant.project.store import project_of_any_organisation


class HostTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What an auction changes on one host."""

    changes: tuple[tuple[Instance, Instance, str], ...] = ()
    """Before, after, and the kind of an additional event."""
    auctions: tuple[Auction, ...] = ()
    """Results that differ from those that apply now."""
    returns: tuple[Instance, ...] = ()
    """Waiting instances that can start."""


class BidLook:
    """The hosts with preemptible instances."""

    def __init__(self, tx: Transaction, policy: Policy, prices: CardPrices, now: datetime) -> None:
        self._prices, self._now = prices, now
        self.instances: dict[str, list[Instance]] = {}
        for each in store.preemptible_in_all_projects(tx):
            self.instances.setdefault(str(each.host_id), []).append(each)
        self.rooms = fleet.rooms_to_divide(tx, policy) if self.instances else []
        self.bidders = {
            str(room.host_id): self._bidders(room, self.instances.get(str(room.host_id), ()))
            for room in self.rooms
        }

    def _bidders(self, room: Room, instances: Iterable[Instance]) -> list[Bidder]:
        return bidders(room, instances, self._prices, self._now)

    def shares(self, demands: Sequence[Demand]) -> dict[str, Share]:
        """What queued launches want of each host."""
        gpus = {each.need.gpu for found in self.bidders.values() for each in found}
        gpus |= {each.need.gpu for each in demands}
        floors = {str(room.host_id): floors_of(room, gpus, self._prices) for room in self.rooms}
        return rules.shares(self.rooms, self.bidders, demands, floors)

    def takes(self, demand: Demand) -> bool:
        """Whether a launch that finds no free room can take cards from others."""
        gpus = {demand.need.gpu, *(each.need.gpu for found in self.bidders.values() for each in found)}
        shares = self.shares([demand])
        for room in self.rooms:
            share = shares[room.host_id]
            floors = floors_of(room, gpus, self._prices)
            result = (
                rules.outcome(room, self.bidders[room.host_id], share, floors)
                if share.queued
                else BidResult()
            )
            if share.claims or demand.id in result.winners:
                return True
        return False


def demands_of(
    tx: Transaction, waiting: Iterable[Waiting], prices: CardPrices, now: datetime
) -> list[Demand]:
    """The queued launches that may take cards: on demand or with a bid, all of a tenant together within its quotas and
    budgets. Others would stop instances and then not start. Organisations that keep cancelling wait for free cards."""
    found: list[Demand] = []
    cancels: dict[str, int] = {}
    own: dict[str, list[CardWish]] = defaultdict(list)
    whole: dict[str, list[tuple[Size, int]]] = defaultdict(list)
    for each in waiting:
        order, queued = each.queued.launch, each.queued
        project = project_of_any_organisation(tx, queued.project_id)
        if order is None or project is None or order.mode == "spot":
            continue
        if len(found) == rules.DEMANDS_MAX:
            break
        home = project.organisation_id
        if home not in cancels:
            cancels[home] = queue.count_cancelled_of_organisation(tx, home, now - rules.CANCELS_FOR)
        if cancels[home] > rules.CANCELS_MAX:
            continue
        launch = (queued.need, queued.instances)
        wishes = [*own[project.id], CardWish(*launch, order.bid_micros_per_hour)]
        together = [*whole[home], launch]
        try:
            check_quota_of_several(tx, project, [(wish.need, wish.instances) for wish in wishes], together)
        except QuotaReached:
            continue
        if not prices.affords(queued.project_id, wishes):
            continue
        own[project.id], whole[home] = wishes, together
        found.append(
            Demand(
                id=queued.id,
                need=queued.need,
                instances=queued.instances,
                terms=replace(each.terms, queued_id=queued.id),
                since=queued.created_at,
                bid=order.bid_micros_per_hour,
            )
        )
    return found


def host_turn(
    tx: Transaction,
    room: Room,
    instances: Sequence[Instance],
    share: Share,
    prices: CardPrices,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> HostTurn:
    found = bidders(room, instances, prices, now)
    gpus = {each.need.gpu for each in (*found, *share.queued)}
    floors = floors_of(room, gpus, prices)
    result = rules.outcome(room, found, share, floors)
    by_id = {str(each.id): each for each in instances}
    changes = []
    for each in found:
        before = by_id[each.id]
        after, kind = rules.changed(before, result, now) if each.runs else (before, "")
        if after is not before:
            changes.append((before, after, kind))
    auctions = _auctions(room, (*found, *share.queued), result, floors, prices, now, random_bytes)
    ready = rules.returning(room, found, share, result.winners) if room.state == HostState.READY else ()
    return HostTurn(
        changes=tuple(changes),
        auctions=tuple(each for each in auctions if not _is_known(tx, each)),
        returns=tuple(by_id[id] for id in ready if id in by_id and rules.is_rested(by_id[id], now)),
    )


def bidders(room: Room, instances: Iterable[Instance], prices: CardPrices, now: datetime) -> list[Bidder]:
    """The instances that take part. One that waits and could not be paid would send others away and then not start."""
    found = []
    wishes: dict[str, list[CardWish]] = defaultdict(list)
    for each in instances:
        floor = prices.floor(each.shape.gpu, room.host_id, room.region) if each.shape.gpus else 0
        bidder = rules.bidder_of(each, floor, now)
        if bidder is None:
            continue
        if not bidder.runs:
            more = [*wishes[each.project_id], CardWish(each.shape, 1, bidder.bid)]
            if not prices.affords(each.project_id, more):
                continue
            wishes[each.project_id] = more
        found.append(bidder)
    return found


def floors_of(room: Room, gpus: Iterable[str], prices: CardPrices) -> dict[str, int]:
    return {gpu: prices.floor(gpu, room.host_id, room.region) if gpu else 0 for gpu in gpus}


def _auctions(
    room: Room,
    every: Sequence[Bidder],
    result: BidResult,
    floors: Mapping[str, int],
    prices: CardPrices,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> list[Auction]:
    """One for each GPU model that has a bid."""
    return [
        Auction(
            id=new_id("auc", now, random_bytes),
            at=now,
            host_id=room.host_id,
            region=room.region,
            gpu=gpu,
            currency=prices.currency,
            floor_micros=floors[gpu],
            price_micros=max(
                [floors[gpu], *(result.prices.get(each.id, 0) for each in every if each.need.gpu == gpu)]
            ),
            entries=tuple(_entry(each, result) for each in every if each.need.gpu == gpu),
        )
        for gpu in sorted({each.need.gpu for each in every if each.pays})
    ]


def _entry(bidder: Bidder, result: BidResult) -> AuctionEntry:
    return AuctionEntry(
        id=bidder.id,
        bid=bidder.bid,
        won=bidder.id in result.winners,
        price=result.prices.get(bidder.id),
        is_firm=bidder.runs and bidder.is_firm,
        gpus=bidder.need.gpus,
        vcpus=bidder.need.vcpus,
        ram_bytes=bidder.need.ram_bytes,
    )


def _is_known(tx: Transaction, auction: Auction) -> bool:
    """Whether the last result says the same."""
    last = store.last(tx, auction.host_id, auction.gpu)
    return last is not None and replace(last, id="", at=auction.at) == replace(auction, id="")
