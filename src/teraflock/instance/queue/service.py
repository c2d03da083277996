"""The queue for the edges and its loop: add, show, cancel and start launches that wait for room.

A launch is started by the same function as one that does not wait, with quota, budget and permissions of that time.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Conflict, NotFound, QuotaReached, TeraflockError, Unavailable
from teraflock.base.events import Details, new_event
from teraflock.base.ids import new_id
from teraflock.base.size import Size
from teraflock.fleet.placement import Policy
from teraflock.instance.changes import InstanceChanges
from teraflock.instance.claims import NoCapacity
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order
from teraflock.instance.queue import store
from teraflock.instance.queue.look import QueueLook, UsedBy
from teraflock.instance.queue.model import QueuedLaunch, QueuedOfTenant, QueuePlace, QueueState, Start, Used
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event
from teraflock.tenant import rules
from teraflock.tenant.key.store import actor_of_key
from teraflock.tenant.member.store import member
from teraflock.tenant.model import Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import Suspended
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.project.store import owners_of_any_organisation, project_of_any_organisation
from teraflock.tenant.rules import Permission

WAITING_MAX: Final = 100
"""Of one project. A tenant cannot fill the queue for the others."""
KEPT_FOR: Final = timedelta(days=7)
"""How long a launch can be seen after it left the queue."""
PLACES_AGE_MAX: Final = timedelta(seconds=3)
USED_AGE_MAX: Final = timedelta(seconds=20)
"""How old the use of each project may be. It is a sum over a day, so these seconds do not change the order."""
LaunchNow = Callable[[Transaction, Actor, Project, Order, str], tuple[Instance, ...]]
"""Launches an order; the text is the queued launch whose reserved hosts it may use."""


class QueueService:
    def __init__(
        self, changes: InstanceChanges, launch_now: LaunchNow, policy: Policy, used_by: UsedBy
    ) -> None:
        self._changes = changes
        self._launch_now = launch_now
        self._policy = policy
        self._used_by = used_by
        self._places: tuple[datetime, Mapping[str, QueuePlace]] | None = None
        self._used: tuple[datetime, Used] | None = None

    def look(self, tx: Transaction, *, skip: Iterable[str] = ()) -> QueueLook:
        return QueueLook(tx, self._policy, self._used_lately, self._changes.clock.now(), skip=skip)

    def _used_lately(self, tx: Transaction, now: datetime) -> Used:
        """What each project used. A little old: it reads every running instance."""
        if self._used is None or not timedelta(0) <= now - self._used[0] < USED_AGE_MAX:
            self._used = (now, self._used_by(tx, now))
        return self._used[1]

    def places(self, including: str = "") -> Mapping[str, QueuePlace]:
        """The place of each waiting launch of all projects, and when it is expected to start. A little old: finding
        them reads every host, and clients that wait ask twice a second."""
        now = self._changes.clock.now()
        is_old = self._places is None or not timedelta(0) <= now - self._places[0] < PLACES_AGE_MAX
        if self._places is None or is_old or (including and including not in self._places[1]):
            with self._changes.database.read() as tx:
                self._places = (now, self.look(tx).places())
        return self._places[1]

    def page(
        self, project: ProjectId, *, after: str = "", limit: int, ended: bool = False
    ) -> tuple[QueuedLaunch, ...]:
        with self._changes.database.read() as tx:
            return store.page(tx, project, after=after, limit=limit, ended=ended)

    def waiting_in_all_projects(self, *, limit: int) -> tuple[QueuedOfTenant, ...]:
        """What waits in the whole installation, in the order of the queue. For operators."""
        places = self.places()
        with self._changes.database.read() as tx:
            found = store.waiting_in_all_projects(tx, limit=limit)
            owners = owners_of_any_organisation(tx, sorted({each.project_id for each in found}))
        ordered = sorted(found, key=lambda each: (each.id not in places, _place(places, each.id), each.id))
        return tuple(
            QueuedOfTenant(
                queued=each, organisation=owners[each.project_id][0], project=owners[each.project_id][1]
            )
            for each in ordered
        )

    def show(self, project: ProjectId, ref: str) -> QueuedLaunch:
        with self._changes.database.read() as tx:
            return _found(tx, project, ref)

    def add(
        self, tx: Transaction, actor: Actor, project: Project, order: Order, need: Size, why: str
    ) -> QueuedLaunch:
        """Add a launch to the queue, in the transaction that could not start it."""
        if store.count_waiting(tx, project.id) >= WAITING_MAX:
            raise Conflict(
                f"{WAITING_MAX} launches of the project are waiting already",
                hint="Cancel some of them: `tera queue cancel ID`",
            )
        if order.name and store.find(tx, project.id, order.name):
            raise Conflict(
                f"A queued launch is named `{order.name}` already",
                hint="Choose another name, or cancel that one: `tera queue cancel`",
            )
        now = self._changes.clock.now()
        queued = QueuedLaunch(
            id=new_id("que", now, self._changes.random_bytes),
            project_id=project.id,
            name=order.name or "",
            launch=order,
            actor=actor,
            need=need,
            instances=order.instances,
            priority=order.priority,
            reason=why,
            created_by=actor.member_id,
            created_at=now,
        )
        store.insert(tx, queued)
        self._changes.audit.record(tx, actor, "queue.add", queued.id, project, name=queued.name)
        self._record(tx, queued, "queue.added")
        return queued

    def cancel(self, actor: Actor, project: Project, ref: str) -> QueuedLaunch:
        def work(tx: Transaction) -> QueuedLaunch:
            claimed(tx, project)
            found = _found(tx, project.id, ref)
            waiting = store.lock_waiting(tx, found.id)
            if waiting is None:
                current = _found(tx, project.id, found.id)
                if current.state == QueueState.CANCELLED:
                    return current
                raise Conflict(
                    f"The launch no longer waits: it is {current.state}",
                    hint="Delete its instances with `tera delete`" if current.instance_ids else "",
                )
            self._changes.audit.record(tx, actor, "queue.cancel", found.id, project, name=found.name)
            return self._ended(tx, waiting, QueueState.CANCELLED)

        return self._changes.database.write_with_locks(work)

    def drop(self, tx: Transaction, id: str) -> None:
        """Remove a launch of a project that no longer exists."""
        waiting = store.lock_waiting(tx, id)
        if waiting is not None:
            self._ended(tx, waiting, QueueState.CANCELLED)

    def start(self, start: Start) -> bool:
        """Launch a queued launch now. False: it waits on, or it failed for good; its reason says why."""
        try:
            return self._changes.database.write_with_locks(lambda tx: self._started(tx, start))
        except Unavailable:
            raise
        except TeraflockError as error:
            why = f"{error.sentence}. {error.hint}" if error.hint else error.sentence
            for_good = not isinstance(error, NoCapacity | QuotaReached | Suspended)
            self._changes.database.write_with_locks(lambda tx: self._note(tx, start.id, why, for_good))
            return False

    def _started(self, tx: Transaction, start: Start) -> bool:
        project = project_of_any_organisation(tx, store.project_of_in_all_projects(tx, start.id))
        if project is None:
            raise NotFound("Its project was removed")
        fresh = claimed(tx, project)
        queued = store.lock_waiting(tx, start.id)
        if queued is None or queued.launch is None or queued.actor is None:
            return False  # cancelled, or another server launched it
        actor = self._present(tx, queued.actor)
        rules.require(actor, Permission.INSTANCE_WRITE, fresh)
        made = self._launch_now(tx, actor, fresh, queued.launch, start.reservation)
        self._ended(tx, replace(queued, instance_ids=tuple(each.id for each in made)), QueueState.LAUNCHED)
        return True

    def _present(self, tx: Transaction, actor: Actor) -> Actor:
        """The actor as of now: the roles may have changed, and the key may be revoked."""
        if actor.key_id.startswith("key_"):
            found = actor_of_key(tx, actor.key_id, self._changes.clock.now())
            if found is None:
                raise NotFound("The API key that queued it has expired or was revoked")
            return found[0]
        who = member(tx, actor.organisation_id, actor.member_id)
        if who is None or who.removed_at is not None:
            raise NotFound("The member who queued it was removed")
        return replace(actor, roles=who.roles, is_operator=actor.is_operator and who.is_operator)

    def _note(self, tx: Transaction, id: str, why: str, for_good: bool) -> None:
        queued = store.lock_waiting(tx, id)
        if queued is None:
            return
        if for_good:
            self._ended(tx, replace(queued, reason=why), QueueState.FAILED)
        elif queued.reason != why:
            store.put(tx, replace(queued, reason=why))

    def _ended(self, tx: Transaction, queued: QueuedLaunch, state: QueueState) -> QueuedLaunch:
        """The launch leaves the queue. What it would have launched is not kept: it may have secrets."""
        reason = queued.reason if state == QueueState.FAILED else ""
        now = self._changes.clock.now()
        ended = replace(queued, state=state, reason=reason, launch=None, actor=None, ended_at=now)
        store.put(tx, ended)
        self._record(tx, ended, f"queue.{state}")
        return ended

    def _record(self, tx: Transaction, queued: QueuedLaunch, kind: str) -> None:
        now = self._changes.clock.now()
        details: Details = {"name": queued.name, "instances": queued.instances, "reason": queued.reason}
        project, random_bytes = queued.project_id, self._changes.random_bytes
        record_event(tx, new_event(kind, queued.id, now, random_bytes, details, project=project))


def _place(places: Mapping[str, QueuePlace], id: str) -> int:
    return places[id].place if id in places else 0


def _found(tx: Transaction, project: ProjectId, ref: str) -> QueuedLaunch:
    found = store.find(tx, project, ref)
    if found is None:
        raise NotFound(f"The project has no queued launch `{ref[:80]}`", hint="`tera queue` lists them")
    return found
