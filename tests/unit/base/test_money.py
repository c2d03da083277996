"""Converting back or changing the period never changes an amount of money."""

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.exchange import Exchanged, Rate, Rates
from teraflock.base.money import (
    SECONDS,
    Money,
    Period,
    Price,
    amount_text,
    decimal_text,
    divided,
    micros_per,
    parse_micros,
)

amounts = st.integers(-(10**15), 10**15)
prices = st.builds(Price, st.integers(0, 10**13), st.just("USD"), st.sampled_from(list(SECONDS)))
CURRENCIES = ("USD", "CNY", "EUR", "JPY")
rates = st.builds(
    lambda micros: Rates(
        Rate(date(2024, 1, 1), c, m, "test") for c, m in zip(CURRENCIES[1:], micros, strict=True)
    ),
    st.tuples(*[st.integers(1_000, 10**9)] * 3),
)
ON = date(2026, 1, 1)


@given(amounts, rates, st.lists(st.sampled_from(CURRENCIES), max_size=6), st.sampled_from(CURRENCIES))
def test_converting_back_returns_the_quoted_amount(
    micros: int, table: Rates, way: list[str], start: str
) -> None:
    quoted = Money(micros, start)
    amount: Money | Exchanged = quoted
    for currency in way:
        amount = table.exchange(amount, currency, on=ON)
    assert table.exchange(amount, start, on=ON).money == quoted


@given(amounts, rates, st.sampled_from(CURRENCIES), st.sampled_from(CURRENCIES))
def test_an_exchange_is_the_exact_amount_rounded_once(
    micros: int, table: Rates, start: str, end: str
) -> None:
    exact = Fraction(micros) * table.rate(end, ON).micros_per_usd / table.rate(start, ON).micros_per_usd
    converted = table.exchange(Money(micros, start), end, on=ON).money
    assert converted.currency == end
    assert abs(converted.micros - exact) <= Fraction(1, 2)


@given(prices)
def test_every_price_has_an_exact_amount_per_month(price: Price) -> None:
    exact = Fraction(price.micros) / SECONDS[price.per] * SECONDS["month"]
    assert price.micros_per_month == exact


@given(prices, st.sampled_from(list(SECONDS)))
def test_converting_the_period_is_exact_to_half_a_micro_unit(price: Price, per: Period) -> None:
    exact = Fraction(price.micros_per_month) * SECONDS[per] / SECONDS["month"]
    assert abs(micros_per(price.micros_per_month, per) - exact) <= Fraction(1, 2)


@given(st.integers(-(10**20), 10**20), st.integers(-(10**9), 10**9).filter(bool))
def test_rounding_is_half_to_even(numerator: int, denominator: int) -> None:
    assert divided(numerator, denominator) == round(Fraction(numerator, denominator))


@given(st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, allow_infinity=False, places=6))
def test_six_decimals_are_parsed_exactly(value: object) -> None:
    assert Fraction(parse_micros(str(value))) == Fraction(str(value)) * 10**6


@given(st.one_of(st.integers(-1_000, 1_000), amounts))
def test_only_zero_is_shown_as_zero(micros: int) -> None:
    shown = amount_text(micros, "USD").removesuffix(" USD").replace(",", "")
    assert bool(float(shown)) == bool(micros)


@given(st.integers(-(10**15), 10**15), st.integers(0, 6))
def test_formatted_amounts_parse_back(micros: int, decimals: int) -> None:
    text = decimal_text(micros, decimals).replace(",", "")
    assert abs(parse_micros(text) - micros) * 2 <= 10 ** (6 - decimals)


@pytest.mark.parametrize(
    "text", ["", " ", ".", "-", "abc", "1.2.3", "NaN", "inf", "1e99", "٣", "1,5", "0x10", "--1", "1_000"]
)
def test_invalid_amounts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_micros(text)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1.275", 1_275_000),
        ("1e-05", 10),
        (".5", 500_000),
        ("5.8854999999999995", 5_885_500),
        ("-2", -2_000_000),
        ("0.0000005", 0),
        ("0.0000015", 2),
    ],
)
def test_amounts_are_parsed(text: str, micros: int) -> None:
    assert parse_micros(text) == micros
