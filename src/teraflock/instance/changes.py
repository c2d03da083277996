"""The way in which requests change instances: lock the row, change it, write it with its events, audit it, wake loops.

The services of this folder share one `InstanceChanges`.
"""

from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import Refused
from teraflock.instance import store
from teraflock.instance.driver import Capability, ComputeDriver, Handle
from teraflock.instance.engines import Engines
from teraflock.instance.events import operated
from teraflock.instance.lookup import cannot, found
from teraflock.instance.model import Instance, View
from teraflock.instance.rules import allows, settled
from teraflock.instance.states import Wanted
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed

Change = Callable[[Transaction, Instance, datetime], Instance]
Admits = Callable[[Transaction, ProjectId], None]
"""Raises if a project may not have all that was just written for it, for example because of its budget. Billing
provides it: instances do not know about bills."""


class InstanceChanges:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        engines: Engines,
        random_bytes: Callable[[int], bytes],
        wake: Callable[[], None],
        admits: Admits,
    ) -> None:
        self.database = database
        self.clock = clock
        self.engines = engines
        self.random_bytes = random_bytes
        self.wake = wake
        self.admits = admits
        self.audit = Audit(clock, random_bytes)

    def apply(
        self,
        actor: Actor,
        project: Project,
        ref: str,
        action: str,
        change: Change,
        reason: str = "",
        *,
        grows: bool = False,
    ) -> Instance:
        """Change an instance. `grows` locks the project first: set it if the change may need more quota or budget."""

        def work(tx: Transaction) -> Instance:
            if grows:
                claimed(tx, project)
            store.lock(tx, project.id, ref)
            return self._applied(tx, actor, project, ref, action, change, reason)

        changed = self.database.write_with_locks(work)
        self.wake()
        return changed

    def _applied(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        ref: str,
        action: str,
        change: Change,
        reason: str,
    ) -> Instance:
        now = self.clock.now()
        before = found(tx, project.id, ref).instance
        after = change(tx, before, now)
        if after is before:
            return before
        stored = self.put(tx, actor, project, before, after, action, now, reason)
        if wants_more(before, stored):
            check_active(tx, project.organisation_id)
            self.admits(tx, project.id)
        return stored

    def put(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        before: Instance,
        after: Instance,
        action: str,
        now: datetime,
        reason: str = "",
    ) -> Instance:
        """Write a changed instance, and record who changed it. A reason means that an operator did."""
        after = replace(settled(after), due_at=now)
        stored = store.put(tx, before, after, now=now, random_bytes=self.random_bytes)
        why = {"by": "operator", "reason": reason} if reason else {}
        self.audit.record(tx, actor, f"instance.{action}", stored.id, project, name=stored.name, **why)
        if reason:
            record_event(tx, operated(stored, action, reason, now, self.random_bytes))
        return stored

    def driver(self, instance: Instance) -> ComputeDriver:
        if instance.host_id is None:
            raise cannot("be reached", instance)
        return self.engines.at(instance.site)

    def check_can(self, instance: Instance, capability: Capability, what: str) -> None:
        """Refuse what the instance's site does not support. Raise `EngineDown` for a site that was removed."""
        can = self.engines.can(instance.site, capability) and allows(instance, capability)
        if instance.host_id and not can:
            self.engines.at(instance.site)
            raise Refused(
                f"`{instance.name}` cannot {what}: its site `{instance.site}` does not support it",
                hint="`tera site show` lists what a site supports",
            )


def wants_more(before: Instance, after: Instance) -> bool:
    """Whether a change makes an instance run, or makes it larger: both cost more than before."""
    if after.wanted != Wanted.RUNNING:
        return False
    larger = any(
        getattr(after.shape, name) > getattr(before.shape, name)
        for name in ("gpus", "vcpus", "ram_bytes", "disk_bytes")
    )
    return before.wanted != Wanted.RUNNING or larger or after.shape.gpu != before.shape.gpu


def handle_of_view(view: View) -> Handle:
    """The handle with which drivers find an instance. A site that chooses hosts itself gets no host."""
    id = view.instance.id
    if view.rented is None:
        return Handle(id, view.host_name or "")
    return Handle(id, "", view.rented.remote_id, view.instance.host_key if view.rented.endpoints else "")
