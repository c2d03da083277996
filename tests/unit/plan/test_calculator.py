"""What a machine costs for a number of hours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.plan.calculator import for_hours


@pytest.mark.parametrize(
    ("mode", "hours", "term", "expected"),
    [
        ("on-demand", 100, None, (100_000_000, 0)),
        ("spot", 0, None, (0, 0)),
        ("monthly", 100, None, (730_000_000, 1)),
        ("monthly", 731, None, (1_460_000_000, 2)),
        ("reserved", 100, 12, (8_760_000_000, 12)),
    ],
)
def test_hours_cost_by_the_hour_or_for_whole_months(
    mode: str, hours: int, term: int | None, expected: tuple[int, int]
) -> None:
    total = for_hours(730_000_000, mode, hours, term)
    assert (total.micros, total.months) == expected


@given(st.integers(0, 10**12), st.integers(0, 10**5), st.sampled_from(["on-demand", "monthly"]))
def test_more_hours_never_cost_less(micros: int, hours: int, mode: str) -> None:
    assert for_hours(micros, mode, hours).micros <= for_hours(micros, mode, hours + 1).micros
