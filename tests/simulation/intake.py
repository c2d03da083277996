"""Delivers events to the meter: some late, some twice, in any order.

The event table delivers each event once and never loses one, because it is written in the transaction of the
change. But it is read by event id, and a transaction may take long or a clock may be set back, so an event
may appear after later ones. Readers also read an overlap again. This module makes all of that more frequent,
on each path from the meter to an event: after its cursor, before its cursor, and by instance.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from teraflock.meter import store
from teraflock.meter.service import MeterService

Found = list[tuple[str, Any]]


class Intake:
    """Sits between the meter's loop and the event table while it is `installed`. Code that decides by
    committed events (`meter/ahead.py`) reads the table itself: a meter that is days late must not let a
    project exceed its budget."""

    def __init__(self) -> None:
        self.late: set[tuple[str, int]] = set()
        self.chance = Random(0)
        self.late_percent = 30
        self.twice_percent = 20
        self.delayed = 0
        self.doubled = 0
        self.metering = False
        self._known: set[tuple[str, int]] = set()
        self._punctual: set[str] = set()

    def arrive_of(self, instance_id: str) -> None:
        """Deliver all events of one deleted instance. Code that decides by committed events does not search
        for late events of deleted instances (`store.instances_unmetered`); the sweep finds them within
        minutes."""
        self._punctual.add(instance_id)
        self.late = {key for key in self.late if key[0] != instance_id}

    def arrive(self) -> None:
        """Deliver all late events."""
        self.late.clear()

    def changes_after(self, plain: Callable[..., Found], *args: Any, **more: Any) -> Found:
        found = plain(*args, **more)
        if not self.metering:
            return found
        return self._delivered(found)

    def changes_with(self, plain: Callable[..., Any], *args: Any, **more: Any) -> Iterator[tuple[str, Any]]:
        """Return the changes before the cursor. A late event is neither returned nor recorded as seen."""
        found = list(plain(*args, **more))
        return iter(self._delivered(found) if self.metering else found)

    def _delivered(self, found: Found) -> Found:
        found = [each for each in found if not self._is_late(each[1])]
        twice = [each for each in found if self.chance.randrange(100) < self.twice_percent]
        self.doubled += len(twice)
        return found + twice

    def changes_of(self, plain: Callable[..., list[Any]], *args: Any, **more: Any) -> list[Any]:
        return [each for each in plain(*args, **more) if not (self.metering and self._is_late(each))]

    def meters(self, plain: Callable[..., int], *args: Any, **more: Any) -> int:
        self.metering = True
        try:
            return plain(*args, **more)
        finally:
            self.metering = False

    def _is_late(self, change: Any) -> bool:
        key = (change.instance_id, change.sequence)
        if key not in self._known and change.instance_id not in self._punctual:
            self._known.add(key)
            if self.chance.randrange(100) < self.late_percent:
                self.late.add(key)
                self.delayed += 1
        return key in self.late


def installed(monkeypatch: Any, intake: Callable[[], Intake]) -> None:
    """Let the meter read through the current intake from now on."""
    after, of, turn, sweep = store.changes_after, store.changes_of, MeterService.turn, MeterService.sweep
    behind = store.changes_with
    monkeypatch.setattr(
        store, "changes_after", lambda *args, **more: intake().changes_after(after, *args, **more)
    )
    monkeypatch.setattr(
        store, "changes_with", lambda *args, **more: intake().changes_with(behind, *args, **more)
    )
    monkeypatch.setattr(store, "changes_of", lambda *args, **more: intake().changes_of(of, *args, **more))
    monkeypatch.setattr(MeterService, "turn", lambda *args, **more: intake().meters(turn, *args, **more))
    monkeypatch.setattr(MeterService, "sweep", lambda *args, **more: intake().meters(sweep, *args, **more))
