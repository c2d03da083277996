"""Copies of volumes on both databases: the schedule, quotas, the bill, and what is recovered when."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.faults.data_installation import DataInstallation
from tests.faults.test_volume_copies import EVERY, CopyDesk
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Conflict, NotFound
from teraflock.base.quantities import GIB, MIB
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.model import HostId
from teraflock.instance.copy.states import CopyState
from teraflock.instance.join import store as joins
from teraflock.instance.join.model import JoinedHost
from teraflock.instance.states import Phase
from teraflock.instance.volume import store
from teraflock.reconcile.volume_copies import VolumeCopyLoop
from teraflock.reconcile.volumes import VolumeLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService

BOOK = "- {from: 2026-01-01, currency: USD, disk: 7.30/month, snapshot: 730000/month}\n"


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> CopyDesk:
    clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
    return CopyDesk(DataInstallation(database, MemoryWorld(), clock, tmp_path))


def test_volume_comes_back_from_its_last_copy(desk: CopyDesk) -> None:
    first = desk.started()
    desk.volumes.snapshot(desk.actor, desk.project, "disk", "before")
    desk.settle()
    desk.copying()
    (copy,) = desk.copies()
    assert (copy.state, copy.size_bytes, copy.host_id != first.host_id) == (
        CopyState.READY,
        len(b"one"),
        True,
    )
    shown = desk.shown()
    assert [(each.state, host != desk.host("first")) for each, host in shown.copies] == [
        (CopyState.READY, True)
    ]
    assert shown.volume.snapshots_bytes == 2 * len(b"one"), "the snapshot and the copy"
    desk.copying()
    assert desk.copies() == (copy,), "it is not due yet"
    with pytest.raises(Conflict, match="is not lost"):
        desk.volumes.recover(desk.actor, desk.project, "disk")
    desk.installation.trouble.host_goes_away(desk.host("first"))
    desk.settle()
    desk.installation.wait(EVERY.total_seconds())
    desk.copying()
    assert desk.copies() == (copy,), "a lost host cannot be copied from"
    after = desk.volumes.recover(desk.actor, desk.project, "disk")
    assert (after.volume.state, after.volume.host_id, after.volume.disk_id) == ("free", copy.host_id, copy.id)
    assert (after.snapshots, after.volume.snapshots_bytes) == ((), 0), "they are lost with the host"
    assert [each.state for each, _ in after.copies] == [CopyState.REMOVING]
    assert desk.installation.service.view(desk.project.id, "first").instance.volumes == ()
    with pytest.raises(Conflict, match="is not lost"):
        desk.volumes.recover(desk.actor, desk.project, "disk")
    desk.volumes.resize(desk.actor, desk.project, "disk", 2 * GIB)
    second = desk.launch("second", "disk")
    assert (second.phase, second.host_id) == (Phase.RUNNING, copy.host_id)
    assert desk.words("second", "cat", "/volumes/disk/kept") == b"one"
    assert {each.key: each.size_bytes for each in desk.on_engine()}[copy.id] == 2 * GIB
    desk.volumes.snapshot(desk.actor, desk.project, "disk", "before")
    desk.settle()
    assert [each.state for each in desk.shown().snapshots] == ["ready"]


def test_only_volumes_that_should_be_are_copied(desk: CopyDesk) -> None:
    desk.started()
    desk.volumes.create(desk.actor, desk.project, "plain", GIB)
    desk.volumes.create(desk.actor, desk.project, "empty", GIB, copied=True)
    desk.launch("other", "plain")
    desk.copying(timedelta(0))
    assert desk.copies() == (), "the operator has switched copies off"
    desk.copying()
    assert [each.volume_id for each in desk.copies()] == [desk.shown().volume.id]
    desk.volumes.copy(desk.actor, desk.project, "plain", True)
    desk.volumes.copy(desk.actor, desk.project, "disk", False)
    desk.copying()
    (copy,) = desk.copies()
    assert copy.volume_id == desk.volumes.volume(desk.project, "plain").volume.id
    assert desk.shown().volume.snapshots_bytes == 0
    assert len(desk.on_engine()) == 3


def test_no_copy_is_made_beyond_the_quota(desk: CopyDesk) -> None:
    desk.started()
    installation = desk.installation
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    tenants.projects.set_quota(desk.actor, desk.project.id, Quota(disk_bytes=1))
    desk.copying()
    assert desk.copies() == ()
    tenants.projects.set_quota(desk.actor, desk.project.id, Quota())
    before = installation.service.usage(desk.project.id).disk_bytes
    desk.copying()
    assert installation.service.usage(desk.project.id).disk_bytes == before + len(b"one")


def test_copies_are_charged_as_snapshots(desk: CopyDesk) -> None:
    installation = desk.installation
    bills = BillService(installation.database, installation.clock, RATES, installation.random_bytes)
    bills.prices.take(BOOK, name="prices.yaml", member="mem")
    desk.started()
    desk.words("first", "tee", "/mnt/disk/kept", stdin=bytes(MIB))
    desk.installation.service.delete(desk.actor, desk.project, "first")
    desk.settle()
    bills.turn()
    desk.copying()
    installation.wait(36_000)
    desk.volumes.delete(desk.actor, desk.project, "disk")
    installation.wait(86_400)
    bills.turn()
    charged: Counter[str] = Counter()
    for each in bills.lines(desk.project.id, "2026-11"):
        charged[each.charge.subject.held.name] += each.charge.micros
    copies = 10 * 1_000_000_000 * MIB // GIB
    assert copies <= charged["volume disk"] < copies + 200_000, (
        "10 hours of 1 MB at 1000 per GB and hour, and of the disk"
    )
    assert verify(installation.database).faults == ()


def test_one_of_two_processes_copies_a_volume(desk: CopyDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.started()
    loops = [VolumeCopyLoop(each.around, EVERY, worker=each.name) for each in desk.installation.workers]
    copied: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(VolumeCopyLoop, "_copy", lambda self, volume: copied.append(volume.id))
        for loop in loops:
            loop.turn()
    volume = desk.shown().volume
    assert copied == [volume.id]
    for loop in loops:  # both take it for their own
        loop._copy(volume)
    assert [each.state for each in desk.copies()] == [CopyState.READY]
    assert len(desk.on_engine()) == 2


def test_copy_of_a_process_that_was_taken_for_dead(desk: CopyDesk) -> None:
    desk.started()
    database = desk.installation.database
    loop = VolumeCopyLoop(desk.installation.workers[0].around, EVERY)
    desk.copying()
    (copy,) = desk.copies()
    making = replace(copy, state=CopyState.MAKING, id="vcp_other", source_id="old")
    database.write(lambda tx: store.insert_copy(tx, making))
    database.write(lambda tx: store.set_copy_removing(tx, making.id))
    assert database.write_with_locks(lambda tx: loop._finish(making, 1, tx)), "the loop removes it"
    desk.copying()
    assert not database.write_with_locks(lambda tx: loop._finish(making, 1, tx)), "its maker does"
    assert desk.copies() == (copy,)


def test_a_copy_in_use_is_never_removed(desk: CopyDesk) -> None:
    """The loop decided to remove a copy, and meanwhile it is needed, or the volume was recovered from it."""
    desk.started()
    desk.copying()
    (copy,) = desk.copies()
    loop = VolumeCopyLoop(desk.installation.workers[0].around, EVERY)
    desk.installation.database.write_with_locks(lambda tx: loop._mark(copy, tx))
    assert desk.copies() == (copy,)
    desk.volumes.copy(desk.actor, desk.project, "disk", False)
    desk.installation.trouble.host_goes_away(desk.host("first"))
    desk.settle()
    desk.volumes.recover(desk.actor, desk.project, "disk")
    desk.installation.database.write_with_locks(lambda tx: loop._mark(copy, tx))
    loop.turn()
    assert copy.id in [each.key for each in desk.on_engine()]
    assert desk.shown().volume.disk_id == copy.id


def test_a_loop_that_began_before_changes_nothing(desk: CopyDesk) -> None:
    """A volume grows on its old host, and meanwhile it was recovered."""
    desk.started()
    desk.copying()
    old = desk.shown().volume
    desk.installation.trouble.host_goes_away(desk.host("first"))
    desk.settle()
    desk.volumes.recover(desk.actor, desk.project, "disk")
    loop = VolumeLoop(desk.installation.workers[0].around)
    loop._change(old, lambda each: replace(each, made_bytes=5 * GIB))
    assert desk.shown().volume.made_bytes == GIB


def test_not_recovered_without_a_copy_or_its_host(desk: CopyDesk) -> None:
    desk.started()
    lost = desk.host("first")
    desk.copying()
    ((_, there),) = desk.shown().copies
    desk.installation.trouble.host_goes_away(there)
    desk.installation.trouble.host_goes_away(lost)
    desk.settle()
    with pytest.raises(Conflict, match="does not answer either"):
        desk.volumes.recover(desk.actor, desk.project, "disk")
    desk.installation.trouble.host_comes_back(there)
    desk.settle()
    desk.volumes.copy(desk.actor, desk.project, "disk", False)
    desk.copying()
    with pytest.raises(Conflict, match="has no copy"):
        desk.volumes.recover(desk.actor, desk.project, "disk")


def test_hosts_that_were_removed_are_lost(desk: CopyDesk) -> None:
    desk.started()
    lost = desk.host("first")
    desk.copying()
    ((copy, there),) = desk.shown().copies
    installation = desk.installation
    for name in (lost, there):
        installation.trouble.host_goes_away(name)
    desk.settle()
    now = installation.clock.now()
    installation.database.write(lambda tx: fleet.mark_removed(tx, HostId(copy.host_id), now))
    with pytest.raises(Conflict, match="does not answer either"):
        desk.volumes.recover(desk.actor, desk.project, "disk")
    again = JoinedHost(name="simulated", number=1, certificate="", cards=(), trusted_wire=True, joined_at=now)
    installation.database.write(lambda tx: joins.insert(tx, again))
    installation.trouble.host_comes_back(there)
    desk.settle()
    host_id = HostId(desk.shown().volume.host_id)
    installation.database.write(lambda tx: fleet.mark_removed(tx, host_id, now))
    desk.volumes.recover(desk.actor, desk.project, "disk")
    desk.copying(timedelta(0))
    assert desk.copies() == (), "a removed host has nothing of ours"
    desk.launch("second", "disk")
    assert desk.words("second", "cat", "/volumes/disk/kept") == b"one"


def test_an_instance_that_is_deleted_gives_its_volume_up(desk: CopyDesk) -> None:
    desk.started()
    lost = desk.host("first")
    desk.copying()
    desk.installation.trouble.host_goes_away(lost)
    desk.settle()
    desk.installation.service.delete(desk.actor, desk.project, "first")
    desk.settle()
    desk.volumes.recover(desk.actor, desk.project, "disk")
    second = desk.launch("second", "disk")
    assert desk.words("second", "cat", "/volumes/disk/kept") == b"one", second.problem
    desk.installation.trouble.host_comes_back(lost)
    desk.finish()
    desk.check()
    assert desk.words("second", "cat", "/volumes/disk/kept") == b"one"


def test_other_projects_recover_nothing(desk: CopyDesk) -> None:
    desk.started()
    installation = desk.installation
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    other = tenants.projects.make(desk.actor, "other")
    with pytest.raises(NotFound):
        desk.volumes.recover(desk.actor, other, "disk")
    with pytest.raises(NotFound):
        desk.volumes.copy(desk.actor, other, "disk", True)


def test_copies_of_a_removed_project_end(desk: CopyDesk) -> None:
    installation = desk.installation
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    desk.started()
    desk.copying()
    installation.service.delete(desk.actor, desk.project, "first")
    desk.settle()
    tenants.projects.make(desk.actor, "other")
    tenants.projects.remove(desk.actor, desk.project.id)
    desk.finish()
    assert (desk.copies(), desk.on_engine()) == ((), [])
