"""One turn of the meter: read new events and turn them into intervals, in one transaction.

Invariants:
- each change is applied once: its sequence must follow the last one that was applied to its instance;
- no change is missed. Event ids sort by time, but an event can appear before the cursor, if its transaction took long
  or a clock was set back. So a meter that has caught up reads the last `OVERLAP` again, counted from the cursor or
  from now, whichever is earlier. If a change arrives before its predecessor, the instance is noted and read in every
  turn until it has caught up. And a sweep compares the sequence of every instance with the one that was applied;
- a turn is bounded. Any number of processes may run turns: they lock the row of the cursor.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.clock import Clock, at_microseconds
from teraflock.base.ids import ALPHABET, new_id
from teraflock.meter import store
from teraflock.meter.model import Change, Interval, Meter
from teraflock.meter.rules import latest, not_by_tenant, recut, take
from teraflock.storage.database import Database, Transaction

CHANGES_PER_TURN: Final = 5_000  # takes a few hundred milliseconds and a few megabytes
OVERLAP: Final = timedelta(seconds=30)
"""Longer than any transaction that records an event takes, and than the clocks of two servers differ."""


class MeterService:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._seen: set[str] = set()
        """Events of the last `OVERLAP` that are known to be applied."""

    def turn(self, *, limit: int = CHANGES_PER_TURN) -> int:
        """Apply the next changes and return how many. 0 means that the meter has caught up."""
        with self._database.read() as tx:
            found = _found(tx, self._clock.now(), limit, self._seen)
        if not (found.changes or found.behind):
            return 0
        return self._database.write(lambda tx: _take_found(tx, found))

    def catch_up(self) -> int:
        """Run turns until no change is left."""
        taken = 0
        while count := self.turn():
            taken += count
        return taken

    def sweep(self) -> int:
        """Apply changes that the cursor has missed. Runs at the start and every few minutes."""
        with self._database.read() as tx:
            missed = store.instances_missed(tx)
        if not missed:
            return 0
        return self._database.write(lambda tx: _take_missed(tx, missed))


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """Read before the write transaction: events never change, and changes that were applied in between are skipped."""

    changes: tuple[Change, ...]
    newest: str
    behind: tuple[str, ...]


def _found(tx: Transaction, now: datetime, limit: int, seen: set[str]) -> _Found:
    event_id = store.cursor(tx).event_id
    fresh = store.changes_after(tx, event_id, limit=limit)
    changes = [change for _, change in fresh]
    if len(fresh) < limit:
        changes += _overlapped(tx, event_id, now, limit, seen)
    return _Found(
        changes=tuple(changes),
        newest=fresh[-1][0] if fresh else event_id,
        behind=tuple(store.instances_behind(tx)),
    )


def _overlapped(
    tx: Transaction, event_id: str, now: datetime, limit: int, seen: set[str]
) -> Iterator[Change]:
    """New changes shortly before the cursor, or before now if the clock was set back."""
    start = before(min(event_id, floor_id(now)), OVERLAP) if event_id else ""
    ids = store.ids_between(tx, start, event_id)
    seen.intersection_update(ids)
    unseen = [id for id in ids if id not in seen]
    for id, change in store.changes_with(tx, unseen):
        if _is_new(tx, change):
            yield change
        else:
            seen.add(id)


def _is_new(tx: Transaction, change: Change) -> bool:
    return change.sequence > store.sequence_taken(tx, change.instance_id)


def _take_found(tx: Transaction, found: _Found) -> int:
    store.hold(tx)
    taken = _take(tx, found.changes) + _take_of(tx, found.behind)
    cursor = store.cursor(tx)
    store.set_cursor(tx, replace(cursor, event_id=max(cursor.event_id, found.newest)))
    return taken


def _take_missed(tx: Transaction, instance_ids: Sequence[str]) -> int:
    store.hold(tx)
    return _take_of(tx, instance_ids)


def _take_of(tx: Transaction, instance_ids: Iterable[str]) -> int:
    """Apply all changes that can be applied to these instances. Those that caught up are no longer noted."""
    taken, caught_up = 0, []
    for instance_id in instance_ids:
        kept = store.meter(tx, instance_id)
        changes = store.changes_of(tx, instance_id, kept.sequence if kept else 0)
        taken += (count := _take(tx, changes))
        if count == len(changes):
            caught_up.append(instance_id)
    store.note_caught_up(tx, caught_up)
    return taken


def _take(tx: Transaction, changes: Sequence[Change]) -> int:
    """Apply the changes that are next for their instances. Note the instances that miss one."""
    by_instance: dict[str, dict[int, Change]] = {}
    for change in changes:
        by_instance.setdefault(change.instance_id, {})[change.sequence] = change
    meters: list[Meter] = []
    intervals: list[Interval] = []
    behind: list[str] = []
    taken = 0
    for instance_id, by_sequence in by_instance.items():
        kept = store.meter(tx, instance_id)
        meter = kept or Meter(instance_id=instance_id, project_id=next(iter(by_sequence.values())).project_id)
        first = meter.sequence
        while meter.sequence + 1 in by_sequence:
            run = run_of(tx, instance_id, intervals)
            meter, made = after_next(meter, by_sequence[meter.sequence + 1], run)
            intervals += made
        if meter.sequence != first:
            meters.append(meter)
        taken += meter.sequence - first
        if max(by_sequence) > meter.sequence:
            behind.append(instance_id)
    _keep(tx, meters, intervals, behind)
    return taken


def after_next(
    meter: Meter, change: Change, run: Callable[[int], Sequence[Interval]]
) -> tuple[Meter, list[Interval]]:
    """The meter after its next change, and the intervals that the change adds or revises."""
    step = take(meter, change)
    closed = [step.closed] if step.closed else []
    if step.cut_us is None:
        return step.meter, closed
    first = meter.open.run_sequence if meter.open else None
    assert first is not None, "only a run is cut back"
    cut = recut(latest(run(first)), step.cut_us, operator_fault=not_by_tenant(change))
    return step.meter, [*cut, *closed]


def run_of(tx: Transaction, instance_id: str, made: Sequence[Interval]) -> Callable[[int], list[Interval]]:
    """The intervals of a run: stored ones and those of this turn."""
    return lambda first: [
        *store.intervals_of_run(tx, instance_id, first),
        *(each for each in made if each.instance_id == instance_id and each.sequence >= first),
    ]


def _keep(tx: Transaction, meters: list[Meter], intervals: list[Interval], behind: list[str]) -> None:
    if intervals:
        cursor = store.cursor(tx)
        count = store.add_intervals(tx, cursor.intervals + 1, intervals)
        store.set_cursor(tx, replace(cursor, intervals=cursor.intervals + count))
    if meters:
        store.keep_meters(tx, meters)
    if behind:
        store.note_behind(tx, behind)


def floor_id(at: datetime) -> str:
    """An event id that sorts before all events from this time on."""
    return new_id("evt", at, bytes)


def before(event_id: str, by: timedelta) -> str:
    """An event id that sorts before all events from `by` before this one on."""
    if not event_id:
        return ""
    value = 0
    for character in event_id.removeprefix("evt_")[:8]:
        value = value * 32 + max(0, ALPHABET.find(character))
    milliseconds = max(0, value - by // timedelta(milliseconds=1))
    return floor_id(at_microseconds(milliseconds * 1000))
