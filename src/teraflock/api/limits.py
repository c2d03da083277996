"""How often one may ask: buckets of tokens, in the memory of this process.

Each key has a bucket, each organisation one for all its keys, and each address one for keys that are not good and for
what needs no key. Reads of an organisation have a bucket of processor time besides: beside SQLite they run where all
requests are answered. Operators' keys are in no organisation's bucket, so no tenant can empty theirs.

A bucket holds `burst` tokens and gets `per_second` new ones. Buckets that are full again are forgotten, so there are
never more of them than keys that asked lately, and never more than `BUCKETS_MAX`.
"""

import math
import threading
from collections.abc import Callable
from typing import Final

from teraflock.base.errors import TooMany
from teraflock.tenant.model import Actor

BUCKETS_MAX: Final = 10_000
"""Beyond, the oldest is dropped: its owner gets a full bucket, which harms less than memory without end."""


class RateLimit:
    def __init__(
        self, per_second: float, burst: float, seconds: Callable[[], float], whose: str = "with this key"
    ) -> None:
        """`seconds` is a clock that only goes forward. `per_second` of 0 is no limit."""
        rate = f"{per_second:g} a second" if per_second >= 1 else f"{per_second * 60:g} a minute"
        self._sentence = f"Too many requests {whose}: {rate} are answered in the long run"
        self._per_second = per_second
        self._burst = float(burst)
        self._seconds = seconds
        self._buckets: dict[str, tuple[float, float]] = {}
        """Tokens, and when they were counted, by who asks; in the order in which they asked last."""
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
            hint=f"Wait {wait} s, and ask less often",
            context={"retry_after_seconds": wait},
        )

    def spend(self, who: str, tokens: float) -> None:
        """Take tokens afterwards, also those that are not there: `who` waits until they are."""
        if self._per_second and tokens > 0:
            with self._lock:
                have, counted_at = self._buckets.pop(who, (self._burst, self._seconds()))
                self._buckets[who] = (have - tokens, counted_at)

    def _forget(self, now: float) -> None:
        """Drop the bucket that was used longest ago, once it is full again or there are too many."""
        oldest = next(iter(self._buckets))
        tokens, counted_at = self._buckets[oldest]
        is_full = tokens + (now - counted_at) * self._per_second >= self._burst
        if len(self._buckets) > 1 and (is_full or len(self._buckets) > BUCKETS_MAX):
            del self._buckets[oldest]

    def __len__(self) -> int:
        return len(self._buckets)


READING_MILLISECONDS_PER_SECOND: Final = 500
"""Of the one processor that answers: what the reads of one organisation may take of it in the long run."""


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
        """`per_second` of 0 switches all limits off."""
        self._by_key = RateLimit(per_second, burst, seconds)
        self._by_address = RateLimit(per_second, burst, seconds, "from this address")
        organisation = organisation_per_second if per_second else 0
        self._by_organisation = RateLimit(organisation, 2.0 * burst, seconds, "of this organisation")
        reading = READING_MILLISECONDS_PER_SECOND if per_second else 0
        self._reading = RateLimit(reading, 4.0 * reading, seconds, "of this organisation that take long")
        failures = failures_per_minute if per_second else 0
        self._failures = RateLimit(failures / 60, failures, seconds, "without a valid key from this address")

    def asks(self, actor: Actor) -> None:
        self._by_key.take(actor.key_id)
        if not actor.is_operator:
            self._by_organisation.take(actor.organisation_id)
            self._reading.take(actor.organisation_id)

    def reads(self, actor: Actor, seconds: float) -> None:
        """So much of the processor was needed for an answer."""
        if not actor.is_operator:
            self._reading.spend(actor.organisation_id, seconds * 1000 - 1)

    def asks_openly(self, address: str) -> None:
        self._by_address.take(address)

    def fails(self, address: str) -> None:
        """Without a good key. Whoever guesses keys is slowed down, and good keys from the same address are not."""
        self._failures.take(address)
