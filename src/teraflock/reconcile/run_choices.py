"""Asks the policy where a run should be, with what runs saw of its spot place before, and notes what it sees."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from math import ceil
from typing import Final

from teraflock.base.clock import DAY_US, microseconds
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run.choice import RunPricing, choose
from teraflock.run.guard import CHANGEOVER_HOURS
from teraflock.run.learn import Knowledge, learn
from teraflock.run.model import NextPlace, Run
from teraflock.run.sighting import store
from teraflock.run.sighting.model import MeasuredStart
from teraflock.run.sighting.rules import (
    HISTORY_US,
    STARTS_KEPT,
    TICK_HOURS,
    changeover_hours,
    noted,
    place_of,
    series_of,
    sight_of,
)
from teraflock.storage.database import Transaction

KNOWN_MAX: Final = 256
HORIZON_HOURS: Final = 48.0


class RunChoices:
    def __init__(self, around: Surroundings, prices: Callable[[Run], RunPricing | None]) -> None:
        self._around = around
        self._prices = prices
        self._known: dict[tuple[str, int], Knowledge] = {}
        """By place and day. A policy is built from it, which takes a while, so it changes once a day."""

    def next_place(self, run: Run, held: int | None, *, up: bool) -> NextPlace:
        """Where the run should be until the next decision. `up`: whether spot can be had, as far as is known."""
        now, place = self._around.clock.now(), place_of(run.spec)
        with self._around.database.read() as tx:
            spot = sight_of(store.last(tx, place), microseconds(now), up=up)
            known = self._knowledge(tx, place, now)
            changeover = changeover_hours(
                [each.seconds for each in store.starts(tx, place)], CHANGEOVER_HOURS
            )
        return choose(run, now, spot, held, self._prices(run), known, changeover)

    def loss_hours(self, run: Run) -> float:
        """How long a new spot machine is expected to last."""
        with self._around.database.read() as tx:
            known = self._knowledge(tx, place_of(run.spec), self._around.clock.now())
        return known.zones[0].residual_hours(TICK_HOURS, HORIZON_HOURS)

    def note(self, run: Run, *, up: bool) -> None:
        """Keep what a run saw of its spot place."""
        place, now_us = place_of(run.spec), microseconds(self._around.clock.now())
        with self._around.database.read() as tx:
            changes = noted(store.last(tx, place), place, now_us, up=up)
        if changes:
            self._around.database.write(partial(self._write, place, now_us, up))

    def note_start(self, run: Run, launched_at: datetime) -> None:
        """Keep how long a run took to start, for the changeover time of the next ones at its place."""
        now = self._around.clock.now()
        start = MeasuredStart(
            place=place_of(run.spec),
            at_us=microseconds(now),
            seconds=ceil((now - launched_at).total_seconds()),
        )
        self._around.database.write(lambda tx: store.put_start(tx, start, STARTS_KEPT))

    def _write(self, place: str, now_us: int, up: bool, tx: Transaction) -> None:
        store.put(tx, noted(store.last(tx, place), place, now_us, up=up))

    def _knowledge(self, tx: Transaction, place: str, now: datetime) -> Knowledge:
        today_us = microseconds(now) // DAY_US * DAY_US
        key = (place, today_us)
        if key not in self._known:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            history = series_of(store.between(tx, place, today_us - HISTORY_US, today_us))
            self._known[key] = learn([history], TICK_HOURS)
        return self._known[key]
