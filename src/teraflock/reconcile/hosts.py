"""The loop that keeps the books on hosts: what they have, and whether they answer.

A host is away when two readings in a row did not find it: one may be a hiccup, and an engine that has just come back
shows healthy hosts as lost. What runs there is then nobody's to tell, and is not charged from the last reading on.

What holds after every commit: nothing on a host that is away in the books is running or changing, whatever was being
done on it. An operation waits with its journal, cards and ports, and begins anew when the host is back; an instance at
rest comes back by `drift.py`, when its engine has shown what became of it; a stop or a delete waits as stopping or
deleting. What stands still keeps its disk, as far as anybody knows, and stays as it is.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.fleet import store as fleet
from teraflock.fleet.alarms import alarms
from teraflock.fleet.model import Host, HostId, HostReport, HostState
from teraflock.instance import store
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.model import InstanceId
from teraflock.instance.rules import lost, returned, settled
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile import store as leases
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
STRIKES_MAX: Final = 2


class HostLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._strikes: dict[tuple[str, str], int] = {}
        self._known: dict[str, Mapping[str, HostReport]] = {}
        """The last reports written, by site: what did not change is not written again."""

    def turn(self) -> None:
        for driver in self._around.engines:
            try:
                reports = driver.hosts()
            except Unavailable as error:
                LOG.warning("%s does not answer: %s", driver.site, error.sentence)
                reports = ()
            except Exception:
                LOG.exception("%s cannot tell of its hosts", driver.site)
                continue
            self._keep(driver, reports)

    def _keep(self, driver: ComputeDriver, reports: Sequence[HostReport]) -> None:
        here = {report.name: report for report in reports}
        before = self._known.get(driver.site, {})
        changed = [report for name, report in here.items() if before.get(name) != report]
        with self._around.database.read() as tx:
            kept = [host for host in fleet.outlines(tx) if host.site == driver.site]
            waiting = store.away_in_work_in_all_projects(tx, driver.site)
        back = {host.name for host in kept if host.state == HostState.AWAY and host.name in here}
        gone = self._lost(driver.site, kept, here)
        to_return = [id for id, host in waiting if host in here]
        self._allow_out(driver, kept, here)
        if gone or here:
            self._around.database.write(
                lambda tx: self._write(tx, driver, changed, back, here, gone, to_return)
            )
            if to_return:
                self._around.wake()
        self._known[driver.site] = here

    def _allow_out(self, driver: ComputeDriver, kept: Sequence[Host], here: Mapping[str, HostReport]) -> None:
        """Bring hosts to the networks that the operator wants open; one that refuses is asked again next turn."""
        for host in kept:
            if host.name in here and here[host.name].allow_out != host.allow_out:
                try:
                    driver.allow_out(host.name, host.allow_out)
                except TeraflockError as error:
                    LOG.warning("%s: its open networks cannot be set: %s", host.name, error.sentence)

    def _lost(self, site: str, kept: Sequence[Host], here: Mapping[str, HostReport]) -> list[Host]:
        found = []
        for host in kept:
            key = (site, host.name)
            self._strikes[key] = 0 if host.name in here else self._strikes.get(key, 0) + 1
            if self._strikes[key] >= STRIKES_MAX and host.state != HostState.AWAY:
                found.append(host)
        return found

    def _write(
        self,
        tx: Transaction,
        driver: ComputeDriver,
        changed: Sequence[HostReport],
        back: set[str],
        here: Mapping[str, HostReport],
        gone: Sequence[Host],
        to_return: Sequence[InstanceId],
    ) -> None:
        now = self._around.clock.now()
        self._sound_alarms(tx, driver.site, changed, now)
        for report in {report.name: report for report in (*changed, *(here[name] for name in back))}.values():
            id = HostId(new_id("hst", now, self._around.random_bytes))
            fleet.put_report(tx, driver.site, report, id, simulated=driver.simulated, now=now)
        if here:
            known = {host.name for host in fleet.outlines(tx) if host.site == driver.site}
            fleet.mark_seen(tx, driver.site, here.keys(), now, all_of_site=known <= here.keys())
        for instance_id in to_return:
            self._return(tx, instance_id, now)
        for host in gone:
            LOG.warning("the host %s of %s is away", host.name, host.site)
            fleet.set_state(tx, host.id, HostState.AWAY)
            self._leave_unknown(tx, host, now)

    def _sound_alarms(self, tx: Transaction, site: str, changed: Sequence[HostReport], now: datetime) -> None:
        """Events of the installation, of no project, and lines in the log."""
        kept = {host.name: host for host in fleet.outlines(tx) if host.site == site} if changed else {}
        for report in changed:
            for alarm in alarms(kept[report.name], report) if report.name in kept else ():
                LOG.warning("%s", alarm.sentence)
                id = EventId(new_id("evt", now, self._around.random_bytes))
                subject = kept[report.name].id
                record_event(
                    tx,
                    Event(id=id, at=now, kind=alarm.kind, subject=subject, project="", details=alarm.details),
                )

    def _leave_unknown(self, tx: Transaction, host: Host, now: datetime) -> None:
        """Nobody knows whether what ran there runs. Where its tenant asked for its end before, that counts."""
        for instance in store.on_host_in_all_projects(tx, host.id):
            if (after := lost(instance)) is not instance:
                is_asked = instance.wanted != Wanted.RUNNING
                last_seen = min(host.seen_at, instance.wanted_at) if is_asked else host.seen_at
                random_bytes = self._around.random_bytes
                store.put(
                    tx, instance, settled(after), now=now, random_bytes=random_bytes, last_seen=last_seen
                )

    def _return(self, tx: Transaction, id: InstanceId, now: datetime) -> None:
        instance = store.by_id_in_all_projects(tx, id)
        if instance is None or instance.phase != Phase.AWAY or instance.progress is None:
            return  # it was finished or overtaken meanwhile
        store.put(tx, instance, returned(instance, now), now=now, random_bytes=self._around.random_bytes)
        leases.take_away(tx, id)
