"""Typed ids: passing the wrong kind of id is a type error and cannot leak data between tenants.

An id is a prefix that names its kind and 16 characters of lower-case base 32: 80 bits. The first 40 bits are the
time in milliseconds, so rows created one after another are stored next to each other.
Random bytes come from the caller, so that runs can be repeated.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NewType

EventId = NewType("EventId", str)

ALPHABET = (
    "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: without i, l, o, u, which are easy to misread
)
_TIME_BITS = 40
_RANDOM_BYTES = 5


def new_id(prefix: str, now: datetime, random_bytes: Callable[[int], bytes]) -> str:
    """Return `prefix_` and 16 characters that sort by time, to the millisecond. The order wraps after 34 years."""
    milliseconds = int(now.timestamp() * 1000) % (1 << _TIME_BITS)
    value = milliseconds << (8 * _RANDOM_BYTES) | int.from_bytes(random_bytes(_RANDOM_BYTES), "big")
    characters = [ALPHABET[value >> shift & 31] for shift in range(75, -1, -5)]
    return f"{prefix}_{''.join(characters)}"


def id_at(prefix: str, time: datetime) -> str:
    """The smallest id that something of this time can have."""
    return new_id(prefix, time, bytes)
