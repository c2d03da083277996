"""Views of offers: folded lines, one line per instance type, comparisons of providers."""

from datetime import date
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.offer.random_offers import ON, RATES, random_offers

from teraflock.base.exchange import Rate, Rates
from teraflock.offer.comparison import by_card, by_provider, cheapest_of_each
from teraflock.offer.model import Offer, Query
from teraflock.offer.rules import folded, measure, sort_key, weights
from teraflock.offer.types import by_type

SEEDS = st.integers(0, 2**32)


def in_order(seed: int, sort: str = "price") -> list[Offer]:
    offers = random_offers(Random(seed), 60)
    return sorted(offers, key=sort_key(Query(sort=sort, gpus=("A100-SXM4-40",)), weights(RATES, ON)))  # type: ignore[arg-type]


def without_place(offer: Offer) -> tuple[object, ...]:
    return (
        offer.provider, offer.instance_type, offer.gpu or offer.gpu_name, offer.gpu_count, offer.gpu_share, offer.vcpus,
        offer.ram_bytes, offer.mode, offer.currency, offer.price_micros_per_month, offer.standing, offer.as_of,
        offer.source, offer.flags,
    )  # fmt: skip


@settings(deadline=None)
@given(SEEDS)
def test_equal_offers_share_exactly_one_line(seed: int) -> None:
    offers = [offer for offer in in_order(seed) if offer.standing == "priced"]
    lines = list(folded(offers))
    assert sum(line.offers for line in lines) == len(offers)
    keys = [without_place(line.offer) for line in lines]
    assert len(keys) == len(set(keys))
    prices = [offer.price_micros_per_month for offer in offers if offer.currency == "USD"]
    shown = [line.offer.price_micros_per_month for line in lines if line.offer.currency == "USD"]
    assert shown == sorted(shown, key=prices.index)


def test_spot_rows_between_equal_rows_do_not_split_them() -> None:
    def offer(region: str, mode: str) -> Offer:
        return Offer(
            source="s", provider="runpod", kind="gpu", standing="priced", gpu="MI300X", region=region,
            mode=mode, currency="USD", price_micros_per_month=1,  # type: ignore[arg-type]
        )  # fmt: skip

    mixed = [offer(region, mode) for region in ("CA", "FI", "US") for mode in ("on-demand", "spot")]
    assert [(line.offer.mode, line.places) for line in folded(mixed)] == [
        ("on-demand", ("CA", "FI", "US")),
        ("spot", ("CA", "FI", "US")),
    ]


@settings(deadline=None)
@given(SEEDS)
def test_a_type_shows_the_first_offer_of_each_mode(seed: int) -> None:
    offers = in_order(seed)
    lines = by_type(offers)
    assert sum(line.offers for line in lines) == len(offers)
    for line in lines:
        for mode, best in line.best.items():
            same = [
                each
                for each in offers
                if (each.mode or "unknown") == mode
                and (each.provider, each.instance_type, each.gpu, each.gpu_count, each.gpu_share)
                == (best.provider, best.instance_type, best.gpu, best.gpu_count, best.gpu_share)
                and (each.gpu_memory_bytes, each.vcpus, each.ram_bytes)
                == (best.gpu_memory_bytes, best.vcpus, best.ram_bytes)
            ]
            assert same[0] == best


@settings(deadline=None)
@given(SEEDS)
def test_a_provider_has_one_row_with_its_cheapest_price(seed: int) -> None:
    offers = in_order(seed, "price-per-gpu")
    found = cheapest_of_each(offers, with_retired=True).cheapest
    assert sum(each.offers for each in found) == len(offers)
    rows = by_provider(found)
    assert sorted(row.provider for row in rows) == sorted({offer.provider for offer in offers})
    for row in rows:
        for mode, best in row.best.items():
            same = [o for o in offers if (o.provider, o.mode or "unknown") == (row.provider, mode)]
            gpus = [each for each in same if each.kind != "other"] or same
            priced = [each for each in gpus if each.standing == "priced"] or gpus
            assert best.standing == priced[0].standing
            assert best.kind == "other" or priced[0].kind != "other"
            if best.standing == "priced":
                assert best == priced[0]
    assert {(row.provider, row.gpu) for row in by_card(found)} == {
        (o.provider, o.gpu) for o in offers if o.gpu
    }


def test_weights_of_many_currencies_stay_exact_and_small() -> None:
    codes = [f"{a}{b}Z" for a in "ABCDEFGHIJ" for b in "ABCDEFGHIJ"]
    rates = Rates([Rate(date(2024, 1, 1), code, 1_000 + 1_000 * i, "test") for i, code in enumerate(codes)])
    found = weights(rates, ON)
    assert len({weight * rates.rate(code, ON).micros_per_usd for code, weight in found.items()}) == 1
    assert max(found.values()) < 1e200, "a price times a weight must fit a float"


@settings(deadline=None)
@given(SEEDS)
def test_a_measure_is_the_divisor_of_the_sort(seed: int) -> None:
    weight = weights(RATES, ON)
    for sort in ("price-per-fp64", "price-per-int8", "price-per-gb"):
        key = sort_key(Query(sort=sort), weight)
        for offer in random_offers(Random(seed), 20):
            units = measure(offer, sort)
            rank, value = key(offer)[:2]
            if offer.standing == "priced" and units:
                assert rank == 0
                assert abs(
                    value * units - (offer.price_micros_per_month or 0) * weight[offer.currency]
                ) <= 1e-9 * (1 + abs(value * units))
            elif offer.standing == "priced":
                assert rank == 1
