"""Rate limits: token buckets in the memory of this process.

Each key has a bucket, each organisation has one for all its keys, and each address has one for requests without a valid
key. The reads of an organisation also have a bucket of processor time, because with SQLite they run in the event loop.
Operators' keys do not use the bucket of an organisation, so no tenant can empty it for them.

A bucket holds `burst` tokens and gets `per_second` new ones. Full buckets are dropped, so there are never more buckets
than recent clients, and never more than `BUCKETS_MAX`.
"""

import math
import threading
from collections.abc import Callable
from typing import Final

from teraflock.base.errors import TooMany
from teraflock.tenant.model import Actor

BUCKETS_MAX: Final = 10_000
"""Beyond this, the oldest bucket is dropped. Its owner gets a full bucket, which is better than unbounded memory."""


class RateLimit:
    def __init__(
        self, per_second: float, burst: float, seconds: Callable[[], float], whose: str = "with this key"
    ) -> None:
        """`seconds` is a monotonic clock. A `per_second` of 0 means no limit."""
        self._sentence = f"Too many requests {whose}: the limit is {_rate_text(per_second)}"
        self._per_second = per_second
        self._burst = float(burst)
        self._seconds = seconds
        self._buckets: dict[str, tuple[float, float]] = {}
        """Tokens and the time of their count, by client, in the order of the last request."""
        self._lock = threading.Lock()

    def take(self, who: str) -> None:
        """Take a token, or raise `TooMany`."""
        if not self._per_second:
            return
        with self._lock:
            now = self._seconds()
            tokens, counted_at = self._buckets.pop(who, (self._burst, now))
            tokens = min(self._burst, tokens + (now - counted_at) * self._per_second)
            if tokens >= 1.0:
                self._buckets[who] = (tokens - 1.0, now)
                self._forget(now)
                return
            self._buckets[who] = (tokens, now)
        wait = max(1, math.ceil((1.0 - tokens) / self._per_second))
        raise TooMany(
            self._sentence,
            hint=f"Wait {wait} s, and send requests less often",
            context={"retry_after_seconds": wait},
        )

    def give_back(self, who: str, tokens: int = 1) -> None:
        """Return tokens that were taken for something that does not count."""
        if self._per_second:
            with self._lock:
                have, counted_at = self._buckets.pop(who, (self._burst, self._seconds()))
                self._buckets[who] = (min(self._burst, have + tokens), counted_at)

    def spend(self, who: str, tokens: float) -> None:
        """Take tokens after the work, even below zero: `who` then waits until they are refilled."""
        if self._per_second and tokens > 0:
            with self._lock:
                have, counted_at = self._buckets.pop(who, (self._burst, self._seconds()))
                self._buckets[who] = (have - tokens, counted_at)

    def _forget(self, now: float) -> None:
        """Drop the least recently used bucket if it is full again or if there are too many."""
        oldest = next(iter(self._buckets))
        tokens, counted_at = self._buckets[oldest]
        is_full = tokens + (now - counted_at) * self._per_second >= self._burst
        if len(self._buckets) > 1 and (is_full or len(self._buckets) > BUCKETS_MAX):
            del self._buckets[oldest]

    def __len__(self) -> int:
        return len(self._buckets)


def _rate_text(per_second: float) -> str:
    for seconds, period in ((1, "a second"), (60, "a minute")):
        if per_second * seconds >= 1:
            return f"{per_second * seconds:g} {period}"
    return f"{per_second * 3600:g} an hour"


READING_MILLISECONDS_PER_SECOND: Final = 500
"""The share of the event loop's processor time that the reads of one organisation can use."""


class RequestRates:
    """The buckets of one server."""

    def __init__(
        self,
        per_second: int,
        burst: int,
        seconds: Callable[[], float],
        *,
        organisation_per_second: int = 0,
        failures_per_minute: int = 0,
    ) -> None:
        """A `per_second` of 0 turns all limits off."""
        self._by_key = RateLimit(per_second, burst, seconds)
        self._by_address = RateLimit(per_second, burst, seconds, "from this address")
        organisation = organisation_per_second if per_second else 0
        self._by_organisation = RateLimit(organisation, 2.0 * burst, seconds, "of this organisation")
        reading = READING_MILLISECONDS_PER_SECOND if per_second else 0
        self._reading = RateLimit(
            reading, 4.0 * reading, seconds, "of this organisation that use much processor time"
        )
        failures = failures_per_minute if per_second else 0
        self._failures = RateLimit(failures / 60, failures, seconds, "without a valid key from this address")

    def asks(self, actor: Actor) -> None:
        self._by_key.take(actor.key_id)
        if not actor.is_operator:
            self._by_organisation.take(actor.organisation_id)
            self._reading.take(actor.organisation_id)

    def reads(self, actor: Actor, seconds: float) -> None:
        """Count the processor time of a response."""
        if not actor.is_operator:
            self._reading.spend(actor.organisation_id, seconds * 1000 - 1)

    def asks_openly(self, address: str) -> None:
        self._by_address.take(address)

    def fails(self, address: str) -> None:
        """Count a request without a valid key. This slows down guessing, but not valid keys from the same address."""
        self._failures.take(address)
