"""The loop that keeps the records of hosts: what they have, and whether they answer.

A host is away when two readings in a row did not find it. One failure may be temporary, and an engine that
has just restarted reports healthy hosts as lost. The state of its instances is then unknown, and they are not
charged since the last reading.

Invariant after every commit: no instance on a host that is away is running or changing. An operation waits
with its journal, cards and ports, and starts again when the host is back. An idle instance comes back through
`drift.py`, when its engine has reported its state. A stop or a delete waits as stopping or deleting. A
stopped instance stays as it is, and is assumed to keep its disk.

If hosts were not watched for a while because the server was down, `outage.py` settles that first.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.base.events import new_event
from teraflock.base.ids import new_id
from teraflock.fleet import store as fleet
from teraflock.fleet.alarms import AlarmBudget, alarms
from teraflock.fleet.left_behind import store as left_behind
from teraflock.fleet.model import Host, HostId, HostKind, HostReport, HostState
from teraflock.fleet.rented import store as rented_hosts
from teraflock.fleet.reports import fault_of
from teraflock.fleet.slicing import store as slicing
from teraflock.fleet.watch import store as watch
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver, Handle, Sighting
from teraflock.instance.join import store as joins
from teraflock.instance.lease import store as leases
from teraflock.instance.model import InstanceId
from teraflock.instance.rules import lost, returned
from teraflock.instance.site import store as sites
from teraflock.instance.states import Phase
from teraflock.reconcile import outage, rentals
from teraflock.reconcile.moving import copies_removed
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
STRIKES_MAX: Final = 2
OVERDUE: Final = timedelta(seconds=8)
"""A site that has not answered for this long does not answer. With the pause between two readings, a host that hangs is
noticed within 15 s. Only the question counts, and not how long this process is busy with the answer."""
LOOKS_MAX: Final = 4
"""An engine that does not report what it runs delays the other loops by at most this many turns."""


class HostLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._takes_over = False
        self._turns = 0
        self._strikes: dict[tuple[str, str], int] = {}
        self._known: dict[str, Mapping[str, HostReport]] = {}
        """The last reports written, by site. Unchanged reports are not written again."""
        self._problems: dict[str, str] = {}
        """The recorded problem of each site."""
        self._budget = AlarmBudget()
        self.asking: dict[str, datetime] = {}
        """Sites that were asked and have not answered yet, with the time of the question."""

    def take_over(self) -> None:
        """Treat the time before the first turn as not watched, however short it was."""
        self._takes_over = True

    @property
    def has_looked(self) -> bool:
        """Check whether it is known what kept running before this process started, or waiting for that is
        pointless."""
        return self._turns >= LOOKS_MAX or all(each.site in self._known for each in self._around.engines)

    def turn(self) -> None:
        self.count_turn()
        for driver in self._around.engines:
            self.turn_of(driver)

    def count_turn(self) -> None:
        """Count a turn, whichever sites it reads."""
        self._turns += 1

    def turn_of(self, driver: ComputeDriver) -> None:
        """Read one site. Errors do not affect other sites."""
        try:
            if Capability.PLACEMENT in driver.capabilities:
                self._read_own(driver)
            else:
                self._read_rented(driver)
        except (TeraflockError, outage.Changed) as error:
            LOG.warning("%s: unknown what ran while the server did not watch: %s", driver.site, error)
        except Exception:
            LOG.exception("%s cannot be read", driver.site)

    def _read_own(self, driver: ComputeDriver) -> None:
        reports: Sequence[HostReport] = ()
        problem = ""
        self.asking[driver.site] = self._around.clock.now()
        try:
            reports = driver.hosts()
        except TeraflockError as error:  # nonsense is no answer, either
            problem = error.sentence
            LOG.warning("%s does not answer: %s", driver.site, problem)
        finally:
            self.asking.pop(driver.site, None)
        faults = {report.name: fault for report in reports if (fault := fault_of(report))}
        for name, fault in faults.items():
            problem = f"The host `{name}` reports {fault}"
        self._note_state(driver.site, problem)
        self._keep(driver, [report for report in reports if report.name not in faults])

    def give_up_overdue(self) -> None:
        """Mark the hosts of sites that do not answer as away. A reading that fails is counted in `_lost`."""
        latest = self._around.clock.now() - OVERDUE
        hanging = {
            site for site, at in tuple(self.asking.items()) if at < latest and site in self._around.engines
        }
        if not hanging:
            return
        with self._around.database.read() as tx:
            kept = [host for site in sorted(hanging) for host in fleet.at_site(tx, site)]
        gone = [host for host in kept if _is_present(host) and host.seen_at < latest]
        for site in sorted({host.site for host in gone}):
            self._note_state(site, "A request to the site does not end")
            driver, some = self._around.engines.at(site), [host for host in gone if host.site == site]
            self._around.database.write(partial(self._write_gone, driver, some))

    def _write_gone(self, driver: ComputeDriver, gone: Sequence[Host], tx: Transaction) -> None:
        self._write(tx, driver, (), set(), {}, gone, ())

    def _read_rented(self, driver: ComputeDriver) -> None:
        """Read a site that chooses hosts itself: it answers if it lists its machines. If it does not answer,
        nothing is known about them: they are neither away nor gone, and the time is settled when it answers
        again."""
        try:
            sightings = tuple(driver.sightings())
        except Unavailable as error:
            LOG.warning("%s does not answer: %s", driver.site, error.sentence)
            self._note_state(driver.site, error.sentence)
            return
        site, now = driver.site, self._around.clock.now()
        with self._around.database.read() as tx:
            kept = rented_hosts.rented_outlines(tx, site)
            until = watch.watched_until(tx, site)
            waiting = [id for id, _ in across.away_in_work_in_all_projects(tx, site)]
        seen, _ = rentals.matched(sightings, {host.name: host.remote_id for host in kept})
        first = self._takes_over and site not in self._known
        is_unwatched = first or until is None or until < now - outage.UNWATCHED
        self._settle(driver, kept if is_unwatched else (), True)
        self._around.database.write(lambda tx: self._write_rented(tx, site, kept, seen, waiting))
        if waiting:
            self._around.wake()
        self._known[site] = {}
        self._problems[site] = ""

    def _write_rented(
        self,
        tx: Transaction,
        site: str,
        kept: Sequence[Host],
        seen: Mapping[str, Sighting],
        waiting: Sequence[InstanceId],
    ) -> None:
        now, random_bytes = self._around.clock.now(), self._around.random_bytes
        rented_hosts.mark_rented_seen(tx, site, [host.name for host in kept if host.name in seen], now)
        watch.note_watched(tx, site, now)
        if self._problems.get(site) != "":
            sites.note_state(tx, site, "", now)
        for host in kept:
            made = seen[host.name].made if host.name in seen else None
            if made is None or not host.remote_id or made.remote_id != host.remote_id:
                continue  # in creation: the result of `create` is recorded then
            instance = across.by_id_in_all_projects(tx, InstanceId(host.name))
            if instance is not None and instance.host_id == host.id:
                rentals.note_machine(tx, instance, host.id, made, now, random_bytes)
        for instance_id in waiting:
            self._return(tx, instance_id, now)

    def _note_state(self, site: str, problem: str) -> None:
        """Record whether a site answers, if that changed."""
        if self._problems.get(site) == problem:
            return
        now = self._around.clock.now()
        self._around.database.write(lambda tx: sites.note_state(tx, site, problem, now))
        self._problems[site] = problem

    def _keep(self, driver: ComputeDriver, reports: Sequence[HostReport]) -> None:
        with self._around.database.read() as tx:
            kept = fleet.at_site(tx, driver.site)
        names = {report.name for report in reports}
        returning = [host for host in kept if not _is_present(host) and host.name in names]
        fenced = self._fenced(driver, returning)
        here = {report.name: report for report in reports if report.name not in fenced}
        back = {host.name for host in returning} - fenced
        before = self._known.get(driver.site, {})
        with self._around.database.read() as tx:
            divided = slicing.host_names(tx, driver.site)
        # What a host with divided cards can give depends on more than its report.
        changed = [report for name, report in here.items() if name in divided or before.get(name) != report]
        unwatched = self._unwatched(driver.site, kept)
        gone = self._lost(driver.site, kept, here, unwatched)
        self._allow_out(driver, kept, here)
        if gone or here:
            self._settle(driver, [host for host in unwatched if host.name in here], bool(here))
            with self._around.database.read() as tx:
                waiting = across.away_in_work_in_all_projects(tx, driver.site)
            to_return = [id for id, host in waiting if host in here]
            written = self._around.database.write(
                lambda tx: (
                    self._is_fenced(tx, returning, back)
                    and self._write(tx, driver, changed, back, here, gone, to_return)
                )
            )
            if not written:
                return  # the next turn removes that copy first
            if to_return:
                self._around.wake()
        self._known[driver.site] = here

    def _fenced(self, driver: ComputeDriver, returning: Sequence[Host]) -> set[str]:
        """Remove copies of instances that were created again elsewhere. Return the hosts where that failed: they stay
        away, because a copy may run there twice."""
        names = {str(host.id): host.name for host in returning}
        with self._around.database.read() as tx:
            copies = left_behind.on_hosts(tx, [host.id for host in returning])
        failed: set[str] = set()
        for instance_id, host_id in copies:
            handle = Handle(InstanceId(instance_id), names[host_id])
            try:
                driver.hide(handle)
                driver.stop(handle, force=True)
                driver.delete(handle)
            except TeraflockError as error:
                LOG.warning(
                    "%s stays away: %s is still there: %s", names[host_id], instance_id, error.sentence
                )
                failed.add(names[host_id])
        done = [copy for copy in copies if names[copy[1]] not in failed]
        if done:
            self._around.database.write(lambda tx: copies_removed(tx, self._around, done))
            self._around.wake()
        return failed

    def _is_fenced(self, tx: Transaction, returning: Sequence[Host], back: set[str]) -> bool:
        """Whether no instance was moved away from a returning host since its copies were removed."""
        return not left_behind.on_hosts(tx, [host.id for host in returning if host.name in back])

    def _allow_out(self, driver: ComputeDriver, kept: Sequence[Host], here: Mapping[str, HostReport]) -> None:
        """Set the networks that the operator allows on each host. A host that refuses is asked again in the
        next turn."""
        for host in kept:
            if host.name in here and here[host.name].allow_out != host.allow_out:
                try:
                    driver.allow_out(host.name, host.allow_out)
                except TeraflockError as error:
                    LOG.warning("%s: cannot set its allowed networks: %s", host.name, error.sentence)

    def _unwatched(self, site: str, kept: Sequence[Host]) -> list[Host]:
        """Return hosts that are recorded as present, but were not watched for a while."""
        seen_min = self._around.clock.now() - outage.UNWATCHED
        first = self._takes_over and site not in self._known
        return [host for host in kept if _is_present(host) and (first or host.seen_at < seen_min)]

    def _settle(self, driver: ComputeDriver, unwatched: Sequence[Host], is_here: bool) -> None:
        """End charges for the time that was not watched, and start a new period of watching."""
        for _ in range(outage.LOOKS_MAX):
            try:
                self._settle_once(driver, unwatched, is_here)
            except outage.Changed:
                continue
            return
        raise outage.Changed("its instances change all the time")

    def _settle_once(self, driver: ComputeDriver, unwatched: Sequence[Host], is_here: bool) -> None:
        database, site, now = self._around.database, driver.site, self._around.clock.now()
        with database.read() as tx:
            until = watch.watched_until(tx, site)
        first = self._takes_over and site not in self._known
        begins = is_here and (first or until is None or until < now - outage.UNWATCHED)
        if not (unwatched or begins):
            return
        found = outage.look(database, driver, unwatched, now) if unwatched else None
        from_at = max(now, until) if until else now

        def work(tx: Transaction) -> None:
            if found:
                self._settle_found(tx, site, found, from_at)
            if begins:
                watch.begin_watch(tx, site, from_at)

        database.write(work)

    def _settle_found(self, tx: Transaction, site: str, found: outage.OutageLook, from_at: datetime) -> None:
        now, random_bytes = self._around.clock.now(), self._around.random_bytes
        if count := outage.settle(tx, found, from_at, now, random_bytes):
            LOG.warning("%s: %d guests did not keep running while the server did not watch", site, count)
        names = [host.name for host in found.hosts if host.kind == HostKind.OWN or host.name in found.seen]
        fleet.mark_seen(tx, site, names, found.at, all_of_site=False)

    def _lost(
        self, site: str, kept: Sequence[Host], here: Mapping[str, HostReport], unwatched: Sequence[Host]
    ) -> list[Host]:
        """Return hosts that two readings in a row did not find, or one reading after a time that was not
        watched."""
        found, unseen = [], {host.name for host in unwatched}
        for host in kept:
            key = (site, host.name)
            self._strikes[key] = 0 if host.name in here else self._strikes.get(key, 0) + 1
            is_lost = self._strikes[key] >= STRIKES_MAX or (host.name in unseen and host.name not in here)
            if is_lost and _is_present(host):
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
    ) -> bool:
        now = self._around.clock.now()
        if self._is_removed(tx, driver.site, here):
            return False
        self._record_alarms(tx, driver.site, changed, now)
        for report in {report.name: report for report in (*changed, *(here[name] for name in back))}.values():
            id = HostId(new_id("hst", now, self._around.random_bytes))
            fleet.put_report(tx, driver.site, report, id, simulated=driver.simulated, now=now)
        if here:
            known = fleet.names_at_site(tx, driver.site)
            fleet.mark_seen(tx, driver.site, here.keys(), now, all_of_site=known <= here.keys())
            watch.note_watched(tx, driver.site, now)
        for instance_id in to_return:
            self._return(tx, instance_id, now)
        for host in gone:
            LOG.warning("the host %s of %s is away", host.name, host.site)
            fleet.mark_away(tx, host.id)
            self._leave_unknown(tx, host, now)
        return True

    def _is_removed(self, tx: Transaction, site: str, here: Mapping[str, HostReport]) -> bool:
        """Whether an operator removed a host after it was read. It is used again only if it has joined again."""
        removed = fleet.removed_names_at_site(tx, site)
        return not removed.isdisjoint(here) and not joins.is_joined(tx, site)

    def _record_alarms(
        self, tx: Transaction, site: str, changed: Sequence[HostReport], now: datetime
    ) -> None:
        """Record installation events, which belong to no project, and write log lines."""
        kept = {host.name: host for host in fleet.at_site(tx, site)} if changed else {}
        for report in changed:
            found = alarms(kept[report.name], report) if report.name in kept else ()
            for alarm in self._budget.allowed(report.name, found, now):
                LOG.warning("%s", alarm.sentence)
                id, random_bytes = kept[report.name].id, self._around.random_bytes
                record_event(tx, new_event(alarm.kind, id, now, random_bytes, alarm.details))

    def _leave_unknown(self, tx: Transaction, host: Host, now: datetime) -> None:
        """Mark what ran there as unknown."""
        for instance in across.on_host_in_all_projects(tx, host.id):
            if lost(instance) is not instance:
                outage.leave_unknown(tx, instance, host, now, self._around.random_bytes)

    def _return(self, tx: Transaction, id: InstanceId, now: datetime) -> None:
        instance = across.by_id_in_all_projects(tx, id)
        if instance is None or instance.phase != Phase.AWAY or instance.progress is None:
            return  # finished or overtaken in the meantime
        store.put(tx, instance, returned(instance, now), now=now, random_bytes=self._around.random_bytes)
        leases.take_away(tx, id)


def _is_present(host: Host) -> bool:
    """Whether a host is recorded as one that answers. One that was removed is treated like one that is away."""
    return host.state not in (HostState.AWAY, HostState.GONE)
