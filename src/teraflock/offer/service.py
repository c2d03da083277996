"""Search offers, explain empty results, and show past prices. Each call reads one snapshot."""

from collections.abc import Iterator
from datetime import date
from itertools import islice
from typing import Final

import msgspec

from teraflock.base.clock import Clock, today
from teraflock.base.exchange import Rates
from teraflock.catalog.places import PlaceFilter, located
from teraflock.offer.comparison import CheapestFound, cheapest_of_each
from teraflock.offer.model import Listing, Offer, OffersFound, Outcome, Query, Removal, Source
from teraflock.offer.place.store import PlaceCount, place_counts
from teraflock.offer.question import store
from teraflock.offer.rules import folded, in_currency
from teraflock.offer.source.store import sources
from teraflock.offer.store import by_id, gpus, providers, regions
from teraflock.offer.types import TypeLine, by_type
from teraflock.storage.database import Database, Transaction

UNSTATED: Final = {
    "--region": "in an unknown country",
    "--country": "in an unknown country",
    "--not-in": "in an unknown country",
    "--newer-than": "of unknown date",
}


class Point(msgspec.Struct, frozen=True):
    """The prices that were first seen on one day."""

    day: str
    lowest_micros: int
    median_micros: int
    highest_micros: int
    offers: int


class OfferService:
    def __init__(self, database: Database, rates: Rates, clock: Clock) -> None:
        self._database = database
        self._rates = rates
        self._clock = clock

    def search(self, query: Query, *, limit: int | None) -> OffersFound:
        """Return the first `limit` matching offers, cheapest first."""
        with self._database.read() as tx:
            offers = tuple(islice(store.search(tx, query, self._rates, self.day_of(query)), limit))
            outcome = self._outcome(tx, query)
        return OffersFound(offers=offers, **msgspec.structs.asdict(outcome))

    def offer(self, id: int) -> Offer | None:
        """The current offer with this id."""
        with self._database.read() as tx:
            return by_id(tx, id)

    def listing(self, query: Query, *, limit: int | None) -> Listing:
        """Like `search`, but merge offers that differ only in their place. Return at most `limit` lines."""
        with self._database.read() as tx:
            lines = tuple(islice(folded(store.search(tx, query, self._rates, self.day_of(query))), limit))
            outcome = self._outcome(tx, query)
        return Listing(lines=lines, **msgspec.structs.asdict(outcome))

    def each(self, query: Query) -> Iterator[Offer]:
        """Yield the matching offers in order, as far as they are read."""
        with self._database.read() as tx:
            yield from store.search(tx, query, self._rates, self.day_of(query))

    def offered_gpus(self) -> frozenset[str]:
        """Return the ids of all GPU models that current offers have."""
        with self._database.read() as tx:
            return frozenset(gpus(tx))

    def types(self, query: Query) -> list[TypeLine]:
        """Return one line per instance type, in the order of its best offer."""
        with self._database.read() as tx:
            return by_type(store.search(tx, query, self._rates, self.day_of(query)))

    def removal(self, query: Query) -> Removal | None:
        """Return the filter that removed the last offers of an empty result."""
        with self._database.read() as tx:
            return store.removal(tx, query, self._rates, self.day_of(query))

    def providers(self) -> list[str]:
        with self._database.read() as tx:
            return providers(tx)

    def regions(self) -> list[str]:
        """Return the names of all regions, as in the sources."""
        with self._database.read() as tx:
            return sorted({name for names in regions(tx) for name in names.split("|") if name})

    def places(self) -> list[PlaceCount]:
        with self._database.read() as tx:
            return place_counts(tx)

    def excludes_nothing(self, wanted: PlaceFilter) -> list[str]:
        """Return the names in `not_in` that no place has. A user who misspells one must be told."""
        names = [area for area in wanted.not_in if area.kind == "name"]
        stored = self.places() if names else []
        return [
            area.code
            for area in names
            if not any(
                located(each.provider, each.region, each.zone, PlaceFilter((area,))) == "in"
                for each in stored
            )
        ]

    def sources(self) -> list[Source]:
        with self._database.read() as tx:
            return sources(tx)

    def cheapest_by_provider(self, query: Query) -> CheapestFound:
        """Return the cheapest GPU-hour for each provider, card and mode, and the number of offers, cheapest first.

        Leaves out retired types, unless the query names a source or a day: then the user wants what is there.
        """
        named = bool(query.sources) or query.as_of is not None
        offers = self.each(msgspec.structs.replace(query, sort="price-per-gpu"))
        return cheapest_of_each(offers, with_retired=named)

    def history(self, query: Query, currency: str) -> list[Point]:
        """Return the prices of a GPU-hour by the date they were first seen, for current and past offers."""
        on = self.day_of(query)
        by_day: dict[str, list[int]] = {}
        with self._database.read() as tx:
            for seen in store.priced_ever(tx, query, self._rates, on):
                price = in_currency(
                    seen.micros_per_month,
                    seen.currency,
                    currency,
                    self._rates,
                    on,
                    per="hour",
                    parts=seen.gpu_count,
                )
                by_day.setdefault(seen.since, []).append(price)
        return [_point(day, sorted(prices)) for day, prices in sorted(by_day.items())]

    def day_of(self, query: Query) -> date:
        """Return the date whose exchange rates are used."""
        return query.as_of or today(self._clock)

    def today(self) -> date:
        return today(self._clock)

    def _outcome(self, tx: Transaction, query: Query) -> Outcome:
        on = self.day_of(query)
        summary = store.summarise(tx, query, self._rates, on)
        return Outcome(
            matched=summary.matched,
            newest=summary.newest,
            oldest=summary.oldest,
            left_out=tuple(self._left_out(tx, query, summary, on)),
        )

    def _left_out(
        self, tx: Transaction, query: Query, summary: store.Summary, on: date
    ) -> Iterator[tuple[str, int]]:
        for reason, count in (
            ("with an implausible price", summary.refused),
            ("of a part of a GPU", summary.slices),
            ("with an outdated price", summary.outdated),
        ):
            if count:
                yield reason, count
        for option, count in store.unstated(tx, query, self._rates, on):
            if count:
                yield UNSTATED.get(option, f"without a figure for `{option}`"), count
        if not query.gpus and "none" not in query.kinds:
            count = store.without_gpu(tx, query, self._rates, on)
            if count:
                yield "without a GPU", count


def _point(day: str, prices: list[int]) -> Point:
    return Point(day, prices[0], prices[len(prices) // 2], prices[-1], len(prices))
