"""Typed ids. A mixed-up argument is then a type error and not a leak between tenants.

An id is a prefix that says what it names and 16 characters of lower-case base 32: 80 bits, the first 40
of them the time in milliseconds, so that rows made one after the other lie beside each other.
Randomness comes in as an argument, so that runs can be repeated.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NewType

EventId = NewType("EventId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u to misread
_TIME_BITS = 40
_RANDOM_BYTES = 5


def new_id(prefix: str, now: datetime, random_bytes: Callable[[int], bytes]) -> str:
    """`prefix_` and 16 characters that sort by time, to the millisecond, for 34 years on end."""
    milliseconds = int(now.timestamp() * 1000) % (1 << _TIME_BITS)
    value = milliseconds << (8 * _RANDOM_BYTES) | int.from_bytes(random_bytes(_RANDOM_BYTES), "big")
    characters = [_ALPHABET[value >> shift & 31] for shift in range(75, -1, -5)]
    return f"{prefix}_{''.join(characters)}"
