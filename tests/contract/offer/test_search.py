"""Every query gives the same result as a full scan: from the store on both databases, and from the index."""

from datetime import date
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.offer.random_offers import ON, RATES, random_offers, random_query

from teraflock.catalog.places import PlaceFilter, located, place_filter
from teraflock.offer.index import service as index_service
from teraflock.offer.index.service import OfferIndex
from teraflock.offer.model import Offer, Query, Source
from teraflock.offer.question import store as question_store
from teraflock.offer.rules import matches, shows_outdated, sort_key, weights
from teraflock.offer.source import store as source_store
from teraflock.storage.database import Database, Transaction

EXAMPLES = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SEEDS = st.integers(0, 2**32)
SIZES = (0, 1, 2, 12, 60)
QUERIES = 25


def scanned(all_offers: list[Offer], query: Query, on: date = ON) -> list[Offer]:
    fitting = [offer for offer in all_offers if matches(offer, query, RATES, on)]
    return sorted(fitting, key=sort_key(query, weights(RATES, on)))


def put(database: Database, standing: list[Offer], past: list[Offer] = []) -> None:  # noqa: B006
    def work(tx: Transaction) -> None:
        for table in ("offer", "offer_past", "offer_source"):
            tx.run(f"DELETE FROM {table}")
        source_store.add(tx, ((offer, offer.id, offer.since) for offer in past), 1)
        tx.run("INSERT INTO offer_past SELECT * FROM offer")
        tx.run("DELETE FROM offer")
        source_store.add(tx, ((offer, offer.id, offer.since) for offer in standing), 2)
        for name in ("shipped", "other"):
            source = Source(
                name=name, layout="teraflock", import_number=2, place="", checksum="", as_of="", imported_at="",
                offers=0, currencies="CNY EUR USD",
            )  # fmt: skip
            source_store.put_source(tx, source)
            source_store.update_counts(tx, name)

    database.write(work)


@EXAMPLES
@given(seed=SEEDS)
def test_the_store_equals_a_full_scan(database: Database, seed: int) -> None:
    random = Random(seed)
    all_offers = random_offers(random, random.choice(SIZES))
    put(database, all_offers)
    with database.read() as tx:
        for query in (random_query(random) for _ in range(QUERIES)):
            expected = scanned(all_offers, query)
            assert list(question_store.search(tx, query, RATES, ON)) == expected
            summary = question_store.summarise(tx, query, RATES, ON)
            assert summary.matched == len(expected)
            assert summary.newest == max((offer.as_of for offer in expected), default="")
            assert summary.oldest == min((offer.as_of for offer in expected if offer.as_of), default="")


@EXAMPLES
@given(seed=SEEDS)
def test_past_prices_equal_a_full_scan(database: Database, seed: int) -> None:
    random = Random(seed)
    standing = random_offers(random, random.choice(SIZES))
    ended = [
        replace(offer, until=random.choice(("2019", "2020-02", "2022-07-15"))) for offer in standing[::2]
    ]
    standing = standing[1::2]
    put(database, standing, ended)
    with database.read() as tx:
        for _ in range(QUERIES):
            day = random.choice((date(2018, 1, 1), date(2019, 6, 30), date(2022, 7, 15), ON))
            query = replace(random_query(random), as_of=day)
            assert list(question_store.search(tx, query, RATES, day)) == scanned(standing + ended, query, day)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_the_index_equals_a_full_scan(seed: int) -> None:
    random = Random(seed)
    all_offers = random_offers(random, random.choice(SIZES))
    index = OfferIndex(all_offers, RATES, ON)
    for query in (random_query(random) for _ in range(QUERIES)):
        expected = scanned(all_offers, query)
        limit = random.randrange(1, len(all_offers) + 5)
        assert index.search(query, limit=limit) == tuple(expected[:limit])
        assert index.search(query, limit=len(all_offers) + 1) == tuple(expected)


@EXAMPLES
@given(seed=SEEDS)
def test_an_empty_result_names_the_filter_that_caused_it(database: Database, seed: int) -> None:
    random = Random(seed)
    all_offers = random_offers(random, random.choice(SIZES))
    put(database, all_offers)
    with database.read() as tx:
        for query in (random_query(random) for _ in range(QUERIES)):
            removal = question_store.removal(tx, query, RATES, ON)
            shown = scanned(all_offers, replace(query, refused=True))
            assert (removal is None) == bool(shown)
            assert removal is None or (removal.removed <= len(all_offers) and removal.filter.startswith("--"))


@EXAMPLES
@given(seed=SEEDS)
def test_excluded_offers_are_counted(database: Database, seed: int) -> None:
    random = Random(seed)
    all_offers = random_offers(random, random.choice(SIZES))
    put(database, all_offers)
    with database.read() as tx:
        for query in (random_query(random) for _ in range(QUERIES)):
            everything = replace(query, refused=True)
            refused = question_store.summarise(tx, query, RATES, ON).refused
            assert refused == sum(
                o.standing == "refused" and matches(o, everything, RATES, ON)
                for o in all_offers
                if not query.refused  # otherwise none is excluded for its price
            )
            summary = question_store.summarise(tx, query, RATES, ON)
            if query.refused:  # refused offers are counted apart
                assert (summary.slices, summary.outdated) == _hidden(all_offers, query)
            without = replace(everything, gpus=(), kinds=("none",))
            assert question_store.without_gpu(tx, query, RATES, ON) == sum(
                matches(o, without, RATES, ON) for o in all_offers
            )


def _hidden(offers: list[Offer], query: Query) -> tuple[int, int]:
    """Count the slices that are hidden, and the outdated offers that are hidden only for that reason."""
    found = [o for o in offers if matches(o, replace(query, slices=True, outdated=True), RATES, ON)]
    slices = [o for o in found if o.gpu_share < 1 and not query.slices]
    return len(slices), sum(o.outdated and not shows_outdated(query) for o in found if o not in slices)


def test_the_index_asks_about_places_once_for_each_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def counted(provider: str, region: str, zone: str, wanted: PlaceFilter) -> str:
        nonlocal asked
        asked += 1
        return located(provider, region, zone, wanted)

    monkeypatch.setattr(index_service, "located", counted)
    monkeypatch.setattr(index_service, "PLACE_FILTERS_MAX", 2)
    all_offers = random_offers(Random(1), 60)
    index = OfferIndex(all_offers, RATES, ON)
    counts = []
    for region in ("US", "US", "EU", "germany", "US", "germany"):
        query = Query(places=place_filter((region,), (), ()))
        assert list(index.search(query, limit=99)) == scanned(all_offers, query)
        counts.append(asked)
    assert counts[1] == counts[0] > 0  # known
    assert counts[4] > counts[3] > counts[2] > counts[1]  # new, or forgotten: two are kept
    assert counts[5] == counts[4]
