"""Accepts price books and looks up prices."""

from collections.abc import Mapping, Sequence

from teraflock.base.clock import Clock
from teraflock.base.errors import NotFound
from teraflock.base.exchange import Rates
from teraflock.bill import store
from teraflock.bill.price import store as price_store
from teraflock.bill.price.book import read_book
from teraflock.bill.price.model import Period, PriceBook
from teraflock.bill.price.rules import taken
from teraflock.bill.times import microseconds
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import By


class PriceService:
    def __init__(self, database: Database, clock: Clock, rates: Rates) -> None:
        self._database = database
        self._clock = clock
        self._rates = rates
        self._audit = Audit(clock)

    def take(
        self,
        text: str,
        *,
        name: str,
        member: str,
        hosts: Mapping[str, str] | None = None,
        by: By | None = None,
    ) -> Sequence[Period]:
        """Accept a book as a whole. Its prices for the past do not apply."""
        drafts = read_book(text, name=name, rates=self._rates, hosts=hosts)
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> Sequence[Period]:
            not_before_us = max(now_us, store.hold(tx).latest_us)
            version = price_store.newest_version(tx) + 1
            periods = taken(drafts, version=version, not_before_us=not_before_us)
            price_store.add(tx, periods, text=text, member=member, now_us=now_us)
            self._audit.note(tx, by, "price.set", f"prices/{version}", name=name, version=version)
            return periods

        return self._database.write(work)

    def now(self) -> Period:
        """The period that applies now."""
        period = self.book().at(microseconds(self._clock.now()))
        if period is None:
            raise NotFound(
                "There are no prices yet", hint="The operator can set prices with `tera price set FILE`"
            )
        return period

    def book(self) -> PriceBook:
        with self._database.read() as tx:
            return price_store.book(tx)

    def versions(self) -> list[price_store.Version]:
        with self._database.read() as tx:
            return price_store.versions(tx)

    def text(self, version: int) -> str | None:
        with self._database.read() as tx:
            return price_store.text_of(tx, version)
