"""The loop that keeps the books on hosts: what they have, and whether they answer.

A host is away when two readings in a row did not find it: one may be a hiccup, and an engine that has just come back
shows healthy hosts as lost. What runs there is then nobody's to tell, and is not charged from the last reading on.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from teraflock.base.errors import Unavailable
from teraflock.base.ids import new_id
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostId, HostReport, HostState
from teraflock.instance import store
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.rules import moved
from teraflock.instance.states import Phase
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

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
        back = {host.name for host in kept if host.state == HostState.AWAY and host.name in here}
        lost = self._lost(driver.site, kept, here)
        if changed or back or lost or here:
            self._around.database.write(lambda tx: self._write(tx, driver, changed, back, here, lost))
        self._known[driver.site] = here

    def _lost(self, site: str, kept: Sequence[Host], here: Mapping[str, HostReport]) -> list[Host]:
        lost = []
        for host in kept:
            key = (site, host.name)
            self._strikes[key] = 0 if host.name in here else self._strikes.get(key, 0) + 1
            if self._strikes[key] >= STRIKES_MAX and host.state != HostState.AWAY:
                lost.append(host)
        return lost

    def _write(
        self,
        tx: Transaction,
        driver: ComputeDriver,
        changed: Sequence[HostReport],
        back: set[str],
        here: Mapping[str, HostReport],
        lost: Sequence[Host],
    ) -> None:
        now = self._around.clock.now()
        for report in {report.name: report for report in (*changed, *(here[name] for name in back))}.values():
            id = HostId(new_id("hst", now, self._around.random_bytes))
            fleet.put_report(tx, driver.site, report, id, simulated=driver.simulated, now=now)
        if here:
            known = {host.name for host in fleet.outlines(tx) if host.site == driver.site}
            fleet.mark_seen(tx, driver.site, here.keys(), now, all_of_site=known <= here.keys())
        for host in lost:
            LOG.warning("the host %s of %s is away", host.name, host.site)
            fleet.set_state(tx, host.id, HostState.AWAY)
            self._leave_unknown(tx, host, now)

    def _leave_unknown(self, tx: Transaction, host: Host, now: datetime) -> None:
        """Nobody knows whether what ran there runs. It comes back with its host, see `drift.py`.

        Where something was just asked for, its operation waits for the host.
        """
        for instance in store.on_host_in_all_projects(tx, host.id):
            if instance.phase == Phase.RUNNING and instance.settled:
                after = moved(instance, Phase.AWAY)
                store.put(
                    tx,
                    instance,
                    after,
                    now=now,
                    random_bytes=self._around.random_bytes,
                    last_seen=host.seen_at,
                )
