"""The snapshot service for the edges. An operation of the instance creates and restores snapshots."""

from datetime import datetime

from msgspec.structs import replace

from teraflock.base.errors import Conflict, NotFound
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.instance import store as instances
from teraflock.instance.across import store as across
from teraflock.instance.changes import InstanceChanges, handle_of_view
from teraflock.instance.claims import check_snapshots_quota
from teraflock.instance.driver import Capability
from teraflock.instance.lookup import cannot, check_at_rest, found
from teraflock.instance.model import (
    Instance,
    InstanceId,
    Operation,
    Request,
    Snapshot,
    SnapshotId,
    SnapshotState,
)
from teraflock.instance.snapshot import store
from teraflock.instance.states import Phase
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.store import project_of_any_organisation


class SnapshotService:
    def __init__(self, changes: InstanceChanges) -> None:
        self._changes = changes
        self._database = changes.database

    def page(self, project: ProjectId, ref: str) -> tuple[Snapshot, ...]:
        with self._database.read() as tx:
            return store.of_instance(tx, found(tx, project, ref).instance.id)

    def create(self, actor: Actor, project: Project, ref: str, name: str) -> Snapshot:
        check_name(name, "a snapshot")
        id = SnapshotId(new_id("snp", self._changes.clock.now(), self._changes.random_bytes))

        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            check_active(tx, project.organisation_id)
            self._changes.check_can(instance, Capability.SNAPSHOTS, "take a snapshot")
            check_at_rest(instance, "take a snapshot")
            _free_name(tx, instance, name)
            check_snapshots_quota(tx, project_of_any_organisation(tx, project.id) or project)
            store.insert(tx, _new(id, instance, name, now))
            return replace(instance, request=Request(operation=Operation.SNAPSHOT, subject=id))

        instance = self._changes.apply(actor, project, ref, "snapshot", change, grows=True)
        with self._database.read() as tx:
            return next(each for each in store.of_instance(tx, instance.id) if each.id == id)

    def restore(self, actor: Actor, project: Project, ref: str, snapshot: str) -> Instance:
        def change(tx: Transaction, instance: Instance, now: datetime) -> Instance:
            check_at_rest(instance, "be restored")
            wanted = _snapshot(tx, instance, snapshot)
            if wanted.state != SnapshotState.READY:
                raise Conflict(
                    f"The snapshot `{wanted.name}` is not ready: {wanted.state}",
                    hint=f"`tera snapshot {instance.name}` shows its state",
                )
            is_running = instance.phase == Phase.RUNNING
            operation = Operation.RESTORE_RESTART if is_running else Operation.RESTORE
            return replace(instance, request=Request(operation=operation, subject=wanted.id))

        return self._changes.apply(actor, project, ref, "restore", change)

    def delete(self, actor: Actor, project: Project, ref: str, snapshot: str) -> None:
        with self._database.read() as tx:
            view = found(tx, project.id, ref)
            old = _snapshot(tx, view.instance, snapshot)
            driver = self._changes.driver(view.instance)
        if view.instance.progress or view.instance.request:
            raise cannot("delete a snapshot", view.instance)
        driver.delete_snapshot(handle_of_view(view), old.id)

        def work(tx: Transaction) -> None:
            store.remove(tx, old.id)
            self._update_held(tx, old.instance_id)
            self._changes.audit.record(tx, actor, "snapshot.delete", old.id, project, name=old.name)

        self._database.write(work)

    def _update_held(self, tx: Transaction, id: InstanceId) -> None:
        """Write the size of its snapshots into the instance: they are part of what it holds, and of its bill."""
        before = across.by_id_in_all_projects(tx, id)
        kept_bytes = store.kept_bytes(tx, id)
        if before is not None and before.held.snapshots_bytes != kept_bytes:
            after = replace(before, held=replace(before.held, snapshots_bytes=kept_bytes))
            now = self._changes.clock.now()
            instances.put(tx, before, after, now=now, random_bytes=self._changes.random_bytes)


def _new(id: SnapshotId, instance: Instance, name: str, now: datetime) -> Snapshot:
    return Snapshot(
        id=id,
        project_id=instance.project_id,
        instance_id=instance.id,
        name=name,
        state=SnapshotState.MAKING,
        created_at=now,
    )


def _free_name(tx: Transaction, instance: Instance, name: str) -> None:
    """Refuse a name that a snapshot has. Remove a failed snapshot of that name: the engine has nothing of it."""
    for each in store.of_instance(tx, instance.id):
        if each.name == name and each.state != SnapshotState.FAILED:
            raise Conflict(f"`{instance.name}` already has a snapshot `{name}`", hint="Choose another name")
        if each.name == name:
            store.remove(tx, each.id)


def _snapshot(tx: Transaction, instance: Instance, ref: str) -> Snapshot:
    for each in store.of_instance(tx, instance.id):
        if ref in (each.id, each.name):
            return each
    raise NotFound(
        f"`{instance.name}` has no snapshot `{ref[:80]}`", hint=f"`tera snapshot {instance.name}` lists them"
    )
