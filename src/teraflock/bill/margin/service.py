"""Costs of hosts: operators set them or providers report them, and they are booked day by day.

Invariants:
- a rate, its event and its audit row are written in one transaction;
- a turn reads what is due and can run again, in any number of processes: they lock the row of the cursor;
- if a booked day turns out differently later, reversals take it back and it is booked again. A cost may be set for the
  past, and a clock that was set back may add a use to a past day.
"""

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import DAY_US, Clock, microseconds
from teraflock.base.errors import BadInput
from teraflock.base.events import Event, new_event
from teraflock.base.exchange import Rates
from teraflock.bill.biller import DAY_GRACE_US
from teraflock.bill.margin import store
from teraflock.bill.margin.model import CostLine, CostRate, HostPart, HostSize, HostUse
from teraflock.bill.margin.rules import cost_of_day, ends_at, gpu_parts, take, until
from teraflock.bill.price.model import FOREVER_US
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host
from teraflock.meter import store as meter_store
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import By, ProjectId

INSTANCES_PER_TURN: Final = 500
DAYS_PER_TURN: Final = 500  # hosts: takes a few hundred milliseconds
DUE_MAX: Final = 1_000_000
HOUR_MICROS_MAX: Final = 10**12  # one million per hour: more is a typing error


class CostService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        rates: Rates,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._rates = rates

    # -- what own hosts cost ---------------------------------------------------------------------------------------

    def set(
        self,
        host: Host,
        micros_per_hour: int | None,
        currency: str = "",
        *,
        start: datetime | None = None,
        by: By | None = None,
    ) -> tuple[int, CostRate]:
        """Record the cost of an own host per hour from a time on. None: it is unknown. Also return its number."""
        now = self._clock.now()
        if micros_per_hour is not None:
            self._check(micros_per_hour, currency)
        rate = CostRate(
            host_id=host.id,
            from_us=microseconds(_start(host, start or now)),
            micros_per_hour=micros_per_hour,
            currency=currency if micros_per_hour is not None else "",
            recorded_at_us=microseconds(now),
        )

        def work(tx: Transaction) -> tuple[int, CostRate]:
            number = store.add_rate(tx, rate)
            record_event(tx, _event(rate, now, self._random_bytes))
            # Without the amount: members of the operator's organisation who are not operators can read the audit log.
            self._audit.note(tx, by, "host.cost", host.id, name=host.name)
            return number, rate

        return self._database.write(work)

    def _check(self, micros_per_hour: int, currency: str) -> None:
        if not 0 <= micros_per_hour <= HOUR_MICROS_MAX:
            raise BadInput(
                "The cost of a host is out of range", hint="Give an amount from 0 to 1,000,000 per hour"
            )
        self._rates.rate(currency, self._clock.now().date())  # raises if the currency is unknown

    def history(self, hosts: Sequence[str] = (), *, after: int = 0, limit: int) -> list[tuple[int, CostRate]]:
        """Recorded costs of own hosts, all or those with these ids, in order, with their numbers."""
        with self._database.read() as tx:
            return store.rates_of_own_hosts(tx, hosts, after=after, limit=limit)

    # -- booking ---------------------------------------------------------------------------------------------------

    def turn(self, *, grace_us: int = DAY_GRACE_US) -> int:
        """Record sizes, read uses, book past days. Return how much was done."""
        now_us = microseconds(self._clock.now())
        until_us = (now_us - grace_us) // DAY_US * DAY_US
        done = self._note_sizes(now_us) + self._read_uses()
        with self._database.read() as tx:
            is_behind = bool(store.instances_behind(tx, limit=1))
            is_due = bool(store.hosts_due(tx, until_us, limit=1))
        if is_behind or not is_due:  # a day is not booked before all its uses are read
            return done
        return done + self._database.write(lambda tx: _book(tx, until_us, now_us))

    def catch_up(self, *, grace_us: int = DAY_GRACE_US) -> int:
        done = 0
        while count := self.turn(grace_us=grace_us):
            done += count
        return done

    def _note_sizes(self, now_us: int) -> int:
        with self._database.read() as tx:
            new = _new_sizes(tx, now_us)
        if new:
            self._database.write(lambda tx: store.add_sizes(tx, _new_sizes(tx, now_us)))
        return len(new)

    def _read_uses(self) -> int:
        with self._database.read() as tx:
            if not store.instances_behind(tx, limit=1):
                return 0
        return self._database.write(_read_uses)


def _start(host: Host, start: datetime) -> datetime:
    if start.date() < host.registered_at.date():
        raise BadInput(
            f"`{host.name}` was added on {host.registered_at:%Y-%m-%d}; its cost cannot begin before",
            hint=f"Give `--from {host.registered_at:%Y-%m-%d}`, or a later date",
        )
    return max(start, host.registered_at)


def _event(rate: CostRate, now: datetime, random_bytes: Callable[[int], bytes]) -> Event:
    """An event of the installation. It belongs to no project, so no tenant sees it."""
    cost = {"cost_micros_per_hour": rate.micros_per_hour, "cost_currency": rate.currency}
    return new_event("host.cost", rate.host_id, now, random_bytes, {**cost, "from_us": rate.from_us})


def note_rental(
    tx: Transaction,
    *,
    host_id: str,
    instance_id: str,
    project_id: ProjectId,
    micros_per_hour: int,
    currency: str,
    now: datetime,
    since: datetime | None = None,
) -> None:
    """Record what a rented host costs from a time on (None: now), as the provider reports it. 0: it is gone."""
    rate = CostRate(
        host_id=host_id,
        instance_id=instance_id,
        project_id=project_id,
        from_us=microseconds(since or now),
        micros_per_hour=micros_per_hour,
        currency=currency,
        recorded_at_us=microseconds(now),
    )
    store.add_rate(tx, rate)


def _new_sizes(tx: Transaction, now_us: int) -> list[HostSize]:
    known = store.newest_sizes(tx)
    found = []
    for host in fleet.outlines(tx):
        parts = sum(gpu_parts(gpu.gpu, 1) for gpu in host.gpus)
        whole = HostPart(gpu_parts=parts, vcpus=host.vcpus, ram_bytes=host.ram_bytes)
        last = known.get(host.id)
        if last is None or (last.whole != whole and last.from_us < now_us):
            found.append(HostSize(host_id=host.id, from_us=now_us, whole=whole))
    return found


def _read_uses(tx: Transaction) -> int:
    """Read the changes of instances that are metered."""
    store.hold(tx)
    ended: list[HostUse] = []
    read = []
    for instance_id in store.instances_behind(tx, limit=INSTANCES_PER_TURN):
        use = store.open_use(tx, instance_id)
        metered = meter_store.sequence_taken(tx, instance_id)
        for change in meter_store.changes_of(tx, instance_id, use.sequence):
            if use.sequence < change.sequence <= metered:
                before = use
                use, over = take(before, change)
                ended += [over] if over else []
                for host_id in {before.host_id, use.host_id} - {""}:
                    store.book_again(tx, host_id, use.at_us)
        read.append(replace(use, sequence=metered))
    store.add_uses(tx, ended)
    store.keep_open(tx, read)
    return len(read)


def _book(tx: Transaction, until_us: int, now_us: int) -> int:
    """Book the next days of hosts. Return how many."""
    store.hold(tx)
    days = 0
    for host_id, booked_us in store.hosts_due(tx, until_us, limit=DAYS_PER_TURN):
        rates = store.rates(tx, host_id)
        over_us, last_day = ends_at(rates), store.last_day(tx, host_id)
        while booked_us < until_us and days < DAYS_PER_TURN:
            days += 1
            _correct(tx, host_id, booked_us // DAY_US, now_us)
            booked_us += DAY_US
            if over_us is not None and over_us <= booked_us and last_day * DAY_US < booked_us:
                booked_us = FOREVER_US  # nothing will follow, and nothing is left to reverse
        store.set_booked(tx, host_id, booked_us)
    return days


def _correct(tx: Transaction, host_id: str, day: int, now_us: int) -> None:
    """Correct the lines of a day to what they should be."""
    due = lines_due(tx, host_id, day, (day + 1) * DAY_US)
    booked = store.lines_of_day(tx, host_id, day)
    if sorted(due) == sorted(line for _, line in booked):
        return
    taken_back = [
        replace(line, kind="reversal", reverses=number, micros=-line.micros) for number, line in booked
    ]
    store.add_lines(tx, [*taken_back, *due], now_us)


def lines_due(tx: Transaction, host_id: str, day: int, until_us: int) -> list[CostLine]:
    """The cost of a day of a host, up to a time within it."""
    begin_us = day * DAY_US
    opened = (until(use, until_us) for use in store.open_uses(tx, host_id, until_us))
    uses = [*store.uses(tx, host_id, begin_us, until_us), *opened]
    return cost_of_day(day, until_us, store.rates(tx, host_id), store.sizes(tx, host_id), uses)


def lines_to_come(tx: Transaction, now_us: int) -> list[CostLine]:
    """The cost of hosts since their last booked day, minus what is booked for days that must be booked again."""
    found = [replace(line, micros=-line.micros) for line in store.lines_to_book_again(tx)]
    due = store.hosts_due(tx, now_us, limit=DUE_MAX)
    records = store.records_of_hosts_due(tx, now_us) if due else {}
    for host_id, booked_us in due:
        own = records[host_id]
        for day in range(booked_us // DAY_US, now_us // DAY_US + 1):
            begin_us, until_us = day * DAY_US, min((day + 1) * DAY_US, now_us)
            uses = [use for use in own.uses if use.until_us > begin_us and use.from_us < until_us]
            uses += [until(use, until_us) for use in own.open_uses if use.from_us < until_us]
            found += cost_of_day(day, until_us, own.rates, own.sizes, uses)
    return found
