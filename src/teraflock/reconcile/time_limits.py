"""The loop that ends instances at their time limit, and records an event some time before.

The limit is a time in the row. A server that was down ends overdue instances when it is back. They are
charged until the limit, not until the server noticed.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.events import notice_of
from teraflock.instance.lookup import OUTPUT_KEPT
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.output import store as outputs
from teraflock.instance.rules import TIME_LIMIT_NOTICE_MAX, ended, notice_before, settled
from teraflock.instance.states import ENDED, Wanted
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

CLEAN_AFTER: Final = timedelta(hours=1)


class TimeLimitLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._clean_at = around.clock.now()

    def turn(self) -> None:
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            near = across.stopping_by_in_all_projects(tx, now + TIME_LIMIT_NOTICE_MAX)
        due = [each.id for each in near if is_over(each, now) or is_warning_due(each, now)]
        for id in due:
            self._around.database.write(lambda tx, id=id: self._apply(tx, id))  # type: ignore[misc]
        if due:
            self._around.wake()
        if now >= self._clean_at:
            self._clean_at = now + CLEAN_AFTER
            self._around.database.write(
                lambda tx: outputs.remove_outputs_of_gone_in_all_projects(tx, now - OUTPUT_KEPT)
            )

    def _apply(self, tx: Transaction, id: InstanceId) -> None:
        """Apply the limit to the current row: the instance may have been stopped or restarted in the
        meantime."""
        before = across.by_id_in_all_projects(tx, id)
        if before is None or before.wanted != Wanted.RUNNING or before.stop_at is None:
            return
        now, random_bytes = self._around.clock.now(), self._around.random_bytes
        if is_over(before, now):
            kind, after = "instance.time_limit", replace(ended(before, before.stop_at), due_at=now)
            after = settled(after)
        elif is_warning_due(before, now):
            kind, after = "instance.ends_soon", replace(before, stop_told=True)
        else:
            return
        store.put(tx, before, after, now=now, random_bytes=random_bytes)
        ends_at = before.stop_at.isoformat(timespec="seconds").replace("+00:00", "Z")
        then = "deleted" if before.spec.delete_when_done else "stopped"
        record_event(tx, notice_of(kind, before, now, random_bytes, time_limit_at=ends_at, then=then))


def is_over(instance: Instance, now: datetime) -> bool:
    if instance.phase in ENDED or instance.stop_at is None:
        return False
    return now >= instance.stop_at


def is_warning_due(instance: Instance, now: datetime) -> bool:
    seconds = instance.spec.time_limit_seconds
    if instance.stop_at is None or instance.stop_told or seconds is None:
        return False
    return now >= instance.stop_at - notice_before(seconds)
