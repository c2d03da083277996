"""Measures how fast the host currently is, with a loop of known work.

Machines share their cores. While another process uses the same core, plain Python takes up to twice as long, for tenths
of a second up to many seconds. So the time of a step that waits for the host is only meaningful with a probe next to
it.
"""

import time

TURNS = 3000
UNDISTURBED_MICROSECONDS = 140
"""Upper limit of the probe on the measured machines when undisturbed: it takes 120 to 135 there."""
SHARED_MICROSECONDS = 175
"""A slower probe means that the host is disturbed: of 20,000 probes almost all take around 130 or around 250."""


def _add_one(number: int) -> int:
    return number + 1


def probe() -> float:
    """Microseconds."""
    start = time.perf_counter()
    for number in range(TURNS):
        _add_one(number)
    return 1e6 * (time.perf_counter() - start)
