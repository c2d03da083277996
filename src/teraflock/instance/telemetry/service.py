"""Readings for operators (all hosts) and for tenants (their own instances).

A tenant gets the series of their instance and of its cards, and only for the time in which the instance held them.
"""

from collections.abc import Sequence
from datetime import datetime

from teraflock.base.clock import Clock
from teraflock.fleet.model import HostId
from teraflock.fleet.service import found_host
from teraflock.fleet.telemetry import rules, store
from teraflock.fleet.telemetry.model import GuestReading, LastOfHost, LastReading, ReadingPeriod
from teraflock.instance.lookup import found
from teraflock.instance.telemetry import store as placements
from teraflock.instance.telemetry.model import InstanceNow, Placed, ReadingHistory
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import ProjectId

INSTANCES_MAX = 1000


class TelemetryService:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def last_of_hosts(self, ids: Sequence[str] = ()) -> tuple[LastOfHost, ...]:
        """The last reading of own hosts, all or those with these ids. For operators."""
        with self._database.read() as tx:
            return store.last_of_own_hosts(tx, ids)

    def last_of_instances(self, project: ProjectId) -> tuple[InstanceNow, ...]:
        """The last reading of every running instance of a project."""
        with self._database.read() as tx:
            running = placements.running(tx, project, limit=INSTANCES_MAX)
            read = store.last_of(tx, sorted({each.host_id for each in running})) if running else {}
        return tuple(_instance_now(each, read.get(each.host_id)) for each in running)

    def of_host(self, ref: str, period: ReadingPeriod, until: datetime | None) -> ReadingHistory:
        with self._database.read() as tx:
            return self._history(tx, found_host(tx, ref).id, period, until)

    def of_instance(
        self, project: ProjectId, ref: str, period: ReadingPeriod, until: datetime | None
    ) -> ReadingHistory:
        with self._database.read() as tx:
            instance = found(tx, project, ref).instance
            return self._history(tx, instance.host_id, period, until, instance=instance.id)

    def _history(
        self,
        tx: Transaction,
        host_id: HostId | None,
        period: ReadingPeriod,
        until: datetime | None,
        *,
        instance: str = "",
    ) -> ReadingHistory:
        now = self._clock.now()
        end = min(until, now) if until else now
        length, step_seconds, at_once = rules.PERIODS[period]
        oldest = now - rules.KEPT[step_seconds]
        is_kept = end > oldest
        packs = (
            store.packs(tx, host_id, step_seconds, max(end - length, oldest), end)
            if host_id and is_kept
            else {}
        )
        last = store.last(tx, host_id) if host_id else None
        return ReadingHistory(
            period=period,
            step_seconds=step_seconds * at_once,
            until=end,
            simulated=last is not None and last.simulated,
            series=rules.series_of(packs, period, end, instance=instance),
        )


def _instance_now(placed: Placed, read: LastReading | None) -> InstanceNow:
    guests = {each.instance_id: each for each in read.guests} if read else {}
    return InstanceNow(
        placed=placed,
        at=read.at if read and placed.id in guests else None,
        simulated=read is not None and read.simulated,
        guest=guests.get(placed.id, GuestReading(instance_id=placed.id)),
        cards=tuple(card for card in read.cards if card.instance_id == placed.id) if read else (),
    )
