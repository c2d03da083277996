"""A deadline is understood as people write it, and never silently wrong."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.plan.deadline import DAYS, deadline_at, deadline_hours

MONDAY = datetime(2026, 11, 16, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("36h", 36),
        ("5d", 120),
        ("5 days", 120),
        ("2w", 336),
        ("2 weeks", 336),
        ("1d12h", 36),
        ("1 day 12 hours", 36),
        ("90min", 1.5),
        ("in 3 hours", 3),
        ("1.5d", 36),
        ("today", 14 - 1 / 3600),
        ("tomorrow", 38 - 1 / 3600),
        ("friday", 4 * 24 + 14 - 1 / 3600),
        ("Fri", 4 * 24 + 14 - 1 / 3600),
        ("by friday", 4 * 24 + 14 - 1 / 3600),
        ("friday 18:00", 4 * 24 + 8),
        ("monday", 14 - 1 / 3600),
        ("2026-11-20", 4 * 24 + 14 - 1 / 3600),
        ("2026-11-20T18:00", 4 * 24 + 8),
        ("2026-11-20 18:00", 4 * 24 + 8),
        ("2026-11-20T18:00Z", 4 * 24 + 8),
        ("2026-11-20T18:00+08:00", 4 * 24),
    ],
)
def test_a_deadline_is_understood(text: str, hours: float) -> None:
    assert deadline_hours(text, MONDAY) == pytest.approx(hours)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "5",
        "5x",
        "t",
        "fr",
        "s",
        "friday 25:00",
        "2026-13-01",
        "5d later",
        "nanh",
        "next friday",
        "1d 2",
    ],
)
def test_what_is_not_a_deadline_is_an_error_with_a_hint(text: str) -> None:
    with pytest.raises(BadInput, match="is not a deadline") as caught:
        deadline_hours(text, MONDAY)
    assert "friday" in caught.value.hint


@pytest.mark.parametrize("text", ["2020-01-01", "2026-11-16T09:59", "0h", "monday 09:00"])
def test_a_deadline_in_the_past_is_an_error(text: str) -> None:
    with pytest.raises(BadInput, match="has passed"):
        deadline_hours(text, MONDAY)


def test_a_deadline_too_far_away_is_an_error() -> None:
    with pytest.raises(BadInput, match="too far away"):
        deadline_hours("999999999w", MONDAY)


@given(st.sampled_from(DAYS), st.integers(0, 2**31), st.integers(-12, 14))
def test_the_name_of_a_day_is_the_end_of_the_next_such_day(day: str, seconds: int, zone: int) -> None:
    here = (MONDAY + timedelta(seconds=seconds)).astimezone(timezone(timedelta(hours=zone)))
    at = deadline_at(day, here)
    assert at is not None
    assert DAYS[at.weekday()] == day
    assert (at.hour, at.minute, at.tzinfo) == (23, 59, UTC)
    assert timedelta(seconds=-1) < at - here < timedelta(days=7)


@given(st.text(max_size=30))
def test_any_text_is_understood_or_refused(text: str) -> None:
    with suppress(BadInput):
        assert 0 < deadline_hours(text, MONDAY) <= 1e6


def test_only_dates_and_days_have_a_time_to_show() -> None:
    assert deadline_at("36h", MONDAY) is None
    shifted = deadline_at("2026-11-20T18:00+08:00", MONDAY)
    assert (shifted, shifted and shifted.tzinfo) == (datetime(2026, 11, 20, 10, tzinfo=UTC), UTC)
    assert deadline_at("9999-12-31T23:59-12:00", MONDAY) is None
    assert deadline_at("2026-11-20T18:00", MONDAY) == datetime(2026, 11, 20, 18, tzinfo=UTC)
