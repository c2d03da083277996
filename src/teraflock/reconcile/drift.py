"""The loop that compares what engines have with what the database says, and orders repairs.

    load    everything with our mark, and all our instances
    decide  `decide`, a pure function: which instances are stopped, lost or changed, and which guests are unknown
    apply   a repair is a request in the row; the instance loop carries it out

A guest with our mark and without a row was created by another database, perhaps one newer than a restored
backup: it is reported, but never removed. A guest whose instance is gone is removed.

Limits and devices are compared only for instances that run and have no operation. A stopped instance is
adjusted at its next start, and an operation handles its own instance. If an engine cannot undo a change, it
is reported and tried again later.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.fleet import store as fleet
from teraflock.fleet.rented import store as rented_hosts
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.candidates import at_candidate, region_of
from teraflock.instance.driver import GRACE, Capability, ComputeDriver, Handle, Seen, Sighting
from teraflock.instance.ending import StillEnding
from teraflock.instance.events import notice_of
from teraflock.instance.model import Instance, InstanceId, Operation, Request, RestartPolicy
from teraflock.instance.rules import end_of, given_up, lost, returned, settled
from teraflock.instance.states import ENDED, Phase, Wanted
from teraflock.reconcile import rentals
from teraflock.reconcile.known import KnownGuest, KnownGuests
from teraflock.reconcile.outage import UNWATCHED
from teraflock.reconcile.rerenting import rent_again
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
RENTED: Final = frozenset({""})
"""The only host of a site that chooses hosts itself. It answers when the site does."""
REPORTED_MAX: Final = 10_000
"""What is remembered as reported. A host that invents guests fills neither the log nor the memory."""
REFIT_AGAIN: Final = timedelta(minutes=10)
"""How long to wait before a repair without effect is repeated, as long as the engine shows the same."""


class _Calm(msgspec.Struct, frozen=True):
    """The inputs of a turn that found nothing to do. With the same, a later turn finds nothing either."""

    known: Sequence[KnownGuest]
    sightings: Sequence[Sighting]
    answering: frozenset[str]

    def is_still(
        self, known: Sequence[KnownGuest], seen: Sequence[Sighting], answering: frozenset[str]
    ) -> bool:
        return self.known is known and self.answering == answering and self.sightings == seen


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    start: tuple[str, ...] = ()
    """Should run, but is stopped."""
    stop: tuple[str, ...] = ()
    """Should be stopped, but runs."""
    remake: tuple[str, ...] = ()
    """No longer on its engine, and its disk is lost."""
    back: tuple[str, ...] = ()
    """Its host was away, but it runs."""
    refit: tuple[str, ...] = ()
    """Runs with other limits or devices than it should have."""
    exchange: tuple[str, ...] = ()
    """Runs with other cards than it holds, perhaps another instance's card."""
    unknown: tuple[Sighting, ...] = ()
    """Has our mark, but is none of our instances at this site."""

    def __bool__(self) -> bool:
        return self.repairs or bool(self.unknown)

    @property
    def repairs(self) -> bool:
        return any((self.start, self.stop, self.remake, self.back, self.refit, self.exchange))


def decide(
    kept: Sequence[KnownGuest],
    seen: Mapping[str, Sighting],
    hosts_answering: frozenset[str],
    absent: frozenset[str] = frozenset(),
) -> Drift:
    """Return all differences. Skip instances with an operation, and hosts that do not answer or are away,
    which `hosts.py` handles. `absent` are the rented instances that count as lost if they are missing from
    `seen`."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in kept:
        sighting = seen.get(each.id)
        if each.busy or each.host not in hosts_answering:
            continue
        if each.is_rented and sighting is None and each.id not in absent:
            continue  # listings lag: check again
        if each.is_rented and sighting is not None and sighting.seen == Seen.BROKEN:
            sighting = None  # a start cannot repair it: give the machine back
        if repair := _repair(each, sighting):
            found[repair].append(each.id)
    known = {each.id for each in kept}
    unknown = tuple(sighting for id, sighting in seen.items() if id not in known)
    return Drift(**{repair: tuple(ids) for repair, ids in found.items()}, unknown=unknown)


def _repair(kept: KnownGuest, sighting: Sighting | None) -> str:
    """Return the field of `Drift` that one instance belongs to. Empty: it is as it should be."""
    runs = sighting is not None and sighting.seen in (Seen.RUNNING, Seen.PENDING)
    if kept.phase == Phase.AWAY and runs:
        return "back"
    if kept.phase in (Phase.RUNNING, Phase.AWAY, Phase.STOPPED) and sighting is None:
        return "remake"
    if kept.phase in (Phase.RUNNING, Phase.AWAY) and not runs:
        return "start"
    if kept.phase == Phase.STOPPED and runs and kept.wanted == Wanted.STOPPED:
        return "stop"
    if kept.phase == Phase.RUNNING and sighting is not None and sighting.seen == Seen.RUNNING:
        if has_other_cards(kept, sighting):
            return "exchange"
        return "" if fits(kept, sighting) else "refit"
    return ""


def fits(kept: KnownGuest, sighting: Sighting) -> bool:
    """Check whether an instance has its limits and nothing else was changed. Values that the engine does not
    report count as correct."""
    shown = (sighting.vcpus, sighting.ram_bytes, sighting.disk_bytes)
    given = (kept.vcpus, kept.ram_bytes, kept.disk_bytes)
    same = all(seen in (None, wanted) for seen, wanted in zip(shown, given, strict=True))
    return same and not sighting.altered


def _as_made(sighting: Sighting) -> Sighting:
    """Drop the start time: a restart does not change how a guest is configured."""
    return replace(sighting, started_at=None)


def has_other_cards(kept: KnownGuest, sighting: Sighting) -> bool:
    return sighting.slots is not None and sighting.slots != kept.slots


def missing(kept: Iterable[KnownGuest], seen: Mapping[str, Sighting], now: datetime) -> frozenset[str]:
    """Return the rented instances missing from a listing, although their machines are old enough to be in it."""
    return frozenset(
        each.id
        for each in kept
        if each.is_rented and each.id not in seen and (each.made_at is None or now - each.made_at > GRACE)
    )


class DriftLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._missing: dict[str, frozenset[str]] = {}
        """What the last listing lacked, by site."""
        self._reported: set[str] = set()
        self._tried: dict[str, tuple[Sighting, datetime]] = {}
        """What the engine showed when an instance was last repaired, and when that was."""
        self._known = KnownGuests(around.database, around.clock)
        self._calm: dict[str, _Calm] = {}
        """By site."""

    def turn(self) -> None:
        for driver in self._around.engines:
            self.turn_of(driver)

    def turn_of(self, driver: ComputeDriver) -> None:
        """Check one site. Errors do not affect other sites."""
        try:
            self._turn(driver)
        except TeraflockError as error:
            LOG.warning("%s cannot be checked: %s", driver.site, error.sentence)
        except Exception:
            LOG.exception("checking %s failed", driver.site)

    def _turn(self, driver: ComputeDriver) -> None:
        before = self._known.at(driver.site)
        sightings = list(driver.sightings())
        places = Capability.PLACEMENT in driver.capabilities
        answering = frozenset(report.name for report in driver.hosts()) if places else RENTED
        calm = self._calm.pop(driver.site, None)
        if calm is None or not calm.is_still(before, sightings, answering):
            if not self._check(driver, before, sightings, answering):
                return
            calm = _Calm(before, sightings, answering)
        if places and not self._tried:  # what is rented or was repaired is judged by the time, too
            self._calm[driver.site] = calm

    def _check(
        self,
        driver: ComputeDriver,
        before: Sequence[KnownGuest],
        sightings: Iterable[Sighting],
        answering: frozenset[str],
    ) -> bool:
        """Compare, and order repairs. Return whether there was nothing to do."""
        seen, spare = rentals.matched(
            sightings,
            {each.id: each.remote_id for each in before},
            {each.id: each.host for each in before},
        )
        absent = self._missing_again(driver.site, missing(before, seen, self._around.clock.now()))
        # A site is believed only about its own instances.
        leaving = [seen[each.id] for each in before if each.id in seen and seen[each.id].leaving_at]
        self._announce_reclaims(leaving)
        self._forget_tried(seen)
        found = decide(before, seen, answering, absent)
        if found:
            drift = self._confirmed(driver.site, before, seen, answering, absent)
            if drift := self._worth_trying(driver, drift, seen):
                self._apply(driver, drift)
        if spare:
            self._give_back(driver, before, spare)
        return not (found or spare or leaving or absent)

    def _give_back(
        self, driver: ComputeDriver, before: Sequence[KnownGuest], spare: Sequence[Sighting]
    ) -> None:
        """Remove extra machines of instances that have another one. Rented instances in creation are skipped. Copies on
        hosts that are away are left to `hosts.py`."""
        earlier = {each.id: each for each in before}
        same = {
            each.id: each
            for each in self._known.at(driver.site)
            if each.id in earlier and each.host == earlier[each.id].host
        }
        for sighting in spare:
            kept = same.get(sighting.instance_id)
            if kept is not None and (kept.host or (kept == earlier[kept.id] and not kept.busy)):
                LOG.warning("%s: %s has an extra copy: removed", driver.site, sighting.instance_id)
                remove(driver, sighting)

    def _missing_again(self, site: str, now_missing: frozenset[str]) -> frozenset[str]:
        """Return what two listings in a row lacked."""
        before = self._missing.get(site, frozenset())
        self._missing[site] = now_missing
        return before & now_missing

    def _confirmed(
        self,
        site: str,
        before: Sequence[KnownGuest],
        seen: Mapping[str, Sighting],
        answering: frozenset[str],
        absent: frozenset[str],
    ) -> Drift:
        """Compare with a second reading of the database: what was created or finished while the engine
        answered is not drift."""
        after = {each.id: each for each in self._known.at(site)}
        kept = [each for each in before if after.get(each.id) == each]
        changed = (after.keys() | {each.id for each in before}) - {each.id for each in kept}
        return decide(kept, {id: one for id, one in seen.items() if id not in changed}, answering, absent)

    def _worth_trying(self, driver: ComputeDriver, drift: Drift, seen: Mapping[str, Sighting]) -> Drift:
        """Drop limits that this engine cannot change while a guest runs, and recent repairs without effect."""
        now = self._around.clock.now()
        live = drift.refit if Capability.LIVE_RESIZE in driver.capabilities else ()
        refit = tuple(id for id in live if id not in self._tried)
        exchange = tuple(id for id in drift.exchange if id not in self._tried)
        self._tried |= {id: (seen[id], now) for id in (*refit, *exchange)}
        return replace(drift, refit=refit, exchange=exchange)

    def _forget_tried(self, seen: Mapping[str, Sighting]) -> None:
        """Forget instances that look different now: they were repaired, or changed again."""
        now = self._around.clock.now()
        self._tried = {
            id: (sighting, at)
            for id, (sighting, at) in self._tried.items()
            if _as_made(seen.get(id, sighting)) == _as_made(sighting) and now - at < REFIT_AGAIN
        }

    def _apply(self, driver: ComputeDriver, drift: Drift) -> None:
        now = self._around.clock.now()

        def work(tx: Transaction) -> None:
            for ids, reason, change in _changes(drift, now):
                for id in ids:
                    self._change(tx, id, reason, change)

        if drift.repairs:
            self._around.database.write(work)
            self._around.wake()
        self._clear(driver, drift.unknown)

    def _change(self, tx: Transaction, id: str, reason: str, change: Callable[[Instance], Instance]) -> None:
        before = across.by_id_in_all_projects(tx, InstanceId(id))
        if before is None or before.progress or not before.settled:
            return  # an operation started in the meantime
        now = self._around.clock.now()
        if fleet.is_away(tx, before.host_id or "", unseen_since=now - UNWATCHED):
            return  # counts as not running until `hosts.py` has found the host again
        after = replace(settled(change(before)), due_at=now)
        if after.settled and reason and after.request == before.request and after.phase == before.phase:
            return  # already recorded, and nothing to do until it should run
        self._put(tx, before, after, now)
        if reason:
            random_bytes = self._around.random_bytes
            record_event(tx, notice_of("instance.drifted", before, now, random_bytes, reason=reason))

    def _put(self, tx: Transaction, before: Instance, after: Instance, now: datetime) -> None:
        """Write a repair. A lost rented machine costs nothing since it was last listed."""
        random_bytes = self._around.random_bytes
        host = fleet.host(tx, before.host_id or "") if before.spec.rental else None
        is_lost = after.phase == Phase.FAILED or _is_remade(after)
        if host is not None and is_lost:
            rentals.note_end(tx, before, host.id, now, random_bytes, since=min(host.seen_at, now))
            if after.phase != Phase.FAILED and after.wanted == Wanted.RUNNING:
                rent_again(
                    tx, self._around, before, lost(after), now, fails=_not_remade, last_seen=host.seen_at
                )
                return
            if after.host_id is not None:
                rented_hosts.move_rented(tx, host.id, region_of(after))
            store.put(tx, before, lost(after), now=now, random_bytes=random_bytes, last_seen=host.seen_at)
        else:
            store.put(tx, before, after, now=now, random_bytes=random_bytes)

    def _announce_reclaims(self, leaving: Sequence[Sighting]) -> None:
        """Notify a project once that an engine reclaims its instance, as early as the engine announces it."""
        for sighting in leaving:
            if (id := f"{sighting.instance_id} {sighting.leaving_at}") not in self._reported:
                self._reported.add(id)
                self._around.database.write(partial(self._note_leaving, sighting))

    def _note_leaving(self, sighting: Sighting, tx: Transaction) -> None:
        instance = across.by_id_in_all_projects(tx, sighting.instance_id)
        if instance is not None and sighting.leaving_at is not None:
            now, at = self._around.clock.now(), sighting.leaving_at.isoformat()
            random_bytes = self._around.random_bytes
            record_event(tx, notice_of("instance.leaving", instance, now, random_bytes, leaving_at=at))

    def _clear(self, driver: ComputeDriver, unknown: Sequence[Sighting]) -> None:
        if not unknown:
            return
        with self._around.database.read() as tx:
            known = across.ids_known_in_all_projects(tx, [sighting.instance_id for sighting in unknown])
        for sighting in unknown:
            id = sighting.instance_id
            phase, site = known.get(id, ("", ""))
            if phase in ENDED or site not in ("", driver.site):
                LOG.warning("%s is gone or elsewhere, but %s still had it: removed", id, driver.site)
                remove(driver, sighting)
            elif id not in known and id not in self._reported and len(self._reported) < REPORTED_MAX:
                self._reported.add(id)
                LOG.warning("%s has %s, which is not in this database: ignored", driver.site, id)


def _changes(
    drift: Drift, now: datetime
) -> tuple[tuple[tuple[str, ...], str, Callable[[Instance], Instance]], ...]:
    """Return the instances to repair, with the reason that their tenants read and the change."""
    return (
        (drift.back, "", partial(returned, now=now)),
        (drift.start, "The instance stopped unexpectedly", partial(_to_start, now=now)),
        (
            drift.remake,
            "The instance is no longer on its host, and its disk is lost",
            partial(_to_remake, now=now),
        ),
        (
            drift.stop,
            "The instance was running although it should be stopped. Teraflock stopped it again",
            _to_stop,
        ),
        (
            drift.refit,
            "Its limits or devices were changed outside Teraflock. Teraflock restored them",
            _to_refit,
        ),
        (
            drift.exchange,
            "Its cards were changed outside Teraflock. Teraflock restored them with a restart",
            _to_exchange,
        ),
    )


def remove(driver: ComputeDriver, sighting: Sighting) -> None:
    """Remove a guest that no longer belongs to an instance from its engine."""
    handle = Handle(sighting.instance_id, sighting.host, sighting.made.remote_id if sighting.made else "")
    driver.hide(handle)
    if Capability.STOP in driver.capabilities:
        driver.stop(handle, force=True)
    with suppress(StillEnding):  # accepted; the next listings show whether it is gone
        driver.delete(handle)


def _to_start(instance: Instance, now: datetime) -> Instance:
    """Start it again, or leave it stopped if its restart policy says so."""
    if instance.spec.restart_policy != RestartPolicy.NEVER:
        return replace(instance, request=Request(operation=Operation.START))
    return replace(instance, wanted=end_of(instance), wanted_at=now)


def _to_remake(instance: Instance, now: datetime) -> Instance:
    """Create it again with a new disk, because the old one is lost. A stopped instance is created when it
    should run. If its restart policy forbids this, it fails. One that waits for its launch has no disk yet, and keeps
    the copy that it starts from."""
    if _is_remade(instance):
        return instance
    policy = instance.spec.restart_policy
    if policy == RestartPolicy.NEVER:
        return given_up(
            instance, f"It was lost with its disk at {now:%Y-%m-%d %H:%M} UTC: it is no longer on its host"
        )
    notice = (
        f"Its disk and snapshots were lost at {now:%Y-%m-%d %H:%M} UTC. It gets a new disk from the image"
        f" `{instance.image}`"
    )
    remade = replace(instance, request=Request(operation=Operation.LAUNCH), notice=notice)
    is_rented = instance.spec.rental is not None and instance.wanted == Wanted.RUNNING
    moves = is_rented and policy == RestartPolicy.ELSEWHERE and not _is_remade(instance)
    return at_candidate(remade, instance.candidate + 1) if moves else remade


def _not_remade(instance: Instance) -> Instance:
    """The instance that is lost with its disk, and must not be rented again."""
    return given_up(instance, f"It was lost with its disk. {instance.problem}")


def _is_remade(instance: Instance) -> bool:
    return instance.request is not None and instance.request.operation == Operation.LAUNCH


def _to_refit(instance: Instance) -> Instance:
    return replace(instance, request=Request(operation=Operation.REFIT))


def _to_exchange(instance: Instance) -> Instance:
    """Replace the cards it has with those it holds."""
    return replace(instance, request=Request(operation=Operation.RESIZE_RESTART))


def _to_stop(instance: Instance) -> Instance:
    return replace(instance, request=Request(operation=Operation.STOP))
