"""Volumes on both databases: quotas, hosts, tenants and the bill."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.faults.data_installation import DataInstallation
from tests.faults.test_volumes import VolumeDesk
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached
from teraflock.base.quantities import GIB
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.instance.volume.rules import VolumeAct
from teraflock.reconcile.volumes import VolumeLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import OrganisationQuota, Quota
from teraflock.tenant.service import TenantService

BOOK = "- {from: 2026-01-01, currency: USD, disk: 7.30/month, snapshot: 730/month}\n"


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> VolumeDesk:
    clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
    return VolumeDesk(DataInstallation(database, MemoryWorld(), clock, tmp_path))


def test_volume_belongs_to_one_instance_on_its_host(desk: VolumeDesk) -> None:
    desk.volumes.create(desk.actor, desk.project, "disk", GIB)
    with pytest.raises(Conflict, match="empty"):
        desk.volumes.snapshot(desk.actor, desk.project, "disk", "early")
    first = desk.launch("first", "disk")
    again = desk.launch("again")
    assert first.volumes[0].path == "/volumes/disk"
    with pytest.raises(Conflict, match="is attached"):
        desk.volumes.attach(desk.actor, desk.project, "disk", "again", "")
    with pytest.raises(Conflict, match="is attached"):
        desk.volumes.delete(desk.actor, desk.project, "disk")
    with pytest.raises(BadInput, match="one instance"):
        desk.installation.service.launch(desk.actor, desk.project, Order(volumes=("disk",), instances=2))
    desk.volumes.detach(desk.actor, desk.project, "disk")
    desk.settle()
    for path in ("relative", "/etc/x", "/mnt/../x", "/", "/a b", "/data/x"):
        with pytest.raises(BadInput):
            desk.volumes.attach(desk.actor, desk.project, "disk", "first", path)
    desk.volumes.resize(desk.actor, desk.project, "disk", 2 * GIB)
    with pytest.raises(BadInput, match="shrink"):
        desk.volumes.resize(desk.actor, desk.project, "disk", GIB)
    if first.host_id != again.host_id:
        with pytest.raises(Conflict, match="another host"):
            desk.volumes.attach(desk.actor, desk.project, "disk", "again", "")
    back = desk.launch("back", "disk:/mnt/x")
    assert back.host_id == first.host_id, "an instance goes to the volume"


def test_volume_of_an_instance_that_has_just_ended_can_be_detached(desk: VolumeDesk) -> None:
    desk.volumes.create(desk.actor, desk.project, "disk", GIB)
    first = desk.launch("first", "disk")
    desk.installation.service.delete(desk.actor, desk.project, "first")
    while desk.installation.service.view(desk.project.id, first.id).instance.phase != Phase.GONE:
        desk.installation.workers[0].turn()
        desk.installation.wait(1)
    assert desk.volumes.detach(desk.actor, desk.project, "disk").volume.state == "detaching"
    desk.settle()
    assert desk.shown().volume.state == "free"


def test_volumes_of_one_instance_are_listed(desk: VolumeDesk) -> None:
    for name in ("disk", "spare"):
        desk.volumes.create(desk.actor, desk.project, name, GIB)
    first = desk.launch("first", "disk")
    for ref in (first.id, "first"):
        assert [each.volume.name for each in desk.volumes.all(desk.project, instance=ref)] == ["disk"]
    assert desk.volumes.all(desk.project, instance="another") == ()
    assert len(desk.volumes.all(desk.project)) == 2


def test_other_projects_see_and_use_nothing(desk: VolumeDesk) -> None:
    desk.volumes.create(desk.actor, desk.project, "disk", GIB)
    installation = desk.installation
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    other = tenants.projects.make(desk.actor, "other")
    assert desk.volumes.all(other) == ()
    for act in (
        lambda: desk.volumes.volume(other, "disk"),
        lambda: desk.volumes.delete(desk.actor, other, "disk"),
        lambda: desk.volumes.resize(desk.actor, other, "disk", 2 * GIB),
        lambda: installation.service.launch(desk.actor, other, Order(volumes=("disk",))),
    ):
        with pytest.raises(NotFound):
            act()
    desk.volumes.create(desk.actor, other, "disk", GIB)
    tenants.projects.remove(desk.actor, other.id)
    for _ in range(3):
        VolumeLoop(installation.workers[0].around).turn()
    assert [each.volume.project_id for each in desk.volumes.all(other)] == []


def test_volumes_count_against_the_quota_for_disks(desk: VolumeDesk) -> None:
    installation = desk.installation
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    tenants.projects.set_quota(desk.actor, desk.project.id, Quota(disk_bytes=10 * GIB))
    desk.volumes.create(desk.actor, desk.project, "disk", 6 * GIB)
    with pytest.raises(QuotaReached, match="of disk"):
        desk.volumes.create(desk.actor, desk.project, "more", 6 * GIB)
    with pytest.raises(QuotaReached, match="of disk"):
        desk.volumes.resize(desk.actor, desk.project, "disk", 11 * GIB)
    assert installation.service.usage(desk.project.id).disk_bytes == 6 * GIB


def test_snapshots_of_volumes_keep_to_the_quota_of_the_organisation(desk: VolumeDesk) -> None:
    installation = desk.installation
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    desk.volumes.create(desk.actor, desk.project, "disk", 6 * GIB)
    desk.launch("first", "disk")
    desk.volumes.snapshot(desk.actor, desk.project, "disk", "before")
    tenants.organisations.set_quota(
        desk.actor, desk.project.organisation_id, OrganisationQuota(disk_bytes=GIB)
    )
    with pytest.raises(QuotaReached, match="of disk"):
        desk.volumes.snapshot(desk.actor, desk.project, "disk", "after")


def test_volume_is_charged_as_a_disk_from_creation_to_deletion(desk: VolumeDesk) -> None:
    installation = desk.installation
    clock = installation.clock
    bills = BillService(installation.database, clock, RATES, installation.random_bytes)
    bills.prices.take(BOOK, name="prices.yaml", member="mem")
    desk.volumes.create(desk.actor, desk.project, "disk", 100 * GIB)
    clock.move(timedelta(hours=10))
    bills.turn()
    desk.volumes.resize(desk.actor, desk.project, "disk", 200 * GIB)
    clock.move(timedelta(hours=10))
    desk.volumes.delete(desk.actor, desk.project, "disk")
    clock.move(timedelta(days=2))
    bills.turn()
    charged: Counter[str] = Counter()
    for each in bills.lines(desk.project.id, "2026-11"):
        charged[each.charge.subject.held.name] += each.charge.micros
    assert charged == {"volume disk": 30_000_000}, (
        "10 hours of 100 GB and 10 of 200 GB at 0.01 per GB and hour"
    )
    assert verify(installation.database).faults == ()


def test_two_processes_do_not_undo_each_other(desk: VolumeDesk) -> None:
    desk.volumes.create(desk.actor, desk.project, "disk", GIB)
    desk.launch("first", "disk")
    loop, old = VolumeLoop(desk.installation.workers[1].around), desk.shown().volume
    desk.installation.service.delete(desk.actor, desk.project, "first")
    desk.settle()
    second = desk.launch("second", "disk")
    assert loop._act(VolumeAct.FREE, old, None, ()), "it decided before the other one freed the volume"
    loop._serve(old, None)
    assert desk.shown().volume.instance_id == second.id
    desk.volumes.snapshot(desk.actor, desk.project, "disk", "one")
    (making,) = desk.shown().snapshots
    desk.settle()
    desk.volumes.delete_snapshot(desk.actor, desk.project, "disk", "one")
    loop._snapshot(desk.installation.engine, *_host_of(desk), desk.shown().volume, making)
    assert [each.state for each in desk.shown().snapshots] == ["deleting"]


def _host_of(desk: VolumeDesk) -> tuple[str]:
    return (desk.installation.service.view(desk.project.id, "second").host_name or "",)


def test_volume_of_a_removed_project_ends_once(desk: VolumeDesk) -> None:
    volume = desk.volumes.create(desk.actor, desk.project, "disk", GIB).volume
    for worker in desk.installation.workers:  # both have read that it must end
        desk.installation.database.write_with_locks(partial(VolumeLoop(worker.around)._end, volume))
    with desk.installation.database.read() as tx:
        ends = tx.all(
            "SELECT 1 FROM event WHERE kind = 'volume.moved' AND details LIKE :end", end='%"deleting"%'
        )
    assert len(ends) == 1


def test_volumes_with_nothing_to_do_need_no_query_each(
    desk: VolumeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.volumes.create(desk.actor, desk.project, "disk", GIB)
    desk.launch("first", "disk")
    for name in ("spare", "more"):
        desk.volumes.create(desk.actor, desk.project, name, GIB)
    desk.settle()
    served: list[str] = []
    monkeypatch.setattr(VolumeLoop, "_serve", lambda loop, volume, seen: served.append(volume.name))
    loop = VolumeLoop(desk.installation.workers[0].around)
    loop.turn()
    assert served == []
    desk.volumes.resize(desk.actor, desk.project, "disk", 2 * GIB)
    loop.turn()
    assert served == ["disk"]
