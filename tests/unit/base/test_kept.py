"""Large results are kept for a few seconds; small ones are always fresh."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.clock import FixedClock
from teraflock.base.kept import AGE_MAX, ENTRIES_MAX, ROWS_PER_SECOND, Kept

START = datetime(2026, 11, 1, tzinfo=UTC)


@given(
    rows=st.integers(0, 50_000),
    asked=st.lists(st.tuples(st.integers(0, 2 * ENTRIES_MAX), st.integers(-3, 12)), max_size=40),
)
def test_nothing_is_older_than_its_size_allows(rows: int, asked: list[tuple[int, int]]) -> None:
    clock = FixedClock(START)
    kept: Kept[tuple[int, datetime]] = Kept(clock)
    age_max = min(AGE_MAX, timedelta(seconds=rows // ROWS_PER_SECOND))
    for key, seconds in asked:
        clock.move(timedelta(seconds=seconds))
        found, made_at = kept.get(key, lambda key=key: ((key, clock.now()), rows))  # type: ignore[misc]
        assert found == key
        assert made_at == clock.now() or timedelta(0) <= clock.now() - made_at < age_max


def test_a_large_result_is_made_once() -> None:
    clock = FixedClock(START)
    made: list[datetime] = []
    kept: Kept[datetime] = Kept(clock)

    def make() -> tuple[datetime, int]:
        made.append(clock.now())
        return made[-1], 9 * ROWS_PER_SECOND

    for _ in range(9):
        assert kept.get("all", make) == START
        clock.move(timedelta(seconds=1))
    assert made == [START]
