"""Token buckets, compared with a second calculation of what they should allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.api import limits
from teraflock.api.limits import RateLimit, RequestRates
from teraflock.base.errors import TooMany
from teraflock.tenant.model import Actor, KeyId, MemberId, OrganisationId


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
def test_bucket_allows_exactly_burst_and_rate(rate: int, burst: int, asked: list[tuple[float, str]]) -> None:
    seconds = Seconds()
    limit = RateLimit(rate, burst, seconds)
    tokens = {"a": float(burst), "b": float(burst)}
    for pause, who in asked:
        seconds.now += pause
        tokens = {each: min(burst, have + pause * rate) for each, have in tokens.items()}
        if abs(tokens[who] - 1) > 1e-6:  # at the boundary, rounding decides
            assert passes(limit, who) == (tokens[who] >= 1)
        else:
            tokens[who] += not passes(limit, who)
        if tokens[who] >= 1:
            tokens[who] -= 1


def test_request_after_the_announced_wait_is_accepted() -> None:
    seconds = Seconds()
    limit = RateLimit(2, 1, seconds)
    limit.take("k")
    with pytest.raises(TooMany) as refused:
        limit.take("k")
    wait = refused.value.context["retry_after_seconds"]
    assert isinstance(wait, int)
    seconds.now += wait
    limit.take("k")


def test_rate_of_zero_means_no_limit() -> None:
    limit = RateLimit(0, 1, Seconds())
    assert all(passes(limit) for _ in range(100))


def test_full_buckets_are_dropped_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
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


@given(st.integers(1, 50), st.integers(1, 50), st.floats(0, 500))
def test_tokens_taken_afterwards_delay_the_next_request(rate: int, burst: int, spent: float) -> None:
    seconds = Seconds()
    limit = RateLimit(rate, burst, seconds)
    limit.take("k")
    limit.spend("k", spent)
    left = burst - 1 - spent
    if abs(left - 1) > 1e-6:
        assert passes(limit) == (left >= 1)
    seconds.now += (spent + burst + 2) / rate
    assert passes(limit)


def actor(organisation: str, key: str, *, is_operator: bool = False) -> Actor:
    return Actor(
        key_id=KeyId(key),
        member_id=MemberId("mem_1"),
        member_name="ann",
        organisation_id=OrganisationId(organisation),
        is_operator=is_operator,
        roles={},
    )


def test_slow_reads_delay_only_their_own_organisation() -> None:
    rates = RequestRates(200, 1000, Seconds(), organisation_per_second=400)
    for number in range(100):
        who = actor("org_1", f"key_{number}")
        try:
            rates.asks(who)
        except TooMany:
            break
        rates.reads(who, 0.1)
    else:
        raise AssertionError("ten seconds of the processor were given away at once")
    rates.asks(actor("org_2", "key_x"))
    operator = actor("org_1", "key_o", is_operator=True)
    for _ in range(100):
        rates.asks(operator)
        rates.reads(operator, 10)


def test_zero_turns_all_limits_off() -> None:
    rates = RequestRates(0, 1, Seconds(), organisation_per_second=1, failures_per_minute=1)
    for _ in range(100):
        rates.asks(actor("org_1", "key_1"))
        rates.reads(actor("org_1", "key_1"), 60)
        rates.asks_openly("10.0.0.1")
        rates.fails("10.0.0.1")
