"""Bids for the edges and the loop: change a bid, start an instance again, read prices, find cards to take."""

from datetime import datetime

from msgspec.structs import replace

from teraflock.base.errors import NotFound, QuotaReached, Refused
from teraflock.base.size import Size
from teraflock.catalog.names import find_cards
from teraflock.fleet import store as fleet
from teraflock.fleet.placement import PlaceTerms, Policy
from teraflock.instance import store as instances
from teraflock.instance.bid import rules, store
from teraflock.instance.bid.look import BidLook
from teraflock.instance.bid.model import AuctionPrice, CardWish, Demand, ReadPrices
from teraflock.instance.bid.terms import check_bid
from teraflock.instance.changes import InstanceChanges
from teraflock.instance.claims import take_back
from teraflock.instance.events import notice_of
from teraflock.instance.lookup import found
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.orders import Order
from teraflock.instance.output import store as outputs
from teraflock.instance.rules import settled, started
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.model import Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.project.store import project_of_any_organisation


class BidService:
    def __init__(self, changes: InstanceChanges, policy: Policy, read_prices: ReadPrices) -> None:
        self._changes = changes
        self._policy = policy
        self._read_prices = read_prices

    def prices(
        self, *, region: str = "", gpu: str = "", before: str = "", limit: int
    ) -> tuple[AuctionPrice, ...]:
        """What cards cost in auctions, newest first. `gpu` is the name of a model."""
        gpus = [card.id for card in find_cards(gpu)] if gpu else []
        with self._changes.database.read() as tx:
            return store.prices(tx, region=region, gpus=gpus, before=before, limit=limit)

    def change(self, actor: Actor, project: Project, ref: str, micros_per_hour: int) -> Instance:
        """Change the bid of an instance. The next turn of the loop decides with it."""

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            how = instance.preemptible
            if how is None or how.bid_micros_per_hour is None:
                raise Refused(
                    f"`{instance.name}` has no bid that can be changed",
                    hint="Bids on own hosts can: launch with `--mode bid --bid PRICE`",
                )
            if how.bid_micros_per_hour == micros_per_hour:
                return instance
            prices = self._read_prices(tx, now)
            check_bid(prices, *_card(tx, instance), micros_per_hour)
            if micros_per_hour > how.bid_micros_per_hour:
                check_active(tx, project.organisation_id)
                if not prices.affords(project.id, [CardWish(instance.shape, 1, micros_per_hour)]):
                    raise QuotaReached(
                        "The budget or balance of the project does not cover one minute at this bid",
                        hint="Bid less, raise the budget, or pay in",
                    )
            return replace(instance, preemptible=replace(how, bid_micros_per_hour=micros_per_hour))

        return self._changes.apply(actor, project, ref, "bid", change, grows=True)

    def resume(self, project_id: ProjectId, id: InstanceId) -> None:
        """Start an instance that waits for cards. Raises if there is no room, or its project may not have it."""

        def work(tx: Transaction) -> None:
            now, random_bytes = self._changes.clock.now(), self._changes.random_bytes
            project = project_of_any_organisation(tx, project_id)
            if project is None:
                raise NotFound("Its project was removed")
            claimed(tx, project)
            instances.lock(tx, project_id, id)
            before = found(tx, project_id, id).instance
            if not rules.is_rested(before, now) or not rules.may_return(before):
                return
            check_active(tx, project.organisation_id)
            outputs.remove_output(tx, id)
            after = started(before, take_back(tx, self._policy, before), now)
            if before.preemptible and before.preemptible.bid_micros_per_hour is not None:
                floor = self._read_prices(tx, now).floor(*_card(tx, before))
                after = rules.priced(after, floor)  # until the next auction
            stored = instances.put(
                tx, before, replace(settled(after), due_at=now), now=now, random_bytes=random_bytes
            )
            record_event(tx, notice_of("instance.resumed", stored, now, random_bytes))
            self._changes.admits(tx, project_id)

        self._changes.database.write_with_locks(work)
        self._changes.wake()

    def makes_room(
        self, tx: Transaction, project: ProjectId, order: Order, need: Size, terms: PlaceTerms
    ) -> bool:
        """Whether an order that finds no room can take the cards of preemptible instances."""
        if order.mode == "spot":
            return False
        now = self._changes.clock.now()
        demand = Demand(
            id="", need=need, instances=order.instances, terms=terms, since=now, bid=order.bid_micros_per_hour
        )
        prices = self._read_prices(tx, now)
        if not prices.affords(project, [CardWish(need, order.instances, demand.bid)]):
            return False
        return BidLook(tx, self._policy, prices, now).takes(demand)


def _card(tx: Transaction, instance: Instance) -> tuple[str, str, str]:
    """GPU model, host and region: what a price depends on."""
    host = instance.host_id or ""
    return instance.shape.gpu, host, fleet.place_of(tx, host)[0]
