"""The terms on which a preemptible instance is launched: its bid is enough, and it passes over nobody who waits."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text
from teraflock.base.size import Size
from teraflock.fleet import store as fleet
from teraflock.fleet.model import HostId
from teraflock.fleet.placement import Policy
from teraflock.fleet.room import Room
from teraflock.instance.bid import rules, store
from teraflock.instance.bid.model import CardPrices, CardWish
from teraflock.instance.claims import NoCapacity
from teraflock.instance.model import Instance, Preemptible
from teraflock.instance.orders import Order
from teraflock.storage.database import Transaction

BID_MICROS_MAX: Final = 10**12
"""A million per card and hour. More is a mistake, and would not fit into a bill."""


def preemptible_on(
    tx: Transaction, policy: Policy, order: Order, prices: CardPrices, need: Size, rooms: Sequence[Room]
) -> list[Preemptible]:
    """How each instance of an order gives way to others on its host."""
    made, bid = [], order.bid_micros_per_hour
    for room in rooms:
        floor = prices.floor(need.gpu, room.host_id, room.region) if need.gpu else 0
        if bid is not None:
            check_bid(prices, need.gpu, room.host_id, room.region, bid)
        made.append(
            Preemptible() if bid is None else Preemptible(bid_micros_per_hour=bid, card_micros_per_hour=floor)
        )
        together = sum(each.host_id == room.host_id for each in rooms)
        _check_nobody_ahead(tx, policy, prices, room.host_id, need, together, floor, bid)
    return made


def check_bid(prices: CardPrices, gpu: str, host_id: str, region: str, micros_per_hour: int) -> None:
    if not gpu:
        raise BadInput(
            "A bid is for GPUs, and this instance has none", hint="Add `--gpu MODEL`, or use `--mode spot`"
        )
    if not 0 < micros_per_hour <= BID_MICROS_MAX:
        raise BadInput(
            "The bid is not possible", hint=f"Use up to {BID_MICROS_MAX // 10**6:,} per card and hour"
        )
    floor = prices.floor(gpu, host_id, region)
    if micros_per_hour < floor:
        least = amount_text(floor, prices.currency)
        raise BadInput(
            f"The bid is too low: `{gpu}` costs at least {least} per card and hour",
            hint="`tera bids` shows what cards cost",
        )


def _check_nobody_ahead(
    tx: Transaction,
    policy: Policy,
    prices: CardPrices,
    host_id: HostId,
    need: Size,
    together: int,
    floor: int,
    bid: int | None,
) -> None:
    """Refuse room that an instance with the same or a higher bid waits for. Spot counts as a bid at the floor."""
    offered = floor if bid is None else bid
    ahead = [
        each
        for each in store.preemptible_in_all_projects(tx, host_id)
        if rules.may_return(each)
        and (_bid_of(each) or floor) >= offered
        and prices.affords(each.project_id, [CardWish(each.shape, 1, _bid_of(each) or floor)])
    ]
    for left in fleet.rooms(tx, policy, only=host_id, ready=False) if ahead else ():
        for each in ahead:
            left.take(replace(each.shape, disk_bytes=0))
        if left.capacity(need) < together:
            raise NoCapacity(
                "No cards are free now: others with an equal or higher bid are waiting",
                hint="Bid more, use `--mode on-demand`, or wait with `--queue`. `tera bids` shows prices",
            )


def _bid_of(instance: Instance) -> int:
    """0: spot."""
    return instance.preemptible.bid_micros_per_hour or 0 if instance.preemptible else 0
