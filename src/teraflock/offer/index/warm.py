"""Search offers in a server: from memory, and never with outdated offers.

Invariants:
- every answer uses the offers that are stored at that time. Each query checks which these are, so an import by any
  process takes effect at once. The database answers until the new offers are in memory;
- at most one index is in memory or being built. More than `offers_max` offers are never loaded into memory;
- if building an index fails, the database still answers.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from teraflock.base.clock import Clock, today
from teraflock.base.errors import BadInput
from teraflock.base.exchange import Rates
from teraflock.base.money import Period
from teraflock.offer import store
from teraflock.offer.model import Offer, Query
from teraflock.offer.question import store as question_store
from teraflock.offer.service import OfferService, Point
from teraflock.offer.source import store as source_store
from teraflock.offer.words import OfferWords, query_from
from teraflock.storage.database import Database, Transaction

if TYPE_CHECKING:
    from teraflock.offer.index.service import OfferIndex

OFFERS_MAX: Final = 2_000_000
"""A million offers take about 100 MB."""
LOG: Final = logging.getLogger("teraflock.offers")


class Found(NamedTuple):
    offers: tuple[Offer, ...]
    currency: str
    per: Period
    rates: Rates
    on: date
    """The date whose exchange rates are used."""


class History(NamedTuple):
    points: list[Point]
    currency: str


class _State(NamedTuple):
    """What an index depends on: the offers, the rates and the date."""

    catalog: source_store.Catalog
    rates: Rates
    on: date


class WarmOffers:
    def __init__(
        self,
        database: Callable[[], Database],
        rates: Callable[[], Rates],
        clock: Clock,
        *,
        offers_max: int = OFFERS_MAX,
    ) -> None:
        """`rates` must return the same object until the rates change."""
        self._database = database
        self._rates = rates
        self._clock = clock
        self._offers_max = offers_max
        self._index: tuple[_State, OfferIndex] | None = None
        self._tried: _State | None = None
        self._builder: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def answer(self, words: OfferWords, *, limit: int, refused: bool = False) -> Found:
        """Return what `tera offers` lists for the same filters, cheapest first."""
        rates = self._rates()
        currency = rates.known(words.currency)
        now = today(self._clock)
        query = replace(query_from(words, self._providers, now), refused=refused)
        on = query.as_of or now
        return Found(self._search(query, rates, on, limit), currency, words.period, rates, on)

    def history(self, words: OfferWords) -> History:
        """Return the prices of a GPU-hour by the day on which they were first seen. Always from the database."""
        if not words.gpu:
            raise BadInput("A price history needs a GPU model", hint="Give `gpu`, such as `gpu=V100`")
        rates = self._rates()
        currency = rates.known(words.currency)
        service = OfferService(self._database(), rates, self._clock)
        return History(
            service.history(query_from(words, service.providers, service.today()), currency), currency
        )

    def settle(self) -> None:
        """Wait until no index is being built."""
        if builder := self._builder:
            builder.join()

    def close(self) -> None:
        self._is_closed = True
        self.settle()

    def _search(self, query: Query, rates: Rates, on: date, limit: int) -> tuple[Offer, ...]:
        with self._database().read() as tx:
            if query.as_of is None and (index := self._index_of(_State(source_store.catalog(tx), rates, on))):
                return index.search(query, limit=limit)
            return tuple(islice(question_store.search(tx, query, rates, on), limit))

    def _providers(self) -> list[str]:
        with self._database().read() as tx:
            return store.providers(tx)

    def _index_of(self, state: _State) -> "OfferIndex | None":
        """Return the index of this state. If it is not in memory, start building it and return None."""
        held = self._index
        if held and held[0] == state:
            return held[1]
        with self._lock:
            is_building = self._builder is not None and self._builder.is_alive()
            fits = state.catalog.offers <= self._offers_max
            if fits and not is_building and state != self._tried and not self._is_closed:
                self._index, self._tried = None, state  # free the old index first to save memory
                self._builder = threading.Thread(
                    target=self._build, args=(state,), name="offers", daemon=True
                )
                self._builder.start()
        return None

    def _build(self, state: _State) -> None:
        try:
            from teraflock.offer.index.service import (
                OfferIndex,
            )  # imported here because only servers need numpy

            with self._database().read() as tx:
                stored = source_store.catalog(tx)
                index = OfferIndex(self._each(tx), state.rates, state.on)
            self._index = state._replace(catalog=stored), index
        except Exception:
            if not self._is_closed:
                LOG.exception("cannot load the offers into memory; the database answers queries")

    def _each(self, tx: Transaction) -> Iterator[Offer]:
        for offer in store.every(tx):
            if self._is_closed:
                raise InterruptedError("the server is shutting down")
            yield offer
