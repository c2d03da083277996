"""The loop that makes, attaches, detaches and deletes volumes on engines.

Load → decide → apply. Every turn compares the rows with what the engines report, so that a call that was lost or undone
is repeated. After a failed call, the volume waits a moment and the owner reads why.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.fleet import store as fleet
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.states import ENDED, Phase
from teraflock.instance.volume import store
from teraflock.instance.volume.lost import count_kept
from teraflock.instance.volume.model import (
    Volume,
    VolumeMount,
    VolumeSeen,
    VolumeSnapshot,
    VolumeSnapshotState,
)
from teraflock.instance.volume.rules import VolumeAct, next_act
from teraflock.instance.volume.service import end
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
AGAIN: Final = timedelta(seconds=5)
ACTS_MAX: Final = 8
"""Acts for one volume in one turn."""


class VolumeLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._later: dict[str, datetime] = {}
        """When volumes whose last call failed are tried again."""

    def turn(self) -> None:
        with self._around.database.read() as tx:
            volumes = store.in_all_projects(tx)
            unowned = store.of_removed_projects(tx)
            in_work = store.snapshots_in_work_in_all_projects(tx)
            instances = {each.id: each for each in across.with_volumes_in_all_projects(tx)}
        for each in unowned:
            self._around.database.write_with_locks(partial(self._end, each))
        if not volumes:
            return
        seen = self._seen({each.site for each in volumes if each.host_id})
        now = self._around.clock.now()
        for volume in volumes:
            if self._later.get(volume.id, now) > now or (volume.host_id and volume.site not in seen):
                continue
            of_engine = seen.get(volume.site, {}).get(volume.disk_id)
            has = _has_it(volume, instances.get(InstanceId(volume.instance_id)))
            if next_act(volume, of_engine, in_work.get(volume.id, ()), has_instance=has):
                self._serve(volume, of_engine)
            else:
                self._later.pop(volume.id, None)

    def _seen(self, sites: set[str]) -> dict[str, dict[str, VolumeSeen]]:
        """What each site reports, by volume. Sites that do not answer are left out."""
        found: dict[str, dict[str, VolumeSeen]] = {}
        for driver in self._around.engines:
            if driver.site in sites and Capability.VOLUMES in driver.capabilities:
                try:
                    found[driver.site] = {each.volume_id: each for each in driver.volumes()}
                except TeraflockError as error:
                    LOG.warning("%s: cannot look at volumes: %s", driver.site, error.sentence)
        return found

    def _serve(self, volume: Volume, seen: VolumeSeen | None) -> None:
        try:
            for _ in range(ACTS_MAX):
                with self._around.database.read() as tx:
                    if store.by_id_in_all_projects(tx, volume.id) != volume:
                        break  # another process served it since: the next turn looks again
                    instance = across.by_id_in_all_projects(tx, InstanceId(volume.instance_id))
                    snapshots = store.snapshots(tx, volume.id)
                act = next_act(volume, seen, snapshots, has_instance=_has_it(volume, instance))
                if act is None or not self._act(act, volume, instance, snapshots):
                    break
                fresh, seen = self._again(volume)
                if fresh is None:
                    break
                volume = fresh
            self._later.pop(volume.id, None)
        except TeraflockError as error:
            LOG.warning("%s (%s): %s", volume.id, volume.state, error.sentence)
            self._later[volume.id] = self._around.clock.now() + AGAIN
            if not isinstance(error, Unavailable):
                self._change(volume, partial(replace, problem=error.sentence))

    def _again(self, volume: Volume) -> tuple[Volume | None, VolumeSeen | None]:
        """The volume as it is now, in the database and on its engine."""
        with self._around.database.read() as tx:
            fresh = store.by_id_in_all_projects(tx, volume.id)
        if fresh is None or not fresh.host_id:
            return fresh, None
        return fresh, self._seen({fresh.site}).get(fresh.site, {}).get(fresh.disk_id)

    def _act(
        self,
        act: VolumeAct,
        volume: Volume,
        instance: Instance | None,
        snapshots: Sequence[VolumeSnapshot],
    ) -> bool:
        """Do it. False: nothing more can be done now."""
        if not volume.host_id:
            self._around.database.write(lambda tx: store.remove(tx, volume.id))
            return False
        driver, host = self._place(volume)
        match act:
            case VolumeAct.CREATE:
                driver.create_volume(host, volume.disk_id, volume.size_bytes)
                made = volume.size_bytes
                self._change(
                    volume, lambda each: replace(each, made_bytes=max(made, each.made_bytes), problem="")
                )
                self._around.wake()
            case VolumeAct.ATTACH:
                if instance is None or instance.phase not in (Phase.RUNNING, Phase.STOPPED):
                    return False  # its launch attaches it
                mount = VolumeMount(volume.disk_id, volume.path, volume.host_id)
                driver.attach_volume(host, volume.instance_id, mount)
            case VolumeAct.DETACH:
                driver.detach_volume(host, volume.instance_id, volume.disk_id)
            case VolumeAct.FREE:
                self._change(volume, partial(_freed, volume.instance_id))
            case VolumeAct.RESTORE:
                driver.restore_volume(host, volume.disk_id, volume.restore_from)
                self._change(volume, partial(_restored, volume.restore_from))
            case VolumeAct.SNAPSHOTS:
                for each in snapshots:
                    self._snapshot(driver, host, volume, each)
            case VolumeAct.DELETE:
                driver.delete_volume(host, volume.disk_id)
                self._around.database.write(lambda tx: store.remove(tx, volume.id))
        return True

    def _snapshot(self, driver: ComputeDriver, host: str, volume: Volume, snapshot: VolumeSnapshot) -> None:
        if snapshot.state == VolumeSnapshotState.MAKING:
            size = driver.snapshot_volume(host, volume.disk_id, snapshot.id)
            self._around.database.write_with_locks(
                partial(self._kept, volume, snapshot, VolumeSnapshotState.READY, size)
            )
        elif snapshot.state == VolumeSnapshotState.DELETING:
            driver.delete_volume_snapshot(host, volume.disk_id, snapshot.id)
            self._around.database.write_with_locks(partial(self._kept, volume, snapshot, None, 0))

    def _kept(
        self,
        volume: Volume,
        snapshot: VolumeSnapshot,
        state: VolumeSnapshotState | None,
        size_bytes: int,
        tx: Transaction,
    ) -> None:
        """Write a finished snapshot, and what the volume holds with it."""
        fresh = store.locked_in_all_projects(tx, volume.id)
        now = next((each for each in store.snapshots(tx, volume.id) if each.id == snapshot.id), None)
        if fresh is None or fresh.deleting or now is None or now.state != snapshot.state:
            return
        if state:
            store.move_snapshot(tx, snapshot.id, state, size_bytes)
        else:
            store.remove_snapshot(tx, snapshot.id)
        count_kept(tx, fresh, self._around.clock.now(), self._around.random_bytes)

    def _change(self, volume: Volume, change: Callable[[Volume], Volume]) -> None:
        def work(tx: Transaction) -> None:
            fresh = store.locked_in_all_projects(tx, volume.id)
            if fresh is None or fresh.disk_id != volume.disk_id:
                return  # gone, or recovered from a copy since
            if change(fresh) != fresh:
                store.put(tx, change(fresh))

        self._around.database.write_with_locks(work)

    def _end(self, volume: Volume, tx: Transaction) -> None:
        fresh = store.locked_in_all_projects(tx, volume.id)
        if fresh is not None and not fresh.deleting:  # another process may have been faster
            end(tx, fresh, self._around.clock.now(), self._around.random_bytes)

    def _place(self, volume: Volume) -> tuple[ComputeDriver, str]:
        with self._around.database.read() as tx:
            host = fleet.host(tx, volume.host_id)
        return self._around.engines.at(volume.site), host.name if host else ""


def _has_it(volume: Volume, instance: Instance | None) -> bool:
    """Whether the instance of a volume exists, is on its host and should have it."""
    if instance is None or instance.phase in ENDED or instance.host_id != volume.host_id:
        return False
    return any(each.id == volume.disk_id for each in instance.volumes)


def _restored(snapshot_id: str, volume: Volume) -> Volume:
    """The volume after this snapshot was restored, unless another one should be by now."""
    return replace(volume, restore_from="", problem="") if volume.restore_from == snapshot_id else volume


def _freed(instance_id: str, volume: Volume) -> Volume:
    """The volume after this instance, unless another one has it by now."""
    if volume.instance_id != instance_id:
        return volume
    return replace(volume, instance_id="", path="", detaching=False, problem="")
