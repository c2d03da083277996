"""A server's cached view of the fleet may be outdated. It never refuses free capacity or assigns taken capacity."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults import installation as installations
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput
from teraflock.base.size import Size
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.card.store import take_gpus
from teraflock.fleet.model import GpuKind, GpuReport, HostId, HostReport
from teraflock.instance.claims import NoCapacity
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order, ShapeWish, shape_of
from teraflock.storage.database import Database, Transaction
from teraflock.storage.open import open_database

START = datetime(2026, 11, 15, tzinfo=UTC)
CARD = ShapeWish(gpu="V100")


@pytest.fixture
def installation(database: Database, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Two hosts with one card each. Its clock does not move, so that nothing expires."""
    monkeypatch.setattr(installations, "HOSTS", "2x1xV100")
    return Installation(database, MemoryWorld(), FixedClock(START))


def launched(installation: Installation, wish: ShapeWish = CARD) -> Instance:
    return installation.service.launch(
        installation.tenant.actor, installation.tenant.project, Order(shape=wish)
    )[0]


def test_capacity_taken_by_another_server_is_not_assigned_twice(installation: Installation) -> None:
    launched(installation)
    with installation.database.read() as tx:
        (free,) = tx.all("SELECT host_id, slot FROM host_gpu WHERE instance_id IS NULL")
    installation.database.write(lambda tx: take_gpus(tx, free[0], "V100-SXM2", 1, "another server's"))
    with pytest.raises(NoCapacity):
        launched(installation)


def test_released_capacity_is_found(installation: Installation) -> None:
    first, _ = launched(installation), launched(installation)
    with pytest.raises(NoCapacity):
        launched(installation)
    installation.service.delete(installation.tenant.actor, installation.tenant.project, first.id)
    installation.settle()
    assert launched(installation).host_id == first.host_id


def test_a_host_drained_meanwhile_gets_no_instance(installation: Installation) -> None:
    with installation.database.read() as tx:
        chosen = installation.service._memory.candidates(
            tx,
            installation.service._policy,
            needed(tx),
            limit=1,
        )[0]
    installation.database.write(lambda tx: fleet.set_drained(tx, chosen, True))
    assert launched(installation).host_id != chosen


def needed(tx: Transaction) -> Size:
    return shape_of(CARD, fleet.kinds_of_hosts(tx))


def test_a_new_gpu_model_is_visible_at_once(installation: Installation) -> None:
    launched(installation)
    with pytest.raises(BadInput):
        launched(installation, ShapeWish(gpu="A100-80GB-SXM"))
    add_host(installation.database, "new", ["A100-80GB-SXM"])
    assert launched(installation, ShapeWish(gpu="A100-80GB-SXM")).held.gpus[0].gpu == "A100-80GB-SXM"


def add_host(database: Database, name: str, cards: list[str]) -> None:
    report = HostReport(
        name=name, address="192.0.2.1", vcpus=64, ram_bytes=1 << 38, disk_bytes=1 << 42,
        gpus=tuple(
            GpuReport(slot=f"{n}", kind=GpuKind.PHYSICAL, gpu=gpu, name=gpu, memory_bytes=1 << 34, healthy=True)
            for n, gpu in enumerate(cards)
        ),
    )  # fmt: skip
    database.write(
        lambda tx: fleet.put_report(tx, "simulated", report, HostId(f"hst_{name}"), simulated=True, now=START)
    )


def test_cached_hosts_expire(installation: Installation) -> None:
    launched(installation)
    with installation.database.read() as tx:
        before = installation.service._memory.kinds(tx)
        add_host(installation.database, "new", ["A100-80GB-SXM"])
    with installation.database.read() as tx:
        assert installation.service._memory.kinds(tx) == before
        installation.clock.move(timedelta(seconds=1))
        assert len(installation.service._memory.kinds(tx)) == 2


fleets = st.lists(
    st.lists(st.sampled_from(["V100-SXM2", "A100-80GB-SXM", "L4"]), max_size=3), min_size=1, max_size=6
)
wishes = st.builds(ShapeWish, gpu=st.sampled_from(["", "V100", "A100", "L4"]), gpus=st.integers(0, 3))


@settings(max_examples=60)
@given(hosts=fleets, wish=wishes)
def test_grouping_identical_hosts_gives_the_same_shapes(hosts: list[list[str]], wish: ShapeWish) -> None:
    database = open_database(":memory:", FixedClock(START))
    for number, cards in enumerate(hosts):
        add_host(database, f"host-{number}", cards)
    with database.read() as tx:
        every, kinds = fleet.outlines(tx), fleet.kinds_of_hosts(tx)
        assert sum(host.alike for host in kinds) == len(every)
        results = []
        for there in (every, kinds):
            try:
                results.append(repr(shape_of(wish, there)))
            except BadInput as error:
                results.append(error.sentence)
    assert results[0] == results[1]
    database.close()
