"""The loop that gives idle cards to preemptible instances, and takes them back with notice.

    load    preemptible instances, free room, queued launches, the price of each card
    decide  `instance/bid/rules.py`: who runs, who must leave, what a bid pays
    apply   for each host in one transaction, decided again from locked rows: notices, stops, prices and the result of
            the auction. Starts follow in transactions of their own, with quota and budget of that time

A notice and a stop are fields of the instance, so a crash at any point is continued by the next turn.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.fleet import store as fleet
from teraflock.fleet.model import HostId
from teraflock.instance import store as instances
from teraflock.instance.bid import store
from teraflock.instance.bid.look import BidLook, HostTurn, demands_of, host_turn
from teraflock.instance.bid.model import CardPrices, ReadPrices, Share
from teraflock.instance.bid.service import BidService
from teraflock.instance.events import notice_of
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.queue import store as queue
from teraflock.instance.queue.service import QueueService
from teraflock.instance.rules import settled
from teraflock.reconcile.bid_notices import BidNotices
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
BLOCKED_FOR: Final = timedelta(seconds=10)
"""How long an instance is left out after it could not start, for example because of its budget."""


class BidLoop:
    def __init__(
        self, around: Surroundings, queue: QueueService, bids: BidService, read_prices: ReadPrices
    ) -> None:
        self._around = around
        self._queue = queue
        self._bids = bids
        self._read_prices = read_prices
        self._notices = BidNotices(around)
        self._blocked: dict[InstanceId, datetime] = {}

    def turn(self) -> None:
        now = self._around.clock.now()
        self._blocked = {id: until for id, until in self._blocked.items() if now < until}
        with self._around.database.read() as tx:
            if not store.is_any_preemptible_in_all_projects(tx):
                return
            prices = self._read_prices(tx, now)
            look = BidLook(tx, self._around.policy, prices, now)
            waiting = self._queue.look(tx).ordered if queue.is_any_waiting_in_all_projects(tx) else ()
            shares = look.shares(demands_of(tx, waiting, prices, now))
            turns = {
                room.host_id: self._turn_of(tx, room.host_id, shares[room.host_id], prices, now)
                for room in look.rooms
                if room.host_id in look.instances
            }
        for host_id, turn in turns.items():
            if turn.changes or turn.auctions:
                self._around.database.write_with_locks(partial(self._apply, host_id, shares[host_id]))
        self._notices.tell(each for found in look.instances.values() for each in found)
        for instance in [each for turn in turns.values() for each in turn.returns]:
            self._start(instance, now)

    def _turn_of(
        self,
        tx: Transaction,
        host_id: HostId,
        share: Share,
        prices: CardPrices,
        now: datetime,
        *,
        lock: bool = False,
    ) -> HostTurn:
        found = store.preemptible_in_all_projects(tx, host_id, lock=lock)
        rooms = fleet.rooms(tx, self._around.policy, only=host_id, ready=False)
        if not rooms:
            return HostTurn()
        return host_turn(tx, rooms[0], found, share, prices, now, self._around.random_bytes)

    def _apply(self, host_id: HostId, share: Share, tx: Transaction) -> None:
        """Decide again, from rows that nobody else can change, and write it. Launches may have started meanwhile."""
        now, random_bytes = self._around.clock.now(), self._around.random_bytes
        waits = queue.waiting_among_in_all_projects(
            tx, [*(each.queued_id for each in share.claims), *(each.id for each in share.queued)]
        )
        current = Share(
            claims=tuple(each for each in share.claims if each.queued_id in waits),
            queued=tuple(each for each in share.queued if each.id in waits),
        )
        turn = self._turn_of(tx, host_id, current, self._read_prices(tx, now), now, lock=True)
        for before, after, kind in turn.changes:
            stored = instances.put(
                tx, before, replace(settled(after), due_at=now), now=now, random_bytes=random_bytes
            )
            if kind:
                record_event(tx, notice_of(kind, stored, now, random_bytes, **_details(after)))
        for auction in turn.auctions:
            store.add(tx, auction)
        if turn.changes:
            self._around.wake()

    def _start(self, instance: Instance, now: datetime) -> None:
        if instance.id in self._blocked:
            return
        try:
            self._bids.resume(instance.project_id, instance.id)
        except TeraflockError as error:
            LOG.info("%s cannot start again: %s", instance.id, error.sentence)
            self._blocked[instance.id] = now + BLOCKED_FOR


def _details(instance: Instance) -> dict[str, str]:
    at = instance.preemptible.leaving_at if instance.preemptible else None
    return {"leaving_at": at.isoformat()} if at else {}
