"""One turn of the biller: turn intervals into charges and charges into ledger entries, in one transaction with its
cursor.

Invariants:
- an interval is charged when it is closed, and at the end of each day (UTC) during which it stays open. Traffic is
  charged at the end of the day in which it was read;
- each charge is booked once, however often and wherever turns run, because cursor and charges are committed together;
- if an instance turns out to have stopped earlier, reversals take back the surplus and the rest is charged again;
- after a turn, the charges equal what `charge.rules.slices` computes from the intervals, to the micro-unit.
"""

import os
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import DAY_US, Clock
from teraflock.bill import store
from teraflock.bill.charge.model import Charge
from teraflock.bill.credit import store as credit_store
from teraflock.bill.credit.rules import lapse
from teraflock.bill.desk import FROM_ANY_DAY_US, Desk, interval_of
from teraflock.bill.ledger.model import LedgerEntry
from teraflock.bill.purchase.service import begin_due_terms
from teraflock.bill.times import microseconds
from teraflock.bill.traffic import traffic_due
from teraflock.meter import store as meter_store
from teraflock.storage.database import Database, Transaction

INTERVALS_PER_TURN: Final = 10_000  # takes half a second and about twenty megabytes
DAY_GRACE_US: Final = 600 * 1_000_000
"""A day is closed this long after its end. By then, late stops and losses are known, so reversals are rare."""


class Biller:
    def __init__(
        self, database: Database, clock: Clock, random_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes

    def turn(self, *, limit: int = INTERVALS_PER_TURN) -> int:
        """Charge the next closed intervals and return how many."""
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            if not meter_store.intervals_after(tx, store.cursor(tx).intervals, limit=1):
                return 0
        return self._database.write(lambda tx: book_intervals(tx, now_us, limit, self._random_bytes))

    def catch_up(self) -> int:
        booked = 0
        while count := self.turn():
            booked += count
        return booked

    def close_days(self, *, grace_us: int = DAY_GRACE_US) -> int:
        """Charge open intervals up to the last midnight, once, and return the number of charges."""
        now_us = microseconds(self._clock.now())
        until_us = (now_us - grace_us) // DAY_US * DAY_US
        with self._database.read() as tx:
            if store.cursor(tx).booked_until_us >= until_us:
                return 0
        return self._database.write(lambda tx: book_day(tx, until_us, now_us, self._random_bytes))


def book_intervals(tx: Transaction, now_us: int, limit: int, random_bytes: Callable[[int], bytes]) -> int:
    intervals = meter_store.intervals_after(tx, store.hold(tx).intervals, limit=limit)
    if not intervals:
        return 0
    begin_due_terms(tx, max(now_us, *(interval.until_us for interval in intervals)), now_us, random_bytes)
    cursor = store.cursor(tx)
    desk = Desk(tx)
    charges: list[Charge] = []
    seen: set[tuple[str, int]] = set()
    for count, interval in enumerate(intervals):
        if (
            interval.instance_id,
            interval.sequence,
        ) in seen:  # a later revision: store the earlier one first, to compare with it
            intervals = intervals[:count]
            break
        seen.add((interval.instance_id, interval.sequence))
        charges += desk.booking(interval, interval.until_us, cursor.booked_until_us)
    desk.post(charges, replace(cursor, intervals=cursor.intervals + len(intervals)), now_us)
    return len(intervals)


def book_day(tx: Transaction, until_us: int, now_us: int, random_bytes: Callable[[int], bytes]) -> int:
    """Close a day: charge what is open up to its end, and expire credits that ended a whole day earlier."""
    if store.hold(tx).booked_until_us >= until_us:
        return 0
    begin_due_terms(tx, max(now_us, until_us), now_us, random_bytes)
    cursor, desk = store.cursor(tx), Desk(tx)
    charges: list[Charge] = []
    for meter in meter_store.open_meters(tx):
        interval = interval_of(meter)
        if interval.from_us < until_us:
            charges += desk.booking(interval, until_us, FROM_ANY_DAY_US)
    charges += traffic_due(tx, desk, until_us=until_us)
    cursor = desk.post(charges, replace(cursor, booked_until_us=until_us), now_us)
    if (
        cursor.intervals == meter_store.cursor(tx).intervals
    ):  # otherwise a credit could still pay for its own days
        desk.post((), cursor, now_us, _lapses(tx, until_us - DAY_US))
    return len(charges)


def _lapses(tx: Transaction, until_us: int) -> list[LedgerEntry]:
    entries = []
    for grant in credit_store.expired_in_all_projects(tx, until_us):
        over, entry = lapse(grant)
        credit_store.put(tx, over)
        entries += [entry] if entry else []
    return entries
