"""The loop that reads what cards and instances use, and raises alerts.

A card's reading belongs to the instance that held it before and after the reading. If that changed, it belongs to
nobody: a tenant never sees what another one did with a card. Several processes may run this loop: the first one stores
the sample of each step.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.base.events import new_event
from teraflock.base.limits import CARDS_MAX
from teraflock.fleet.alarms import AlarmBudget, reading_alarms
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import HostId
from teraflock.fleet.telemetry import rules, store
from teraflock.fleet.telemetry.model import HostReading
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.reconcile.apart import Apart
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
FORGET_TURNS: Final = 360
"""How many turns pass between two deletions of old readings: an hour."""

Holders = Mapping[HostId, Mapping[str, str]]
"""The instances that hold cards, by host and slot."""


class TelemetryLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._apart = Apart(around.engines, self._guarded_turn_of, "telemetry")
        self._turns = 0
        self._budget = AlarmBudget()

    def turn(self) -> None:
        self._apart.turn()
        if self._turns % FORGET_TURNS == 0:
            now = self._around.clock.now()
            self._around.database.write(lambda tx: store.forget_old(tx, now))
        self._turns += 1

    def turn_of(self, driver: ComputeDriver) -> None:
        """Read one site."""
        if Capability.TELEMETRY not in driver.capabilities:
            return
        with self._around.database.read() as tx:
            ids = store.host_ids(tx, driver.site)
            before = cards.holders(tx, ids.values())
        found = {reading.host: reading for reading in driver.readings()}
        now = self._around.clock.now()
        there = [(ids[name], reading) for name, reading in found.items() if name in ids]
        if there:
            self._around.database.write(lambda tx: self._write(tx, there, before, driver.simulated, now))

    def _guarded_turn_of(self, driver: ComputeDriver) -> None:
        try:
            self.turn_of(driver)
        except TeraflockError as error:
            LOG.warning("%s: cannot read its cards and instances: %s", driver.site, error.sentence)
        except Exception:
            LOG.exception("%s: cannot read its cards and instances", driver.site)

    def _write(
        self,
        tx: Transaction,
        there: list[tuple[HostId, HostReading]],
        before: Holders,
        simulated: bool,
        now: datetime,
    ) -> None:
        ids = [host_id for host_id, _ in there]
        holders = cards.holders(tx, ids)
        running = across.running_by_host_in_all_projects(tx, ids)
        for host_id, found in there:
            old, new = before.get(host_id, {}), holders.get(host_id, {})
            same = {slot: id for slot, id in new.items() if old.get(slot) == id}
            here = running.get(host_id, frozenset())
            guests = tuple(each for each in found.guests if each.instance_id in here)
            self._keep(
                tx,
                host_id,
                replace(found, cards=found.cards[:CARDS_MAX], guests=guests),
                same,
                simulated,
                now,
            )

    def _keep(
        self,
        tx: Transaction,
        host_id: HostId,
        found: HostReading,
        holders: Mapping[str, str],
        simulated: bool,
        now: datetime,
    ) -> None:
        past = store.last(tx, host_id)
        reading = rules.last_reading(found, past, holders, now, simulated=simulated)
        if not store.add(tx, host_id, reading):
            return
        for alarm in self._budget.allowed(host_id, reading_alarms(found.host, past, reading), now):
            LOG.warning("%s", alarm.sentence)
            record_event(tx, new_event(alarm.kind, host_id, now, self._around.random_bytes, alarm.details))
