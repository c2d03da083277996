"""A clock that goes on by a millisecond whenever it is read: ids sort in the order in which things were made."""

from datetime import datetime, timedelta

from teraflock.base.clock import FixedClock


class TickingClock(FixedClock):
    def now(self) -> datetime:
        self.move(timedelta(milliseconds=1))
        return super().now()
