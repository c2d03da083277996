"""Implausible prices, limits in other currencies, dates of a price, and lines of equal offers."""

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.offer.random_offers import ON, RATES

from teraflock.base.exchange import Rates
from teraflock.base.money import MICROS
from teraflock.offer.intake import Rejected, Row
from teraflock.offer.model import Offer, PriceLimit, Query
from teraflock.offer.pairing import spot_checked
from teraflock.offer.rules import (
    LARGEST_STORED,
    first_day,
    folded,
    implausible_price,
    in_currency,
    limit_per_month,
    matches,
    sort_key,
    spot_faults,
    weights,
)

CURRENCIES = st.sampled_from(("USD", "CNY", "EUR"))
OFFER = Offer(
    source="test", provider="aws", instance_type="g4", kind="gpu", gpu="T4", gpu_count=1, standing="priced",
    currency="USD", price_micros_per_month=384_000_000, mode="on-demand", since="2022-07", as_of="2022-07",
)  # fmt: skip


# --- implausible prices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usd_per_hour", "count", "share", "tflops", "fault"),
    [
        (0.0, 1, 1.0, None, "the price is zero"),
        (0.0, 0, 1.0, None, "the price is zero"),
        (0.01, 1, 1.0, 19.5, "0.0100 USD per GPU-hour is implausibly low"),
        (0.08, 8, 1.0, 19.5, "0.0100 USD per GPU-hour is implausibly low"),
        (0.0149, 1, 1.0, None, "0.0149 USD per GPU-hour is implausibly low"),
        (0.015, 1, 1.0, None, ""),
        (0.0039, 1, 0.25, None, ""),
        (0.03, 1, 1.0, 104.8, "0.0300 USD per GPU-hour is implausibly low"),
        (0.01, 0, 1.0, None, ""),
    ],
)
def test_implausible_prices(
    usd_per_hour: float, count: int, share: float, tflops: float | None, fault: str
) -> None:
    found = implausible_price(round(usd_per_hour * MICROS), count, share, tflops)
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


@pytest.mark.parametrize(
    ("spot", "on_demand", "refused", "flagged"),
    [
        (500_000, 1_000_000, False, False),
        (1_000_000, 1_000_000, False, True),  # RunPod repeats the on-demand price as spot price
        (1_000_001, 1_000_000, False, True),  # a rounding error
        (1_000_100, 1_000_000, False, True),
        (1_000_101, 1_000_000, True, False),
        (2_000_000, 1_000_000, True, False),
        (2_000_000, None, False, False),
        (2_000_000, 0, False, False),
    ],
)
def test_spot_above_on_demand(spot: int, on_demand: int | None, refused: bool, flagged: bool) -> None:
    fault, flags = spot_faults(spot, on_demand)
    assert (fault == "the spot price is above the on-demand price") == refused
    assert flags == (("spot-not-cheaper",) if flagged else ())


def spot_and_on_demand(spot: int, on_demand: int) -> list[Row | Rejected]:
    return [
        Row(where="1", provider="aws", instance_type="g4", mode="spot", price_micros=spot),
        Rejected("2", "something else"),
        Row(where="3", provider="aws", instance_type="g4", mode="on-demand", price_micros=on_demand),
        Row(where="4", provider="gcp", instance_type="g4", mode="spot", price_micros=9 * spot),
    ]


def test_spot_is_compared_with_an_on_demand_row_that_comes_later() -> None:
    checked = {row.where: row for row in spot_checked(spot_and_on_demand(2_000_000, 1_000_000))}
    assert set(checked) == {"1", "2", "3", "4"}
    twin, stranger = checked["1"], checked["4"]
    assert isinstance(twin, Row)
    assert isinstance(stranger, Row)
    assert "above the on-demand price" in twin.fault
    assert stranger.fault == ""


def test_spot_per_hour_is_compared_with_on_demand_per_month() -> None:
    rows = [
        Row(where="1", provider="aws", mode="on-demand", price_micros=730 * MICROS, per="month"),
        Row(where="2", provider="aws", mode="spot", price_micros=MICROS, per="hour"),
    ]
    (spot,) = (row for row in spot_checked(rows) if row.where == "2")
    assert isinstance(spot, Row)
    assert (spot.fault, spot.flags) == ("", ("spot-not-cheaper",))


# --- limits and currencies -----------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), CURRENCIES, CURRENCIES, st.integers(0, 10**12))
def test_a_price_limit_is_exact(micros: int, currency: str, of_offer: str, price: int) -> None:
    limit = limit_per_month(PriceLimit(micros, currency, "hour"), of_offer, RATES, ON)
    per_usd = {each: RATES.rate(each, ON).micros_per_usd for each in (currency, of_offer)}
    within = Fraction(price, per_usd[of_offer]) <= Fraction(micros * 730, per_usd[currency])
    assert (price <= limit) == within


def test_a_huge_price_limit_fits_a_column() -> None:
    limit = PriceLimit(10**40, "USD", "month")
    assert {limit_per_month(limit, each, RATES, ON) for each in ("USD", "CNY", "EUR")} == {LARGEST_STORED}
    assert matches(OFFER, Query(price_max=limit), RATES, ON)


@given(st.integers(0, 10**15), CURRENCIES, CURRENCIES)
def test_a_price_in_another_currency_is_rounded_once(micros: int, currency: str, to: str) -> None:
    exact = Fraction(micros * RATES.rate(to, ON).micros_per_usd, RATES.rate(currency, ON).micros_per_usd)
    assert in_currency(micros, currency, to, RATES, ON) == round(exact)  # half to even
    assert in_currency(micros, currency, currency, RATES, ON) == micros


def test_currencies_are_compared_exactly() -> None:
    key = sort_key(Query(), weights(RATES, ON))
    dollar = replace(OFFER, price_micros_per_month=1_000_000)
    yuan = replace(OFFER, currency="CNY", price_micros_per_month=7_189_000)
    assert key(dollar)[:2] == key(yuan)[:2]
    assert key(replace(yuan, price_micros_per_month=7_189_001)) > key(dollar)
    assert key(replace(yuan, price_micros_per_month=7_188_999)) < key(dollar)


def test_the_rate_of_the_day_is_used() -> None:
    limit = PriceLimit(7_000_000, "CNY", "month")
    one_dollar = replace(OFFER, price_micros_per_month=1_000_000)
    assert matches(one_dollar, Query(price_max=limit), RATES, date(2019, 6, 1))
    assert not matches(one_dollar, Query(price_max=limit), RATES, ON)


def test_dollars_need_no_rates() -> None:
    assert in_currency(5, "USD", "USD", Rates([]), ON) == 5


# --- days ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "day"),
    [("2019", "2019-01-01"), ("2019-07", "2019-07-01"), ("2019-07-15", "2019-07-15"), ("", "")],
)
def test_the_first_day_of_a_partial_date(text: str, day: str) -> None:
    assert first_day(text) == day


@pytest.mark.parametrize(
    ("on", "is_current"),
    [
        (date(2022, 6, 30), False),
        (date(2022, 7, 1), True),
        (date(2023, 1, 31), True),
        (date(2023, 2, 1), False),
    ],
)
def test_a_price_is_current_until_the_next_one_starts(on: date, is_current: bool) -> None:
    past = replace(OFFER, until="2023-02")
    assert matches(past, Query(as_of=on), RATES, on) == is_current


def test_a_missing_figure_fails_its_filter() -> None:
    assert not matches(OFFER, Query(vcpus_min=0), RATES, ON)
    assert not matches(OFFER, Query(ram_bytes_min=0), RATES, ON)
    assert not matches(OFFER, Query(memory_bytes_min=1), RATES, ON)
    doubtful = replace(OFFER, ram_bytes=1 << 40, flags=("suspect:ram",))
    assert not matches(doubtful, Query(ram_bytes_min=1), RATES, ON)


# --- lines ---------------------------------------------------------------------------------------------------------


def test_offers_that_differ_only_in_place_share_a_line() -> None:
    offers = [
        replace(OFFER, id=1, region="us-east-1"),
        replace(OFFER, id=2, region="us-west-2"),
        replace(OFFER, id=3, region="us-east-1", zone="b"),
        replace(
            OFFER,
            id=7,
            region="us-east-1",
            zone="c",
            price_micros_per_month=(OFFER.price_micros_per_month or 0) + 100_000,
        ),
        replace(OFFER, id=4, region="us-east-1", price_micros_per_month=385_000_000),
        replace(OFFER, id=5, region="eu", mode="spot"),
        replace(OFFER, id=6, region="US|Germany|UK", mode="spot"),
    ]
    lines = list(folded(offers))
    assert [(line.offer.id, line.places, line.offers) for line in lines] == [
        (1, ("us-east-1", "us-west-2"), 4),
        (4, ("us-east-1",), 1),
        (5, ("eu", "US", "Germany", "UK"), 2),
    ]
    assert sum(line.offers for line in lines) == len(offers)
