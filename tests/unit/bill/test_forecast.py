"""The forecast of a month."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.bill.service import forecast
from teraflock.bill.times import microseconds, month_bounds

MIDDLE = microseconds(datetime(2026, 11, 16, tzinfo=UTC))


@pytest.mark.parametrize(
    ("month", "expected"),
    [("2026-11", 1_000_000 + 15 * 24 * 2_000_000), ("2026-10", 1_000_000), ("2026-12", 1_000_000)],
)
def test_only_the_current_month_grows(month: str, expected: int) -> None:
    assert forecast(1_000_000, 2_000_000, month, MIDDLE) == expected


@given(st.integers(0, 10**15), st.integers(0, 10**12), st.integers(*month_bounds("2026-11")))
def test_a_forecast_is_never_below_what_is_spent(spent: int, rate: int, now_us: int) -> None:
    assert forecast(spent, rate, "2026-11", now_us) >= spent
