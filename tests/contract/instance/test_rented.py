"""An instance on a rented machine, from its launch to its end: service, loops, engine, meter. On both databases."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import pytest
from tests.faults.installation import SKY, Installation

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostKind, HostState
from teraflock.instance.driver import MachineType
from teraflock.instance.model import View
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.meter.service import MeterService
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import Project
from teraflock.tenant.project.claim import claimed

START = datetime(2026, 11, 15, tzinfo=UTC)
ORDER = Order(name="one", site=SKY, type="gpu")


@pytest.fixture
def installation(database: Database) -> Installation:
    return Installation(database, MemoryWorld(), FixedClock(START), sky=MemoryWorld())


def ask(installation: Installation, act: str, *words: object) -> None:
    getattr(installation.service, act)(installation.tenant.actor, installation.tenant.project, *words)


def one(installation: Installation) -> View:
    (view,) = installation.service.page(installation.tenant.project.id, limit=9, gone=True)
    return view


def rented(installation: Installation) -> list[Host]:
    with installation.database.read() as tx:
        return list(fleet.hosts(tx, limit=99, kind=HostKind.RENTED))


def costs(installation: Installation) -> list[tuple[int, str]]:
    """The changes of what the machines cost, in order."""
    with installation.database.read() as tx:
        rows = tx.all("SELECT details, project_id FROM event WHERE kind = 'instance.cost' ORDER BY id")
    assert all(project == "" for _, project in rows), "no tenant sees what a machine costs the operator"
    told = [msgspec.json.decode(details) for details, _ in rows]
    return [(each["cost_micros_per_hour"], each["remote_id"]) for each in told]


def test_launch_rents_a_machine_and_delete_gives_it_back(installation: Installation) -> None:
    ask(installation, "launch", ORDER)
    assert list(installation.sky.sightings()) == [], "the request itself rents nothing"
    installation.settle()
    view = one(installation)
    assert (view.instance.phase, view.instance.site) == (Phase.RUNNING, SKY)
    assert view.simulated
    assert view.rented is not None
    assert (view.rented.type, view.rented.region, view.rented.user) == ("gpu", "east", "ubuntu")
    assert view.rented.endpoints[22][1] == 22
    assert view.instance.host_key.startswith("ssh-ed25519 ")
    (host,) = rented(installation)
    assert (host.id, host.state, host.zone) == (view.instance.host_id, HostState.READY, "east-a")
    assert [gpu.instance_id for gpu in host.gpus] == [view.instance.id]
    assert host.cost is not None
    assert (host.cost.micros_per_hour, host.cost.currency) == (900_000, "USD")
    with installation.database.read() as tx:
        assert host.id not in [each.id for each in fleet.hosts(tx, limit=99)]
    ask(installation, "delete", "one")
    installation.settle()
    assert one(installation).instance.phase == Phase.GONE
    assert list(installation.sky.sightings()) == []
    (host,) = rented(installation)
    assert host.state == HostState.GONE
    assert host.gone_at is not None
    assert costs(installation) == [(900_000, host.remote_id), (0, host.remote_id)]


def test_launch_reads_machine_types_once_and_before_its_locks(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    types = installation.sky.types

    def read() -> Sequence[MachineType]:
        calls.append("types")
        return types()

    def lock(tx: Transaction, project: Project) -> Project:
        calls.append("lock")
        return claimed(tx, project)

    monkeypatch.setattr(installation.sky, "types", read)
    monkeypatch.setattr("teraflock.instance.service.claimed", lock)
    ask(installation, "launch", msgspec.structs.replace(ORDER, instances=3))
    assert calls == ["types", "lock"]
    assert len(rented(installation)) == 3


def test_rented_instance_is_metered_while_it_runs(installation: Installation) -> None:
    ask(installation, "launch", ORDER)
    installation.settle()
    began = one(installation).instance.running_since
    assert began is not None
    for _ in range(100):
        installation.wait(10)
        installation.workers[0].look()
    ask(installation, "delete", "one")
    ended = installation.clock.now()
    installation.settle()
    MeterService(installation.database, installation.clock).turn()
    with installation.database.read() as tx:
        rows = tx.all("SELECT from_us, until_us, gpu, gpus, region FROM meter_interval")
    assert [(us_from, us_until) for us_from, us_until, *_ in rows] == [
        (int(began.timestamp() * 1e6), int(ended.timestamp() * 1e6))
    ]
    assert [tuple(row[2:]) for row in rows] == [("V100-SXM2", 1, "east")]
