"""Amounts, counts and the details of events as text."""

from teraflock.base.quantities import count_text, memory_text
from teraflock.words.money import amount_column, years_text
from teraflock.words.text import details_text


def test_amounts_of_a_column_have_equal_decimals() -> None:
    assert amount_column([12_500_000, 2_100], "USD") == ["12.5000 USD", "0.0021 USD"]
    assert amount_column([12_500_000, 0], "USD") == ["12.50 USD", "0.00 USD"]


def test_counts_use_singular_and_plural() -> None:
    assert (years_text(1), years_text(3)) == ("1 year", "3 years")
    assert (count_text(1, "instance"), count_text(1_200, "charge")) == ("1 instance", "1,200 charges")


def test_less_than_a_gigabyte_is_shown_in_megabytes() -> None:
    assert memory_text(256 << 20) == "256 MB"
    assert memory_text(3 << 29) == "1.5 GB"
    assert memory_text(0) == "0 GB"


def test_event_details_show_amounts_and_times() -> None:
    said = {
        "spent_micros": 3_252_895,
        "currency": "USD",
        "stop_at_us": 1_794_700_800_000_000,
        "micros_per_hour": 500,
    }
    assert details_text(said) == "spent=3.25USD stop_at=2026-11-15T00:00:00Z per_hour=0.0005USD"
