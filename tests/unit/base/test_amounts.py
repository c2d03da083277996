"""Amounts of money and large numbers are read as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.amounts import SHARED_SYMBOLS, SYMBOLS, parse_large_number, parse_money
from teraflock.base.errors import BadInput
from teraflock.base.money import Money
from teraflock.base.quantities import significant_text


@pytest.mark.parametrize(
    ("text", "money"),
    [
        ("100", Money(100_000_000, "CNY")),
        ("$100", Money(100_000_000, "USD")),
        ("$ 100", Money(100_000_000, "USD")),
        ("100$", Money(100_000_000, "USD")),
        ("US$1,000.50", Money(1_000_500_000, "USD")),
        ("100 EUR", Money(100_000_000, "EUR")),
        ("100eur", Money(100_000_000, "EUR")),
        ("EUR 100", Money(100_000_000, "EUR")),
        ("€.5", Money(500_000, "EUR")),
        ("2k", Money(2_000_000_000, "CNY")),
        ("1.5M USD", Money(1_500_000_000_000, "USD")),
        ("100KRW", Money(100_000_000, "KRW")),
        ("100MXN", Money(100_000_000, "MXN")),
        ("₩50000", Money(50_000_000_000, "KRW")),
        ("500元", Money(500_000_000, "CNY")),
        ("0", Money(0, "CNY")),
    ],
)
def test_an_amount_is_understood(text: str, money: Money) -> None:
    assert parse_money(text, "CNY") == money


@pytest.mark.parametrize(
    "text",
    [
        "",
        "$",
        "much",
        "1.2.3",
        "10,5",
        "1,00",
        "1.000,50",
        "$100 EUR",
        "100 bucks",
        "1e5",
        "nan",
        "٣",
        "$1\n2",
    ],
)
def test_what_is_not_an_amount_is_an_error_with_a_hint(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_money(text, "USD")
    assert "not an amount of money" in caught.value.sentence
    assert "$100" in caught.value.hint


def test_a_negative_amount_is_an_error() -> None:
    with pytest.raises(BadInput, match="negative"):
        parse_money("-5", "USD")


@pytest.mark.parametrize("symbol", SHARED_SYMBOLS)
def test_a_symbol_of_several_currencies_is_never_guessed(symbol: str) -> None:
    with pytest.raises(BadInput, match="several currencies") as caught:
        parse_money(f"{symbol}100", "USD")
    assert "Write the code instead" in caught.value.hint


@given(st.integers(0, 10**15), st.sampled_from(sorted(SYMBOLS)))
def test_every_symbol_keeps_the_exact_amount(micros: int, symbol: str) -> None:
    text = f"{micros // 10**6}.{micros % 10**6:06}"
    assert parse_money(f"{symbol}{text}", "XXX") == Money(micros, SYMBOLS[symbol])


@pytest.mark.parametrize(
    ("text", "number"),
    [("1281167", 1281167), ("1,281,167", 1281167), ("1.28M", 1.28e6), ("500k", 5e5), ("2 B", 2e9), ("1e6", 1e6),
     (" 3 ", 3), (".5", 0.5)],
)  # fmt: skip
def test_a_large_number_is_understood(text: str, number: float) -> None:
    assert parse_large_number(text, "samples") == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "many", "-5", "nan", "inf", "1.2.3", "12,34", "5x"])
def test_what_is_not_a_number_names_the_option(text: str) -> None:
    with pytest.raises(BadInput, match="`--samples") as caught:
        parse_large_number(text, "samples")
    assert "1.28M" in caught.value.hint


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.00"), (0.0004, "0.0004000"), (12.3456, "12.35"), (1234.5, "1,234.50"), (0.5, "0.5000")],
)
def test_significant_digits_never_have_an_exponent(value: float, text: str) -> None:
    assert significant_text(value) == text
