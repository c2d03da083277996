"""The loop that compares what engines have with what we think they have, and orders repairs.

    load    all that bears our mark, and all our instances
    decide  `decide`, a pure function: which stand still, are lost, or not as they were made, and which nobody knows
    apply   a repair is a request on the row; the instances' loop carries it out

A thing that bears our mark and has no row here was made by another database, perhaps a newer one than a restored
backup: it is told, never removed. One whose instance is gone is removed.

Limits and devices are compared only of what runs and is at rest: what stands still is fitted at its next start, and
what is being worked on is its operation's. What an engine will not put back is told, and tried again after a while.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.fleet import store as fleet
from teraflock.instance import store
from teraflock.instance.driver import Capability, ComputeDriver, Handle, Seen, Sighting
from teraflock.instance.model import Instance, InstanceId, Operation, Request
from teraflock.instance.rules import returned, settled
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.outage import UNWATCHED
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
Detail = str | int | float | bool | None
REFIT_AGAIN: Final = timedelta(minutes=10)
"""How long what did not help is not tried again, as long as the engine shows the same."""


class Kept(msgspec.Struct, frozen=True):
    """What we think an engine has."""

    id: str
    phase: str
    wanted: str
    host: str
    busy: bool
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    slots: tuple[str, ...] = ()
    """Of the cards it holds, sorted."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    start: tuple[str, ...] = ()
    """Wanted running, and stands still."""
    stop: tuple[str, ...] = ()
    """Wanted standing still, and runs."""
    remake: tuple[str, ...] = ()
    """Not on its engine any more, disk and all."""
    back: tuple[str, ...] = ()
    """Its host was away, and has it running."""
    refit: tuple[str, ...] = ()
    """Runs with other limits or devices than it was given."""
    exchange: tuple[str, ...] = ()
    """Runs with other cards than it holds: one of them may be another's."""
    strange: tuple[Sighting, ...] = ()
    """Bears our mark; none of our instances on this site."""

    def __bool__(self) -> bool:
        return self.repairs or bool(self.strange)

    @property
    def repairs(self) -> bool:
        return any((self.start, self.stop, self.remake, self.back, self.refit, self.exchange))


def decide(kept: Iterable[Kept], seen: Mapping[str, Sighting], hosts_answering: frozenset[str]) -> Drift:
    """Say what differs. Busy instances are left to their operation, and hosts that do not answer, or are away in the
    books, to `hosts.py`."""
    start, stop, remake, back, refit, exchange, known = [], [], [], [], [], [], set()
    for each in kept:
        known.add(each.id)
        if each.busy or each.host not in hosts_answering:
            continue
        sighting = seen.get(each.id)
        runs = sighting is not None and sighting.seen in (Seen.RUNNING, Seen.PENDING)
        if each.phase == Phase.AWAY and runs:
            back.append(each.id)
        elif each.phase in (Phase.RUNNING, Phase.AWAY) and sighting is None:
            remake.append(each.id)
        elif each.phase in (Phase.RUNNING, Phase.AWAY) and not runs:
            start.append(each.id)
        elif each.phase == Phase.STOPPED and sighting is None:
            remake.append(each.id)
        elif each.phase == Phase.STOPPED and runs and each.wanted == Wanted.STOPPED:
            stop.append(each.id)
        elif each.phase == Phase.RUNNING and sighting is not None and sighting.seen == Seen.RUNNING:
            if has_other_cards(each, sighting):
                exchange.append(each.id)
            elif not fits(each, sighting):
                refit.append(each.id)
    strange = tuple(sighting for id, sighting in seen.items() if id not in known)
    return Drift(
        start=tuple(start),
        stop=tuple(stop),
        remake=tuple(remake),
        back=tuple(back),
        refit=tuple(refit),
        exchange=tuple(exchange),
        strange=strange,
    )


def fits(kept: Kept, sighting: Sighting) -> bool:
    """Whether an instance has the limits it was given, and nothing else was changed. What is not told, fits."""
    told = (sighting.vcpus, sighting.ram_bytes, sighting.disk_bytes)
    given = (kept.vcpus, kept.ram_bytes, kept.disk_bytes)
    same = all(seen in (None, wanted) for seen, wanted in zip(told, given, strict=True))
    return same and not sighting.altered


def _as_made(sighting: Sighting) -> Sighting:
    """Without its start: a restart alone changes nothing about how a guest is made."""
    return replace(sighting, started_at=None)


def has_other_cards(kept: Kept, sighting: Sighting) -> bool:
    return sighting.slots is not None and sighting.slots != kept.slots


class DriftLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._told: set[str] = set()
        self._tried: dict[str, tuple[Sighting, datetime]] = {}
        """What the engine showed of an instance when it was last put right, and when that was."""

    def turn(self) -> None:
        for driver in self._around.engines:
            try:
                self._turn(driver)
            except TeraflockError as error:
                LOG.warning("%s cannot be looked at: %s", driver.site, error.sentence)
            except Exception:
                LOG.exception("looking at %s failed", driver.site)

    def _turn(self, driver: ComputeDriver) -> None:
        before = self._kept(driver.site)
        seen = {str(sighting.instance_id): sighting for sighting in driver.sightings()}
        answering = frozenset(report.name for report in driver.hosts())
        self._tell_leaving([sighting for sighting in seen.values() if sighting.leaving_at])
        self._forget_tried(seen)
        if decide(before, seen, answering):
            drift = self._confirmed(driver.site, before, seen, answering)
            if drift := self._worth_trying(driver, drift, seen):
                self._apply(driver, drift)

    def _confirmed(
        self, site: str, before: Sequence[Kept], seen: Mapping[str, Sighting], answering: frozenset[str]
    ) -> Drift:
        """What holds of a second reading too: what was made or finished while the engine was asked is no drift."""
        after = {each.id: each for each in self._kept(site)}
        kept = [each for each in before if after.get(each.id) == each]
        changed = (after.keys() | {each.id for each in before}) - {each.id for each in kept}
        return decide(kept, {id: one for id, one in seen.items() if id not in changed}, answering)

    def _worth_trying(self, driver: ComputeDriver, drift: Drift, seen: Mapping[str, Sighting]) -> Drift:
        """Without limits that this engine cannot change while a guest runs, and what it did not put back just now."""
        now = self._around.clock.now()
        live = drift.refit if Capability.LIVE_RESIZE in driver.capabilities else ()
        refit = tuple(id for id in live if id not in self._tried)
        exchange = tuple(id for id in drift.exchange if id not in self._tried)
        self._tried |= {id: (seen[id], now) for id in (*refit, *exchange)}
        return replace(drift, refit=refit, exchange=exchange)

    def _forget_tried(self, seen: Mapping[str, Sighting]) -> None:
        """What looks otherwise by now was put right, or changed anew."""
        now = self._around.clock.now()
        self._tried = {
            id: (sighting, at)
            for id, (sighting, at) in self._tried.items()
            if _as_made(seen.get(id, sighting)) == _as_made(sighting) and now - at < REFIT_AGAIN
        }

    def _kept(self, site: str) -> list[Kept]:
        with self._around.database.read() as tx:
            rows = store.on_site_in_all_projects(tx, site)
            slots = store.slots_on_site_in_all_projects(tx, site)
        return [
            Kept(id, phase, wanted, host, bool(busy), vcpus, ram, disk, slots.get(id, ()))
            for id, phase, wanted, host, busy, vcpus, ram, disk in rows
        ]

    def _apply(self, driver: ComputeDriver, drift: Drift) -> None:
        remake = partial(_to_remake, now=self._around.clock.now())

        def work(tx: Transaction) -> None:
            for id in drift.back:
                self._change(tx, id, "", partial(returned, now=self._around.clock.now()))
            for id in drift.start:
                self._change(tx, id, "It stood still, though nobody asked for it; started again", _to_start)
            for id in drift.remake:
                self._change(tx, id, "It was removed from its host by other hands, with its disk", remake)
            for id in drift.stop:
                self._change(tx, id, "It ran, though it was stopped; stopped again", _to_stop)
            for id in drift.refit:
                self._change(tx, id, "Its limits or devices were changed by other hands; put back", _to_refit)
            for id in drift.exchange:
                self._change(
                    tx, id, "Its cards were changed by other hands; put back, with a restart", _to_exchange
                )

        if drift.repairs:
            self._around.database.write(work)
            self._around.wake()
        self._clear(driver, drift.strange)

    def _change(self, tx: Transaction, id: str, reason: str, change: Callable[[Instance], Instance]) -> None:
        before = store.by_id_in_all_projects(tx, InstanceId(id))
        if before is None or before.progress or not before.settled:
            return  # somebody works on it meanwhile
        now = self._around.clock.now()
        if fleet.is_away(tx, before.host_id or "", unseen_since=now - UNWATCHED):
            return  # nothing runs there, as far as the books go, until `hosts.py` has found it again
        after = replace(settled(change(before)), due_at=now)
        if after.settled and reason and after.request == before.request and after.phase == before.phase:
            return  # told already, and nothing to be done until it is wanted running
        store.put(tx, before, after, now=now, random_bytes=self._around.random_bytes)
        if reason:
            self._tell(tx, before, "instance.drifted", {"name": before.name, "reason": reason})

    def _tell_leaving(self, leaving: Sequence[Sighting]) -> None:
        """An engine takes something back: its project is told once, as long before as the engine says so."""
        for sighting in leaving:
            if (id := f"{sighting.instance_id} {sighting.leaving_at}") not in self._told:
                self._told.add(id)
                self._around.database.write(partial(self._note_leaving, sighting))

    def _note_leaving(self, sighting: Sighting, tx: Transaction) -> None:
        instance = store.by_id_in_all_projects(tx, sighting.instance_id)
        if instance is not None and sighting.leaving_at is not None:
            at = sighting.leaving_at.isoformat()
            self._tell(tx, instance, "instance.leaving", {"name": instance.name, "leaving_at": at})

    def _tell(self, tx: Transaction, instance: Instance, kind: str, details: dict[str, Detail]) -> None:
        now = self._around.clock.now()
        record_event(
            tx,
            Event(
                id=EventId(new_id("evt", now, self._around.random_bytes)),
                at=now,
                kind=kind,
                subject=instance.id,
                project=instance.project_id,
                details=details,
            ),
        )

    def _clear(self, driver: ComputeDriver, strange: Sequence[Sighting]) -> None:
        if not strange:
            return
        with self._around.database.read() as tx:
            phases = store.ids_known_in_all_projects(tx, [sighting.instance_id for sighting in strange])
        for sighting in strange:
            id = sighting.instance_id
            if phases.get(id) in (Phase.GONE, Phase.FAILED):
                LOG.warning("%s is gone, but %s still had it: removed", id, driver.site)
                driver.hide(Handle(id, sighting.host))
                driver.stop(Handle(id, sighting.host), force=True)
                driver.delete(Handle(id, sighting.host))
            elif id not in phases and id not in self._told:
                self._told.add(id)
                LOG.warning("%s has %s, which this database does not know: left alone", driver.site, id)


def _to_start(instance: Instance) -> Instance:
    return replace(instance, request=Request(operation=Operation.START))


def _to_remake(instance: Instance, now: datetime) -> Instance:
    """With a new disk: the old one is lost. What stands still is made when it is wanted running."""
    notice = (
        f"Its disk was lost at {now:%Y-%m-%d %H:%M} UTC, with its snapshots. It gets a new disk from the image"
        f" `{instance.image}`"
    )
    return replace(instance, request=Request(operation=Operation.LAUNCH), notice=notice)


def _to_refit(instance: Instance) -> Instance:
    return replace(instance, request=Request(operation=Operation.REFIT))


def _to_exchange(instance: Instance) -> Instance:
    """The cards it holds, in place of those it has."""
    return replace(instance, request=Request(operation=Operation.RESIZE_RESTART))


def _to_stop(instance: Instance) -> Instance:
    return replace(instance, request=Request(operation=Operation.STOP))
