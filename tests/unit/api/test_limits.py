"""The bucket of tokens against a second account of what it should let pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.api import limits
from teraflock.api.limits import RateLimit
from teraflock.base.errors import TooMany


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def passes(limit: RateLimit, who: str = "k") -> bool:
    try:
        limit.take(who)
    except TooMany:
        return False
    return True


@given(
    st.integers(1, 50),
    st.integers(1, 50),
    st.lists(st.tuples(st.floats(0, 3), st.sampled_from("ab")), max_size=80),
)
def test_nobody_gets_more_than_the_burst_and_the_rate_and_all_get_that(
    rate: int, burst: int, asked: list[tuple[float, str]]
) -> None:
    seconds = Seconds()
    limit = RateLimit(rate, burst, seconds)
    tokens = {"a": float(burst), "b": float(burst)}
    for pause, who in asked:
        seconds.now += pause
        tokens = {each: min(burst, have + pause * rate) for each, have in tokens.items()}
        if abs(tokens[who] - 1) > 1e-6:  # on the edge, rounding decides
            assert passes(limit, who) == (tokens[who] >= 1)
        else:
            tokens[who] += not passes(limit, who)
        if tokens[who] >= 1:
            tokens[who] -= 1


def test_it_says_when_to_come_back_and_keeps_its_word() -> None:
    seconds = Seconds()
    limit = RateLimit(2, 1, seconds)
    limit.take("k")
    with pytest.raises(TooMany) as refused:
        limit.take("k")
    wait = refused.value.context["retry_after_seconds"]
    assert isinstance(wait, int)
    seconds.now += wait
    limit.take("k")


def test_no_rate_is_no_limit() -> None:
    limit = RateLimit(0, 1, Seconds())
    assert all(passes(limit) for _ in range(100))


def test_buckets_are_forgotten_once_full_and_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BUCKETS_MAX", 10)
    seconds = Seconds()
    limit = RateLimit(1, 5, seconds)
    for number in range(100):
        limit.take(str(number))
        assert len(limit) <= 11
    seconds.now += 100
    for _ in range(20):
        limit.take("one")
        seconds.now += 1
    assert len(limit) == 1
