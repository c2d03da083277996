"""Offers from memory always equal the stored ones, and memory is bounded."""

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.offer.random_offers import RATES, random_offers

from teraflock.base.clock import FixedClock, today
from teraflock.base.exchange import Rate, Rates
from teraflock.offer.index import service
from teraflock.offer.index.warm import WarmOffers
from teraflock.offer.model import Offer, Source
from teraflock.offer.rules import matches, sort_key, weights
from teraflock.offer.source import store as source_store
from teraflock.offer.words import OfferWords, query_from
from teraflock.storage.database import Database, Transaction

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
EVERY = 10_000
QUESTIONS = (
    OfferWords(),
    OfferWords(gpu=("A100",)),
    OfferWords(currency="CNY", price_max="3", sort="price-per-gpu"),
    OfferWords(region=("us",), mode=("spot", "on-demand")),
    OfferWords(count="0"),
)


def imported(database: Database, offers: Iterable[Offer], name: str = "shipped") -> None:
    """Replace the offers of a source, as an import does."""
    mine = [offer for offer in offers if offer.source == name]

    def work(tx: Transaction) -> None:
        number = source_store.next_import_number(tx)
        source_store.add(tx, ((offer, offer.id, offer.since) for offer in mine), number)
        source_store.supersede(tx, name, number, "2026-11-15", changed=False)
        source_store.update_counts(tx, name)
        source = Source(
            name=name, layout="teraflock", import_number=number, place="", checksum="", as_of="", imported_at="",
            offers=len(mine), currencies="CNY EUR USD",
        )  # fmt: skip
        source_store.put_source(tx, source)

    database.write(work)


def scanned(offers: Iterable[Offer], words: OfferWords, rates: Rates, clock: FixedClock) -> tuple[Offer, ...]:
    on = today(clock)
    query = query_from(words, lambda: [], on)
    fitting = [offer for offer in offers if matches(offer, query, rates, on)]
    return tuple(sorted(fitting, key=sort_key(query, weights(rates, on))))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_answers_always_use_the_stored_offers(database: Database, seed: int) -> None:
    random = Random(seed)
    clock, rates = FixedClock(NOON), [RATES]
    warm = WarmOffers(lambda: database, lambda: rates[0], clock)
    stored: list[Offer] = []
    imported(database, [])
    for _ in range(12):
        match random.randrange(5):
            case 0:
                stored = [
                    each
                    for each in random_offers(random, random.choice((0, 3, 40)))
                    if each.source == "shipped"
                ]
                imported(database, stored)
            case 1:
                rates[0] = Rates(
                    [*RATES.rows(), Rate(NOON.date(), "CNY", random.randrange(1, 10**8), "test")]
                )
            case 2:
                clock.move(timedelta(days=1))
            case 3:
                warm.settle()
            case _:
                pass
        for words in QUESTIONS:
            found = warm.answer(words, limit=EVERY)
            assert found.offers == scanned(stored, words, rates[0], clock)
            assert (found.rates, found.on) == (rates[0], today(clock))
    warm.close()


def held(warm: WarmOffers) -> Any:
    return warm._index


def test_the_second_query_is_answered_from_memory(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers = random_offers(Random(1), 40)
    imported(database, offers)
    warm = WarmOffers(lambda: database, lambda: RATES, FixedClock(NOON))
    first = warm.answer(OfferWords(), limit=5)
    warm.settle()
    monkeypatch.setattr("teraflock.offer.question.store.search", None)
    assert warm.answer(OfferWords(), limit=5) == first


def test_too_many_offers_are_not_loaded_into_memory(database: Database) -> None:
    offers = [offer for offer in random_offers(Random(2), 60) if offer.source == "shipped"]
    imported(database, offers)
    clock = FixedClock(NOON)
    warm = WarmOffers(lambda: database, lambda: RATES, clock, offers_max=len(offers) - 1)
    for _ in range(2):
        assert warm.answer(OfferWords(), limit=EVERY).offers == scanned(offers, OfferWords(), RATES, clock)
        warm.settle()
        assert held(warm) is None
    imported(database, offers[1:])
    warm.answer(OfferWords(), limit=1)
    warm.settle()
    assert held(warm) is not None


def test_an_old_index_is_freed_before_the_next_is_built(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = WarmOffers(lambda: database, lambda: RATES, FixedClock(NOON))
    built: Callable[..., Any] = service.OfferIndex
    held_meanwhile: list[Any] = []

    def watched(*words: Any) -> Any:
        held_meanwhile.append(held(warm))
        return built(*words)

    monkeypatch.setattr(service, "OfferIndex", watched)
    for count in (5, 6):
        imported(database, random_offers(Random(3), count))
        warm.answer(OfferWords(), limit=1)
        warm.settle()
    assert held_meanwhile == [None, None]


def test_the_store_answers_if_no_index_can_be_built(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fails(*words: Any) -> None:
        tried.append(words)
        raise MemoryError

    monkeypatch.setattr(service, "OfferIndex", fails)
    offers = [offer for offer in random_offers(Random(4), 30) if offer.source == "shipped"]
    imported(database, offers)
    clock = FixedClock(NOON)
    warm = WarmOffers(lambda: database, lambda: RATES, clock)
    for _ in range(3):
        assert warm.answer(OfferWords(), limit=EVERY).offers == scanned(offers, OfferWords(), RATES, clock)
        warm.settle()
    assert len(tried) == 1, "building is not tried again with every query"


def test_concurrent_queries_build_one_index(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    built: Callable[..., Any] = service.OfferIndex
    running = threading.Semaphore(1)

    def alone(*words: Any) -> Any:
        assert running.acquire(blocking=False), "two indexes are built at the same time"
        try:
            return built(*words)
        finally:
            running.release()

    monkeypatch.setattr(service, "OfferIndex", alone)
    imported(database, random_offers(Random(5), 60))
    warm = WarmOffers(lambda: database, lambda: RATES, FixedClock(NOON))
    found: list[tuple[Offer, ...]] = []
    threads = [
        threading.Thread(target=lambda: found.append(warm.answer(OfferWords(), limit=9).offers))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    warm.settle()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert held(warm) is not None


def test_closing_stops_building(database: Database) -> None:
    imported(database, random_offers(Random(6), 60))
    warm = WarmOffers(lambda: database, lambda: RATES, FixedClock(NOON))
    warm.answer(OfferWords(), limit=1)
    warm.close()
    assert not any(thread.name == "offers" for thread in threading.enumerate())
    assert warm.answer(OfferWords(), limit=1).offers, "the store still answers"
