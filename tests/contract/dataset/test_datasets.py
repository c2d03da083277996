"""Datasets on both databases: uploads, quotas, tenants, the bill, and a bucket."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.faults.data_installation import DataInstallation, manifest_of, pieces
from tests.unit.bill.world import RATES

from teraflock.app.bucket import bucket_of
from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached, Unavailable
from teraflock.base.quantities import GIB
from teraflock.bill import store as bills
from teraflock.bill.budget.admission import BudgetReached, admission
from teraflock.bill.service import BillService
from teraflock.bill.store import Profile
from teraflock.bill.verify.service import verify
from teraflock.dataset import service
from teraflock.dataset.model import DatasetState
from teraflock.dataset.service import DatasetService
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order
from teraflock.reconcile.datasets import UNUSED_MAX, DatasetLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService

FILES = {"a": b"hello\n", "b": bytes(range(256)) * 20}
BOOK = "- {from: 2026-01-01, currency: USD, vcpu: 9/hour, snapshot: 730/month, data: 7.30/month}\n"


@pytest.fixture
def installation(database: Database, tmp_path: Path) -> DataInstallation:
    clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
    return DataInstallation(database, MemoryWorld(), clock, tmp_path)


def test_interrupted_upload_continues_and_is_complete_only_with_all_chunks(
    installation: DataInstallation,
) -> None:
    project, actor = installation.tenant.project, installation.tenant.actor
    made = installation.announce("corpus", FILES)
    content = b"".join(FILES[each] for each in sorted(FILES))
    first = pieces(content)[0]
    digest = sha256(first).hexdigest()
    for at, part, seen in ((0, first[:300], (300, False)), (0, first, (300, False))):
        assert installation.datasets.receive(project, "corpus", digest, at, part) == seen
    with pytest.raises(Conflict):
        installation.datasets.complete(actor, project, "corpus")
    with pytest.raises(Conflict, match="uploading"):
        installation.service.launch(actor, project, Order(data=("corpus",)))
    assert installation.datasets.receive(project, "corpus", digest, 300, first[300:]) == (1000, True)
    with pytest.raises(BadInput):
        installation.datasets.receive(project, "corpus", "0" * 64, 0, b"not in the manifest")
    wrong = sha256(pieces(content)[1]).hexdigest()
    with pytest.raises(Conflict, match="announced content"):
        installation.datasets.receive(project, "corpus", wrong, 0, bytes(1000))
    ready = installation.push("corpus", FILES)
    assert (ready.id, ready.state, ready.size_bytes) == (made.id, DatasetState.READY, len(content))
    assert b"".join(installation.stored.content(made.id)) == content
    assert installation.datasets.receive(project, "corpus", digest, 0, bytes(1000)) == (1000, True)
    assert b"".join(installation.stored.content(made.id)) == content, "it never changes"


def test_two_pushes_at_once_make_one_dataset(installation: DataInstallation) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: installation.push("corpus", FILES), range(4)))
    assert len({each.id for each in made}) == 1
    assert len(installation.datasets.all(installation.tenant.project)) == 1


def test_damage_is_noticed(installation: DataInstallation) -> None:
    made = installation.push("corpus", FILES)
    chunk = next((installation.folder.parent / "datasets" / made.id).glob("??/*"))
    chunk.write_bytes(bytes(chunk.stat().st_size))
    with pytest.raises(Unavailable, match="damaged"):
        list(installation.stored.content(made.id))


def test_quota_counts_announced_data(installation: DataInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = installation.tenant
    size = sum(map(len, FILES.values()))
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    monkeypatch.setattr(service, "BYTES_MAX_DEFAULT", size)
    installation.announce("corpus", FILES)
    with pytest.raises(QuotaReached, match="of data"):
        installation.announce("more", {"a": b"x"})
    assert len(installation.stored.kept(float("inf"))) == 1, (
        "a refused dataset leaves no manifest on the disk"
    )
    tenants.projects.set_quota(tenant.actor, tenant.project.id, Quota(data_bytes=2 * GIB))
    installation.announce("more", {"a": b"x"})
    assert installation.service.usage(tenant.project.id).data_bytes == size + 1
    tenants.projects.set_quota(tenant.actor, tenant.project.id, Quota(data_bytes=0))
    with pytest.raises(QuotaReached):
        installation.announce("third", {"a": b"y"})


def test_empty_files_are_limited(installation: DataInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FILES_PER_PROJECT_MAX", 3)
    installation.announce("some", {"a": b"", "b": b""})
    with pytest.raises(Conflict, match="3 files"):
        installation.announce("more", {"c": b"", "d": b""})
    installation.announce("one", {"e": b""})


def test_project_that_cannot_pay_stores_no_data(installation: DataInstallation) -> None:
    profile = Profile(project_id=installation.tenant.project.id, currency="USD", pays="prepaid")
    installation.database.write(lambda tx: bills.set_profile(tx, profile))
    installation.datasets = DatasetService(
        installation.database,
        installation.clock,
        installation.stored,
        installation.files.whole_upload,
        random_bytes=installation.random_bytes,
        admits=admission(installation.clock),
    )
    with pytest.raises(BudgetReached):
        installation.announce("corpus", FILES)
    assert installation.datasets.all(installation.tenant.project) == ()
    assert installation.stored.kept(float("inf")) == []


def test_other_projects_see_and_use_nothing(installation: DataInstallation) -> None:
    installation.push("corpus", FILES)
    tenants = TenantService(installation.database, installation.clock, installation.random_bytes)
    other = tenants.projects.make(installation.tenant.actor, "other")
    assert installation.datasets.all(other) == ()
    for act in (
        lambda: installation.datasets.dataset(other, "corpus"),
        lambda: installation.datasets.delete(installation.tenant.actor, other, "corpus"),
        lambda: installation.service.launch(installation.tenant.actor, other, Order(data=("corpus",))),
    ):
        with pytest.raises(NotFound):
            act()
    digest = sha256(manifest_of(FILES)).hexdigest()
    with pytest.raises(Conflict, match="not uploaded"):
        installation.datasets.create(installation.tenant.actor, other, "mine", digest)
    lacks = installation.announce("mine", FILES, other)
    assert installation.datasets.missing(other, lacks.id, limit=9)[1] > 0, (
        "who has the digest must send the data"
    )


def test_data_is_charged_from_complete_to_deleted(installation: DataInstallation) -> None:
    clock, project = installation.clock, installation.tenant.project
    bills = BillService(installation.database, clock, RATES, installation.random_bytes)
    bills.prices.take(BOOK, name="prices.yaml", member="mem")
    made = installation.announce("corpus", FILES)
    big = replace(made, size_bytes=100 * GIB)
    installation.database.write(
        lambda tx: tx.run("UPDATE dataset SET size_bytes = :size WHERE id = :id", size=100 * GIB, id=big.id)
    )
    clock.move(timedelta(hours=5))
    installation.push("corpus", FILES)
    clock.move(timedelta(hours=10))
    bills.turn()
    installation.datasets.delete(installation.tenant.actor, project, "corpus")
    clock.move(timedelta(days=2))
    bills.turn()
    charged: Counter[str] = Counter()
    for each in bills.lines(project.id, "2026-11"):
        charged[each.charge.subject.held.name] += each.charge.micros
    assert charged == {"data corpus": 10_000_000}, "100 GB x 10 hours at 0.01 per GB and hour"
    assert verify(installation.database).faults == ()


@pytest.mark.parametrize("of", ["project", "organisation"])
def test_data_and_volumes_end_with_their_owner(installation: DataInstallation, of: str) -> None:
    tenant = installation.tenant
    installation.push("corpus", FILES)
    installation.service.volumes.create(tenant.actor, tenant.project, "disk", GIB)
    sql, id = {
        "project": ("UPDATE project SET removed_at_us = 1 WHERE id = :id", tenant.project.id),
        "organisation": (
            "UPDATE organisation SET state = 'deleted' WHERE id = :id",
            tenant.project.organisation_id,
        ),
    }[of]
    installation.database.write(lambda tx: tx.run(sql, id=id))
    for _ in range(3):
        installation.data_loop.turn()
        installation.volume_loop.turn()
    assert installation.datasets.all(tenant.project) == ()
    assert installation.service.volumes.all(tenant.project) == ()


def test_bucket_keeps_chunks_and_loses_them_on_delete(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moto = pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto.mock_aws():
        bucket = bucket_of("s3://lake/data?region=us-east-1")
        assert bucket is not None
        bucket._client.create_bucket(Bucket="lake")  # type: ignore[attr-defined]
        clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
        installation = DataInstallation(database, MemoryWorld(), clock, tmp_path, bucket=bucket)
        made = installation.push("corpus", FILES)
        assert len(bucket.sizes(f"{made.id}/")) == made.chunks
        assert not list((tmp_path / "datasets" / made.id).glob("??/*")), "the folder keeps only the manifest"
        assert b"".join(installation.stored.content(made.id)) == FILES["a"] + FILES["b"]
        installation.datasets.delete(installation.tenant.actor, installation.tenant.project, "corpus")
        installation.turn()
        assert bucket.sizes("") == {}
    for url in ("http://lake", "s3://", "s3://lake?colour=red"):
        with pytest.raises(BadInput):
            bucket_of(url)


def test_one_of_two_processes_copies_a_dataset(installation: DataInstallation) -> None:
    installation.push("corpus", FILES)
    tenant = installation.tenant
    copies: list[str] = []
    installation.service.launch(tenant.actor, tenant.project, Order(data=("corpus",)))
    loops = [
        DatasetLoop(
            each.around, installation.stored, submit=partial(_note, copies, each.name), worker=each.name
        )
        for each in installation.workers
    ]
    for each in loops:
        each.turn()
    (first,) = copies
    living = next(each for each in installation.workers if each.name != first)
    installation.wait(10)
    living.beat()
    for each in loops:
        each.turn()
    assert copies == [first, living.name], "the other one takes over"


def _note(copies: list[str], name: str, work: Callable[[], None]) -> None:
    copies.append(name)


def test_data_of_a_removed_project_ends_once(installation: DataInstallation) -> None:
    made = installation.push("corpus", FILES)
    for each in installation.workers:  # both have read that it must end
        DatasetLoop(each.around, installation.stored)._expire([made])
    with installation.database.read() as tx:
        events = tx.all("SELECT 1 FROM event WHERE kind = 'dataset.moved'")
    assert len(events) == 2, "complete and deleted"


def test_launch_only_reads_the_row_of_a_dataset(installation: DataInstallation) -> None:
    """Two launches that share a lock on the row and then write it would wait for each other."""
    before = installation.push("corpus", FILES)
    tenant = installation.tenant
    installation.wait(60)
    installation.service.launch(tenant.actor, tenant.project, Order(data=("corpus",)))
    assert installation.datasets.dataset(tenant.project, "corpus") == before


@pytest.mark.parametrize(("used", "is_kept"), [(80, True), (81, False)])
def test_unused_copy_is_removed_only_from_a_full_host(
    installation: DataInstallation, used: int, is_kept: bool
) -> None:
    made = installation.push("corpus", FILES)
    (driver,) = installation.workers[0].around.engines
    name = next(iter(driver.hosts())).name
    installation.turn(10)  # the hosts are in the database
    installation.data_loop.send(driver, name, made)
    installation.database.write(
        lambda tx: tx.run("UPDATE host SET disk_bytes = 100, disk_used_bytes = :used", used=used)
    )
    installation.data_loop.turn()
    assert [(each.host, each.dataset_id) for each in driver.datasets()] == (
        [(name, made.id)] if is_kept else []
    )


def test_upload_that_stopped_is_removed_after_a_week(installation: DataInstallation) -> None:
    installation.push("corpus", FILES)
    tenant, loop = installation.tenant, DatasetLoop(installation.workers[0].around, installation.stored)
    installation.announce("stopped", {"c": b"never sent"})
    installation.wait(UNUSED_MAX.total_seconds() - 60)
    loop.turn()
    assert len(installation.datasets.all(tenant.project)) == 2
    installation.wait(120)
    for _ in range(2):
        loop.turn()
    assert [each.name for each in installation.datasets.all(tenant.project)] == ["corpus"]
