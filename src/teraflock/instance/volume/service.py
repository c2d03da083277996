"""The volume service for the edges. `reconcile/volumes.py` makes, attaches and deletes volumes on engines."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, not_found
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.fleet import store as fleet
from teraflock.instance import store as instances
from teraflock.instance.changes import InstanceChanges
from teraflock.instance.claims import check_snapshots_quota
from teraflock.instance.driver import Capability
from teraflock.instance.lookup import cannot, check_at_rest
from teraflock.instance.lookup import found as found_instance
from teraflock.instance.model import Instance
from teraflock.instance.states import Wanted
from teraflock.instance.volume import rules, store
from teraflock.instance.volume.events import record_held
from teraflock.instance.volume.lost import is_lost, recovered
from teraflock.instance.volume.model import (
    PREFIX,
    SNAPSHOT_PREFIX,
    ShownVolume,
    Volume,
    VolumeCopy,
    VolumeId,
    VolumeMount,
    VolumeSnapshot,
    VolumeSnapshotState,
)
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import name_and_quota

T = TypeVar("T")
HINT = "Delete disks or snapshots, or ask for more: `tera quota show`"


class VolumeService:
    def __init__(self, changes: InstanceChanges) -> None:
        self._changes = changes
        self._database = changes.database

    def all(self, project: Project, *, instance: str = "") -> tuple[ShownVolume, ...]:
        with self._database.read() as tx:
            return store.of_project(tx, project.id, instance=instance)

    def volume(self, project: Project, ref: str) -> ShownVolume:
        with self._database.read() as tx:
            return _shown(tx, project, ref)

    def create(
        self, actor: Actor, project: Project, name: str, size_bytes: int, *, copied: bool = False
    ) -> ShownVolume:
        """Create a volume. It is charged from now on, and made when an instance first gets it. `copied`: it is copied
        to another host on a schedule."""
        check_name(name, "a volume")
        rules.check_size(size_bytes)

        def work(tx: Transaction, now: datetime) -> str:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            known = [each.volume.name for each in store.of_project(tx, project.id)]
            if name in known:
                raise Conflict(f"The project has a volume `{name}` already", hint="Choose another name")
            if len(known) >= rules.PER_PROJECT_MAX:
                raise Conflict(
                    f"A project can have at most {rules.PER_PROJECT_MAX} volumes", hint="Delete one first"
                )
            _check_quota(tx, fresh, size_bytes)
            id = new_id(PREFIX, now, self._changes.random_bytes)
            made = Volume(
                id=VolumeId(id),
                disk_id=id,
                copied=copied,
                project_id=project.id,
                name=name,
                size_bytes=size_bytes,
                sequence=1,
                created_at=now,
                created_by=actor.member_id,
            )
            store.insert(tx, made)
            record_held(tx, made, now, self._changes.random_bytes)
            self._note(tx, actor, project, made, "create")
            self._changes.admits(tx, project.id)
            return made.id

        return self._acted(project, work)

    def attach(self, actor: Actor, project: Project, ref: str, instance: str, path: str) -> ShownVolume:
        """Give a free volume to an instance on its host."""

        def work(tx: Transaction, now: datetime) -> str:
            claimed(tx, project)
            volume = _free(_found(tx, project, ref))
            instances.lock(tx, project.id, instance)
            before = found_instance(tx, project.id, instance).instance
            check_at_rest(before, "get a volume")
            self._changes.check_can(before, Capability.VOLUMES, "have volumes")
            mount = mount_of(volume, before, rules.checked_path(path, volume.name))
            _check_host(volume, before)
            self._keep(tx, before, (*before.volumes, mount), now)
            after = attached(volume, before, mount)
            store.put(tx, after)
            self._note(tx, actor, project, after, "attach", instance=before.name)
            return after.id

        return self._acted(project, work)

    def detach(self, actor: Actor, project: Project, ref: str) -> ShownVolume:
        """Take a volume from its instance. Programs there must have closed its files."""

        def work(tx: Transaction, now: datetime) -> str:
            claimed(tx, project)
            volume = _found(tx, project, ref)
            if not volume.instance_id:
                return volume.id
            instances.lock(tx, project.id, volume.instance_id)
            view = instances.find(tx, project.id, volume.instance_id)
            if view is not None and view.instance.volumes:  # without, it has just ended
                check_at_rest(view.instance, "give up a volume")
                left = tuple(each for each in view.instance.volumes if each.id != volume.disk_id)
                self._keep(tx, view.instance, left, now)
            store.put(tx, replace(volume, detaching=True))
            self._note(tx, actor, project, volume, "detach")
            return volume.id

        return self._acted(project, work)

    def resize(self, actor: Actor, project: Project, ref: str, size_bytes: int) -> ShownVolume:
        rules.check_size(size_bytes)

        def work(tx: Transaction, now: datetime) -> str:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            volume = _alive(_found(tx, project, ref))
            if size_bytes < volume.size_bytes:
                raise BadInput("A volume cannot shrink", hint="Create a smaller one and copy the files")
            if size_bytes > volume.size_bytes:
                _check_quota(tx, fresh, size_bytes - volume.size_bytes)
                after = replace(volume, size_bytes=size_bytes, sequence=volume.sequence + 1)
                store.put(tx, after)
                record_held(tx, after, now, self._changes.random_bytes)
                self._note(tx, actor, project, after, "resize")
                self._changes.admits(tx, project.id)
            return volume.id

        return self._acted(project, work)

    def copy(self, actor: Actor, project: Project, ref: str, copied: bool) -> ShownVolume:
        """Let a volume be copied to another host on a schedule, or no longer. Its copies are then removed."""

        def work(tx: Transaction, now: datetime) -> str:
            claimed(tx, project)
            check_active(tx, project.organisation_id)
            volume = _alive(_found(tx, project, ref))
            if volume.copied != copied:
                store.put(tx, replace(volume, copied=copied))
                self._note(tx, actor, project, volume, "copy" if copied else "stop-copying")
            return volume.id

        return self._acted(project, work)

    def recover(self, actor: Actor, project: Project, ref: str) -> ShownVolume:
        """Let the last copy of a volume take its place when its host is lost. The instance that had it loses it."""

        def work(tx: Transaction, now: datetime) -> str:
            claimed(tx, project)
            volume = _alive(_found(tx, project, ref))
            copy = _copy_to_recover(tx, volume)
            self._take_away(tx, volume, now)
            free = replace(volume, instance_id="", path="", detaching=False)
            after = recovered(tx, free, copy, now, self._changes.random_bytes)
            self._note(tx, actor, project, after, "recover", copy=copy.id)
            return volume.id

        return self._acted(project, work)

    def _take_away(self, tx: Transaction, volume: Volume, now: datetime) -> None:
        """Take a volume from an instance on a lost host, unless an operation waits there that needs it."""
        if not volume.instance_id:
            return
        instances.lock(tx, volume.project_id, volume.instance_id)
        view = instances.find(tx, volume.project_id, volume.instance_id)
        if view is None or not view.instance.volumes:
            return
        before = view.instance
        if before.wanted != Wanted.GONE and (before.progress or before.request):
            raise cannot("give up a volume", before)
        self._keep(tx, before, tuple(each for each in before.volumes if each.id != volume.disk_id), now)

    def snapshot(self, actor: Actor, project: Project, ref: str, name: str) -> ShownVolume:
        check_name(name, "a snapshot")

        def work(tx: Transaction, now: datetime) -> str:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            volume = _alive(_found(tx, project, ref))
            known = store.snapshots(tx, volume.id)
            if not volume.made_bytes:
                raise Conflict(f"The volume `{volume.name}` is empty", hint="Attach it to an instance first")
            if name in [each.name for each in known]:
                raise Conflict(f"`{volume.name}` has a snapshot `{name}` already", hint="Choose another name")
            if len(known) >= rules.SNAPSHOTS_MAX:
                raise Conflict(
                    f"A volume can have at most {rules.SNAPSHOTS_MAX} snapshots",
                    hint="Delete one of them first",
                )
            check_snapshots_quota(tx, fresh)
            id = new_id(SNAPSHOT_PREFIX, now, self._changes.random_bytes)
            made = VolumeSnapshot(
                id=id, volume_id=volume.id, name=name, state=VolumeSnapshotState.MAKING, created_at=now
            )
            store.insert_snapshot(tx, made)
            self._note(tx, actor, project, volume, "snapshot", snapshot=name)
            return volume.id

        return self._acted(project, work)

    def delete_snapshot(self, actor: Actor, project: Project, ref: str, name: str) -> ShownVolume:
        def work(tx: Transaction, now: datetime) -> str:
            volume = _found(tx, project, ref)
            found = _snapshot(tx, volume, name)
            store.move_snapshot(tx, found.id, VolumeSnapshotState.DELETING, found.size_bytes)
            self._note(tx, actor, project, volume, "delete-snapshot", snapshot=found.name)
            return volume.id

        return self._acted(project, work)

    def restore(self, actor: Actor, project: Project, ref: str, name: str) -> ShownVolume:
        """Replace the content of a free volume with that of a snapshot."""

        def work(tx: Transaction, now: datetime) -> str:
            volume = _free(_found(tx, project, ref))
            found = _snapshot(tx, volume, name)
            if found.state != VolumeSnapshotState.READY:
                raise Conflict(f"The snapshot `{found.name}` is {found.state}", hint="Try again in a moment")
            store.put(tx, replace(volume, restore_from=found.id))
            self._note(tx, actor, project, volume, "restore", snapshot=found.name)
            return volume.id

        return self._acted(project, work)

    def delete(self, actor: Actor, project: Project, ref: str) -> None:
        """Delete a free volume with its snapshots. It is charged until now."""

        def work(tx: Transaction, now: datetime) -> str:
            volume = _found(tx, project, ref)
            if not volume.deleting:
                _free(volume)
                end(tx, volume, now, self._changes.random_bytes)
                self._note(tx, actor, project, volume, "delete")
            return volume.id

        self._acted(project, work)

    def _keep(
        self, tx: Transaction, before: Instance, volumes: tuple[VolumeMount, ...], now: datetime
    ) -> None:
        if len(volumes) > rules.PER_INSTANCE_MAX:
            raise Conflict(
                f"An instance can have at most {rules.PER_INSTANCE_MAX} volumes", hint="Detach one first"
            )
        if len({each.path for each in volumes}) < len(volumes):
            raise Conflict(f"`{before.name}` has a volume at this path", hint="Choose another path")
        after = replace(before, volumes=volumes)
        instances.put(tx, before, after, now=now, random_bytes=self._changes.random_bytes)

    def _acted(self, project: Project, work: Callable[[Transaction, datetime], str]) -> ShownVolume:
        def acted(tx: Transaction) -> ShownVolume:
            id = work(tx, self._changes.clock.now())
            return _shown(tx, project, id)

        done = self._database.write_with_locks(acted)
        self._changes.wake()
        return done

    def _note(
        self, tx: Transaction, actor: Actor, project: Project, volume: Volume, act: str, **more: str
    ) -> None:
        self._changes.audit.record(tx, actor, f"volume.{act}", volume.id, project, name=volume.name, **more)


def end(tx: Transaction, volume: Volume, now: datetime, random_bytes: Callable[[int], bytes]) -> None:
    """Mark a volume for deletion. The loop deletes it on the engine."""
    after = replace(volume, deleting=True, sequence=volume.sequence + 1)
    store.put(tx, after)
    record_held(tx, after, now, random_bytes, ends=True)


def mount_of(volume: Volume, instance: Instance, path: str) -> VolumeMount:
    return VolumeMount(volume.disk_id, path, volume.host_id or instance.host_id or "")


def attached(volume: Volume, instance: Instance, mount: VolumeMount) -> Volume:
    return replace(
        volume,
        instance_id=instance.id,
        path=mount.path,
        site=instance.site,
        host_id=mount.host_id,
        problem="",
    )


def free_to_launch(tx: Transaction, project: Project, ref: str) -> Volume:
    """A volume for a new instance. Nobody else changes it until the transaction ends."""
    return _free(_found(tx, project, ref))


def _check_host(volume: Volume, instance: Instance) -> None:
    if volume.host_id and volume.host_id != instance.host_id:
        raise Conflict(
            f"The volume `{volume.name}` is on another host than `{instance.name}`",
            hint=f"Launch an instance with it: `tera launch --volume {volume.name}`",
        )


def _found(tx: Transaction, project: Project, ref: str) -> Volume:
    volume = store.locked(tx, project.id, ref)
    if volume is None:
        known = [each.volume.name for each in store.of_project(tx, project.id)]
        raise not_found("volume", ref, known, see="`tera volume list` lists them")
    return volume


def _alive(volume: Volume) -> Volume:
    if volume.deleting:
        raise Conflict(f"The volume `{volume.name}` is being deleted", hint="Create another one")
    return volume


def _free(volume: Volume) -> Volume:
    if _alive(volume).state != "free":
        raise Conflict(
            f"The volume `{volume.name}` is {volume.state}",
            hint=f"Detach it first: `tera volume detach {volume.name}`",
        )
    return volume


def _copy_to_recover(tx: Transaction, volume: Volume) -> VolumeCopy:
    if not volume.host_id or not is_lost(tx, volume.host_id):
        raise Conflict(
            f"The volume `{volume.name}` is not lost",
            hint="Its host answers. Only a volume whose host is lost is recovered from its copy",
        )
    copy = rules.best_copy(volume, store.copies(tx, volume.id))
    if copy is None:
        raise Conflict(
            f"The volume `{volume.name}` has no copy", hint="It is back when its host answers again"
        )
    if is_lost(tx, copy.host_id):
        raise Conflict(
            f"The host of the copy of `{volume.name}` does not answer either", hint="Try again later"
        )
    return copy


def _snapshot(tx: Transaction, volume: Volume, ref: str) -> VolumeSnapshot:
    known = store.snapshots(tx, volume.id)
    for each in known:
        if ref in (each.id, each.name):
            return each
    raise not_found("snapshot", ref, [each.name for each in known], see=f"`tera volume show {volume.name}`")


def _shown(tx: Transaction, project: Project, ref: str) -> ShownVolume:
    for each in store.of_project(tx, project.id):
        if ref in (each.volume.id, each.volume.name):
            id = each.volume.id
            copies = tuple((copy, _host_name(tx, copy.host_id)) for copy in store.copies(tx, id))
            return replace(each, snapshots=store.snapshots(tx, id), copies=copies)
    known = [each.volume.name for each in store.of_project(tx, project.id)]
    raise not_found("volume", ref, known, see="`tera volume list` lists them")


def _host_name(tx: Transaction, id: str) -> str:
    host = fleet.host(tx, id)
    return host.name if host else ""


def _check_quota(tx: Transaction, project: Project, more_bytes: int) -> None:
    more = QuotaAmounts(disk_bytes=more_bytes)
    used = instances.usage(tx, project.id)
    quotas.check(project.quota, used, more, of=f"project `{project.name}`", hint=HINT)
    name, outer = name_and_quota(tx, project.organisation_id)
    whole = instances.usage_of_organisation(tx, project.organisation_id)
    quotas.check(outer, whole, more, of=f"organisation `{name}`", hint=HINT)
