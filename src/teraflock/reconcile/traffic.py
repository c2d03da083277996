"""The loop that reads the counters of what guests send out of their host.

The interval decides only how soon bills and budgets know. Nothing is lost between two readings: the engine
keeps the counters, and a stop and a delete read them once more (see `instance/steps.py`). Any number of
processes may read, because a reading without news is not stored.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.base.errors import TeraflockError
from teraflock.bill import store as bill_store
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver, Sent
from teraflock.meter.reading import store as readings
from teraflock.network.balancer import store as balancers
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
BYTES_MAX: Final = 1 << 62
BYTES_MIN: Final = 1 << 20
"""A smaller change waits for the next reading, so that an idle guest adds a row a day instead of one a
minute."""


class TrafficLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        for driver in self._around.engines:
            if Capability.TRAFFIC not in driver.capabilities:
                continue
            try:
                self.turn_of(driver)
            except TeraflockError as error:
                LOG.warning("%s: cannot read its counters: %s", driver.site, error.sentence)
            except Exception:
                LOG.exception("%s: cannot keep its counters", driver.site)

    def turn_of(self, driver: ComputeDriver) -> None:
        """Read one site. It is believed only about what runs there: a host must not charge tenants of others."""
        counters = [each for each in driver.all_sent() if 0 < each.bytes <= BYTES_MAX]
        if not counters:
            return
        with self._around.database.read() as tx:
            here = {row[0] for row in across.on_site_in_all_projects(tx, driver.site)}
            here |= {
                balancer.id for balancer, _ in balancers.in_all_projects(tx) if balancer.site == driver.site
            }
        own = [each for each in counters if each.instance_id in here]
        if own:
            now = self._around.clock.now()
            self._around.database.write(partial(keep, counters=own, now=now, bytes_min=BYTES_MIN))


def keep(tx: Transaction, counters: Sequence[Sent], now: datetime, *, bytes_min: int = 1) -> int:
    """Store readings, but never in a closed day: the clock may have been set back."""
    closed_us = bill_store.cursor(tx).booked_until_us
    return readings.keep(tx, counters, max(microseconds(now), closed_us), bytes_min=bytes_min)
