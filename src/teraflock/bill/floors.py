"""What instances need to know about prices before they take the cards of others: the least bid, and who can pay."""

from collections.abc import Sequence
from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.base.money import HOURS_PER_MONTH
from teraflock.bill.budget.admission import BudgetReached, check_launch
from teraflock.bill.budget.store import Wished
from teraflock.bill.price import store
from teraflock.bill.price.model import PricedPeriod, PricePlace
from teraflock.instance.bid.model import CardWish
from teraflock.meter.model import Holding
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId


class CardFloors:
    def __init__(self, tx: Transaction, at_us: int) -> None:
        self._tx, self._at_us = tx, at_us
        book = store.book(tx)
        period = book.at(at_us)
        self._priced = PricedPeriod(period, book.currency) if period else None
        self.currency = book.currency

    def floor(self, gpu: str, host_id: str, region: str) -> int:
        """The spot price, rounded up to a price per hour."""
        if self._priced is None:
            return 0
        month = self._priced.units(gpu, "spot", PricePlace(host_id, region)).gpu
        return -(-month // HOURS_PER_MONTH)

    def affords(self, project_id: ProjectId, wishes: Sequence[CardWish]) -> bool:
        """Whether budget and balance of a project allow all these launches too."""
        more = [each for wish in wishes for each in [_wished(wish)] * wish.instances]
        try:
            check_launch(self._tx, project_id, self._at_us, more)
        except BudgetReached:
            return False
        return True


def _wished(wish: CardWish) -> Wished:
    mode = "on-demand" if wish.bid is None else "bid"
    held = Holding(size=wish.need, mode=mode, card_micros_per_hour=wish.bid or 0)
    return Wished(id="", held=held, runs=False)


def card_floors(tx: Transaction, now: datetime) -> CardFloors:
    return CardFloors(tx, microseconds(now))
