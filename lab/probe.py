"""How quick the host is just now: a loop of known work.

Servers share their cores. While somebody else computes on the same core, plain Python takes up to twice as long, for
tenths of a second up to many seconds; so a step that waits for the host is worth as much as the probe beside it.
"""

import time

TURNS = 3000
UNDISTURBED_MICROSECONDS = 140
"""What the probe takes at most on the servers measured on, when nobody disturbs: 120 to 135 there."""
SHARED_MICROSECONDS = 175
"""Somebody disturbs where it takes more: of 20,000 probes nearly all lie around 130 or around 250, few between."""


def _add_one(number: int) -> int:
    return number + 1


def probe() -> float:
    """Microseconds."""
    start = time.perf_counter()
    for number in range(TURNS):
        _add_one(number)
    return 1e6 * (time.perf_counter() - start)
