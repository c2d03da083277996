"""The loop that reads the counters of what guests send out of the house.

State comes by events; a counter has to be read. How often is a matter of how soon a bill and a budget know: nothing is
lost between two readings, for the counters are the engine's, and a stop and a delete read them once more (see
`instance/steps.py`). Any number of processes may read: what tells nothing new is not kept.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.base.errors import TeraflockError
from teraflock.bill import store as bill_store
from teraflock.instance.driver import Capability, Sent
from teraflock.meter.reading import store as readings
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
BYTES_MIN: Final = 1 << 20
"""Below, it waits for the next reading: the chatter of an idle guest is a row a day, not one a minute."""


class TrafficLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        for driver in self._around.engines:
            if Capability.TRAFFIC not in driver.capabilities:
                continue
            try:
                counters = [each for each in driver.all_sent() if each.bytes]
            except TeraflockError as error:
                LOG.warning("%s: its counters cannot be read: %s", driver.site, error.sentence)
                continue
            if counters:
                now = self._around.clock.now()
                self._around.database.write(partial(keep, counters=counters, now=now, bytes_min=BYTES_MIN))


def keep(tx: Transaction, counters: Sequence[Sent], now: datetime, *, bytes_min: int = 1) -> int:
    """Keep readings, never in a day that is closed: the clock may have stepped back."""
    closed_us = bill_store.cursor(tx).booked_until_us
    return readings.keep(tx, counters, max(microseconds(now), closed_us), bytes_min=bytes_min)
