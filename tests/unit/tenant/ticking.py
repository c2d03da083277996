"""A clock that advances by a millisecond at each read, so that ids sort in the order of creation."""

from datetime import datetime, timedelta

from teraflock.base.clock import FixedClock


class TickingClock(FixedClock):
    def now(self) -> datetime:
        self.move(timedelta(milliseconds=1))
        return super().now()
