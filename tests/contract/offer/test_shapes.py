"""Shapes group the offers: the same on both databases, stored or computed, for some or all regions."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.contract.offer.test_search import put
from tests.unit.offer.random_offers import random_offers

from teraflock.catalog.places import PlaceFilter, located, place_filter
from teraflock.offer import store
from teraflock.offer.model import DOUBTFUL_PRICE, WITH_GPU, Offer
from teraflock.offer.place.store import places
from teraflock.offer.shape import store as shape_store
from teraflock.storage.database import Database

FIELDS = (
    "provider", "instance_type", "kind", "gpu", "gpu_name", "gpu_count", "gpu_share", "gpu_memory_bytes", "vcpus",
    "ram_bytes", "mode", "term_months", "standing", "currency", "as_of", "outdated",
)  # fmt: skip


def grouped(offers: list[Offer], wanted: PlaceFilter) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the lowest price and the number of offers of each shape."""
    found: dict[tuple[Any, ...], list[Offer]] = {}
    for offer in offers:
        here = located(offer.provider, offer.region, offer.zone, wanted) == "in"
        if offer.kind in WITH_GPU and here:
            doubtful = any(flag in offer.flags for flag in DOUBTFUL_PRICE)
            found.setdefault((*(getattr(offer, name) for name in FIELDS), doubtful), []).append(offer)
    return {
        key: (
            min(
                (o.price_micros_per_month for o in group if o.price_micros_per_month is not None),
                default=None,
            ),
            len(group),
        )
        for key, group in found.items()
    }


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), regions=st.sampled_from([(), ("US-",), ("germany",), ("île", "50%_")]))
def test_shapes_equal_the_grouped_offers(database: Database, seed: int, regions: tuple[str, ...]) -> None:
    wanted = place_filter(regions, (), ())
    random = Random(seed)
    once = random_offers(random, random.choice((0, 1, 12, 60)))
    again = [  # the same from a second source, with another, uncertain price
        replace(
            offer,
            id=offer.id + 10**9,
            source="other" if offer.source == "shipped" else "shipped",
            price_micros_per_month=random.randrange(10**9) if offer.standing == "priced" else None,
            flags=random.choice(((), ("from-price",), offer.flags)),
        )
        for offer in once
        if random.random() < 0.5
    ]
    offers = once + again
    put(database, offers)

    def shape(tx: Any) -> None:
        for name in ("shipped", "other"):
            shape_store.update_shapes(tx, name)

    database.write(shape)
    with database.read() as tx:
        shapes = shape_store.shapes(tx, places(tx, wanted).inside if wanted else None)
        assert {offer.id for offer in store.with_gpu(tx)} == {o.id for o in offers if o.kind in WITH_GPU}
        assert store.without_any_gpu(tx) == sum(offer.kind == "none" for offer in offers)
    found = {shape_store.shape_key(each): (each.price_micros_per_month, each.offers) for each in shapes}
    assert len(found) == len(shapes)
    assert found == grouped(offers, wanted)
    assert {shape_store.shape_key(offer) for offer in offers if offer.kind in WITH_GPU} >= found.keys()


@pytest.mark.parametrize("flags", [(), ("from-price",), ("host-added",)])
def test_an_offer_and_its_shape_have_the_same_key(flags: tuple[str, ...]) -> None:
    (offer,) = (replace(each, kind="gpu", flags=flags) for each in random_offers(Random(3), 1))
    assert shape_store.shape_key(offer)[-1] == bool(set(flags) & set(DOUBTFUL_PRICE))
