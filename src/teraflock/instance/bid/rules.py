"""Decides who runs on idle cards and what a bid pays. Pure.

Rules:
- instances on demand come before every bid. They take the cards of the lowest bids first;
- the highest bid wins. Of two equal bids, the earlier one wins. Spot counts as a bid at the floor;
- a bid that does not fit beside the higher ones is skipped, and smaller ones behind it may still run;
- a winner pays the highest losing bid, at least the floor, and at most its own bid. A higher bid that lost because it
  needs more than the winner has does not count: who cannot win must not raise the price of others;
- an instance that began to run less than `FIRM_FOR` ago keeps its cards against other bids. So two bidders who outbid
  each other in turn do not stop each other every minute.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from teraflock.base.size import Size
from teraflock.fleet.placement import decide, obstacle_of
from teraflock.fleet.room import Room
from teraflock.instance.bid.model import Bidder, BidResult, CardClaim, Demand, Share
from teraflock.instance.model import Instance, Operation, Preemptible
from teraflock.instance.states import ENDED, Phase, Wanted

NOTICE: Final = timedelta(seconds=60)
"""Between the notice and the stop: enough to save a checkpoint, short enough for someone who waits for the card."""
FIRM_FOR: Final = timedelta(minutes=10)
REST: Final = timedelta(seconds=60)
"""How long an instance waits after it lost its cards before it starts again: others may need them again soon."""
CANCELS_MAX: Final = 5
CANCELS_FOR: Final = timedelta(hours=1)
"""An organisation that cancels more queued launches than this within this time takes no cards from others until it is
over: a launch that is cancelled when others had to stop costs nothing."""
DEMANDS_MAX: Final = 50
"""How many queued launches one turn considers."""


def rank(bidder: Bidder) -> tuple[bool, int, datetime, str]:
    """Smaller is better."""
    return (not (bidder.runs and bidder.is_firm), -bidder.bid, bidder.since, bidder.id)


def outcome(
    free: Room, bidders: Iterable[Bidder], share: Share, floor: Mapping[str, int] | None = None
) -> BidResult:
    """Who runs on a host with this free room, and at which price. `floor` is by GPU model."""
    every, floors = [*bidders, *share.queued], floor or {}
    pool = pool_of(free, every)
    for claim in share.claims:
        pool.take(claim.need)
    winners = _seated(pool, every, floors)
    losing = [each for each in every if each.id not in winners]
    prices = {
        each.id: price_of(each, losing, floors.get(each.need.gpu, 0))
        for each in every
        if each.id in winners and each.pays
    }
    return BidResult(winners=winners, prices=prices)


def price_of(winner: Bidder, losing: Iterable[Bidder], floor: int) -> int:
    counting = [
        min(each.bid, winner.bid)
        for each in losing
        if each.need.gpu == winner.need.gpu and (each.bid <= winner.bid or _fits_instead(each, winner))
    ]
    return max([floor, *counting])


def _fits_instead(loser: Bidder, winner: Bidder) -> bool:
    need, room = loser.need, winner.need
    return need.gpus <= room.gpus and need.vcpus <= room.vcpus and need.ram_bytes <= room.ram_bytes


def _seated(pool: Room, bidders: Iterable[Bidder], floors: Mapping[str, int]) -> frozenset[str]:
    winners = set()
    for each in sorted(bidders, key=rank):
        if each.bid >= floors.get(each.need.gpu, 0) and pool.fits(each.need):
            pool.take(each.need)
            winners.add(each.id)
    return frozenset(winners)


def pool_of(free: Room, bidders: Iterable[Bidder]) -> Room:
    """The room of a host as if no preemptible instance ran there."""
    pool = replace(free, free_gpus=dict(free.free_gpus))
    for each in bidders:
        if each.runs:
            pool.give_back(each.need)
    return pool


def shares(
    rooms: Sequence[Room],
    bidders: Mapping[str, Sequence[Bidder]],
    demands: Sequence[Demand],
    floors: Mapping[str, Mapping[str, int]],
) -> dict[str, Share]:
    """Distribute the demands over hosts. Those on demand come first, in their order, then bids by their rank."""
    free = {str(room.host_id): replace(room, free_gpus=dict(room.free_gpus)) for room in rooms}
    pools = {host: pool_of(room, bidders.get(host, ())) for host, room in free.items()}
    found = {host: Share() for host in free}
    considered = demands[:DEMANDS_MAX]
    for demand in considered:
        if demand.bid is None:
            for room in _hosts_on_demand(demand, free, pools, bidders):
                host = str(room.host_id)
                found[host] = replace(
                    found[host], claims=(*found[host].claims, CardClaim(demand.id, demand.need))
                )
    for demand in sorted(considered, key=lambda each: (-(each.bid or 0), each.since, each.id)):
        if demand.bid is not None and demand.instances == 1:
            _add_bid(demand, free, bidders, floors, found)
    return found


def _hosts_on_demand(
    demand: Demand,
    free: Mapping[str, Room],
    pools: Mapping[str, Room],
    bidders: Mapping[str, Sequence[Bidder]],
) -> Sequence[Room]:
    """The hosts of a launch on demand: free ones, else those where it displaces the lowest bids."""
    chosen: Sequence[Room] = decide(free.values(), demand.need, demand.instances, demand.terms).chosen
    if chosen:
        for room in chosen:
            pools[str(room.host_id)].take(demand.need)
        return chosen
    if demand.instances > 1:
        chosen = decide(pools.values(), demand.need, demand.instances, demand.terms).chosen
    else:
        fitting = [room for room in pools.values() if not obstacle_of(room, demand.need, demand.terms)]
        chosen = sorted(fitting, key=lambda room: _loss(room, demand.need, bidders))[:1]
        for room in chosen:
            room.take(demand.need)
    for room in chosen:  # what is free there is part of what it takes
        _shrink(free[str(room.host_id)], room)
    return chosen


def _shrink(free: Room, pool: Room) -> None:
    free.vcpus = min(free.vcpus, pool.vcpus)
    free.ram_bytes = min(free.ram_bytes, pool.ram_bytes)
    free.disk_bytes = min(free.disk_bytes, pool.disk_bytes)
    for gpu, count in free.free_gpus.items():
        free.free_gpus[gpu] = min(count, pool.free_gpus.get(gpu, 0))


def _loss(pool: Room, need: Size, bidders: Mapping[str, Sequence[Bidder]]) -> tuple[int, int, str]:
    """The highest bid that a launch would displace on a host, and how many instances."""
    left = replace(pool, free_gpus=dict(pool.free_gpus))
    left.take(need)
    running = [each for each in bidders.get(str(pool.host_id), ()) if each.runs]
    kept = _seated(left, running, {})
    lost = [each.bid for each in running if each.id not in kept]
    return (max(lost, default=-1), len(lost), str(pool.host_id))


def _add_bid(
    demand: Demand,
    rooms: Mapping[str, Room],
    bidders: Mapping[str, Sequence[Bidder]],
    floors: Mapping[str, Mapping[str, int]],
    found: dict[str, Share],
) -> None:
    """Add a queued bid to the host where it displaces the lowest bids. If it wins nowhere, it loses everywhere."""
    bidder = Bidder(id=demand.id, need=demand.need, bid=demand.bid or 0, since=demand.since)
    wins: list[tuple[int, int, str]] = []
    loses: list[str] = []
    for host, room in rooms.items():
        own = bidders.get(host, ())
        if obstacle_of(pool_of(room, own), demand.need, demand.terms):
            continue
        share, floor = found[host], floors.get(host, {})
        with_it = outcome(room, own, replace(share, queued=(*share.queued, bidder)), floor)
        lost = [each.bid for each in own if each.runs and each.id not in with_it.winners]
        if bidder.id in with_it.winners:
            wins.append((max(lost, default=-1), len(lost), host))
        else:
            loses.append(host)
    for host in [min(wins)[2]] if wins else loses:
        found[host] = replace(found[host], queued=(*found[host].queued, bidder))


def returning(free: Room, bidders: Iterable[Bidder], share: Share, winners: Set[str]) -> tuple[str, ...]:
    """The waiting winners that fit beside everyone who comes before them, without waiting for others to leave."""
    left = replace(free, free_gpus=dict(free.free_gpus))
    for claim in share.claims:
        left.take(claim.need)
    found = []
    for each in sorted([*bidders, *share.queued], key=rank):
        if each.runs or each.id not in winners:
            continue
        if left.fits(each.need):
            found.append(each.id)
        left.take(each.need)
    return tuple(found)


# An instance as a bidder


def bidder_of(instance: Instance, floor: int, now: datetime) -> Bidder | None:
    """None: it takes no part now, because it is starting, ending, or stopped by its tenant."""
    how = instance.preemptible
    if how is None or instance.host_id is None:
        return None
    runs = instance.wanted == Wanted.RUNNING and instance.phase not in ENDED
    waits = may_return(instance)
    if not runs and not waits:
        return None
    began = instance.running_since or now
    return Bidder(
        id=instance.id,
        need=replace(instance.shape, disk_bytes=0),
        bid=floor if how.bid_micros_per_hour is None else how.bid_micros_per_hour,
        since=instance.created_at,
        pays=how.bid_micros_per_hour is not None,
        runs=runs,
        is_firm=runs and how.leaving_at is None and now - began < FIRM_FOR,
    )


def may_return(instance: Instance) -> bool:
    """Whether it lost its cards and waits for them, and nothing else keeps it stopped."""
    how = instance.preemptible
    waits = how is not None and how.waits_since is not None and instance.wanted == Wanted.STOPPED
    return waits and instance.phase in (Phase.STOPPING, Phase.STOPPED) and instance.hold is None


def is_rested(instance: Instance, now: datetime) -> bool:
    """Whether it has waited long enough and can start now. If its disk was lost meanwhile, it starts with a new one."""
    how, request = instance.preemptible, instance.request
    if how is None or how.waits_since is None or instance.phase != Phase.STOPPED:
        return False
    is_free = request is None or request.operation == Operation.LAUNCH
    return is_free and instance.progress is None and now - how.waits_since >= REST


def can_leave(instance: Instance) -> bool:
    """Whether it can be stopped now. One that is starting is given notice when it runs."""
    return instance.phase == Phase.RUNNING and instance.wanted == Wanted.RUNNING


def noticed(instance: Instance, now: datetime) -> Instance:
    """The instance with a notice that it must leave."""
    at = now + NOTICE
    notice = f"Its cards are needed. At {at:%Y-%m-%d %H:%M:%S} UTC it stops. It keeps its disk and starts again later"
    return replace(_with(instance, leaving_at=at), notice=notice)


def kept(instance: Instance) -> Instance:
    """The instance after its notice was withdrawn: its cards are not needed any more."""
    return replace(_with(instance, leaving_at=None), notice="")


def preempted(instance: Instance, now: datetime) -> Instance:
    """The instance when its notice is over: it stops, and waits for cards."""
    stopped = replace(instance, wanted=Wanted.STOPPED, wanted_at=now, due_at=now)
    notice = "Others needed its cards. It keeps its disk and starts again when it can"
    return replace(_with(stopped, leaving_at=None, waits_since=now), notice=notice)


def priced(instance: Instance, card_micros_per_hour: int) -> Instance:
    return _with(instance, card_micros_per_hour=card_micros_per_hour)


def changed(instance: Instance, found: BidResult, now: datetime) -> tuple[Instance, str]:
    """The instance after an auction, and the kind of its event. An empty kind: nothing to report."""
    how = instance.preemptible
    assert how is not None, "only preemptible instances take part"
    if instance.id in found.winners:
        after = priced(instance, found.prices[instance.id]) if instance.id in found.prices else instance
        return (kept(after), "instance.stays") if how.leaving_at else (after, "")
    if not can_leave(instance):
        return instance, ""
    if how.leaving_at is None:
        return noticed(instance, now), "instance.leaving"
    return (preempted(instance, now), "instance.preempted") if how.leaving_at <= now else (instance, "")


def _with(instance: Instance, **changes: object) -> Instance:
    how = instance.preemptible or Preemptible()
    if all(getattr(how, name) == value for name, value in changes.items()):
        return instance
    return replace(instance, preemptible=replace(how, **changes))
