"""How often one may ask: buckets of tokens, in the memory of this process.

Each key has a bucket, each organisation one for all its keys, and each address one for keys that are not good and for
what needs no key. Operators' keys are in no organisation's bucket, so no tenant can empty theirs.

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
        self._whose = whose
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
            f"Too many requests {self._whose}: {self._per_second:g} a second are answered in the long run",
            hint=f"Wait {wait} s, and ask less often",
            context={"retry_after_seconds": wait},
        )

    def _forget(self, now: float) -> None:
        """Drop the bucket that was used longest ago, once it is full again or there are too many."""
        oldest = next(iter(self._buckets))
        tokens, counted_at = self._buckets[oldest]
        is_full = tokens + (now - counted_at) * self._per_second >= self._burst
        if len(self._buckets) > 1 and (is_full or len(self._buckets) > BUCKETS_MAX):
            del self._buckets[oldest]

    def __len__(self) -> int:
        return len(self._buckets)


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
        failures = failures_per_minute if per_second else 0
        self._failures = RateLimit(failures / 60, failures, seconds, "without a valid key from this address")

    def asks(self, actor: Actor) -> None:
        self._by_key.take(actor.key_id)
        if not actor.is_operator:
            self._by_organisation.take(actor.organisation_id)

    def asks_openly(self, address: str) -> None:
        self._by_address.take(address)

    def fails(self, address: str) -> None:
        """Without a good key. Whoever guesses keys is slowed down, and good keys from the same address are not."""
        self._failures.take(address)
