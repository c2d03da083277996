"""The loop that links hosts: what each gets, and that a host which is down keeps its place. On both databases."""

from datetime import UTC, datetime
from functools import partial

import pytest
from tests.faults.house import House

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as hosts
from teraflock.fleet.model import HostId, HostReport
from teraflock.instance.engine_errors import EngineDown
from teraflock.instance.join import store as joins
from teraflock.instance.join.model import JoinedHost
from teraflock.instance.orders import Order
from teraflock.instance.site.model import SiteRecord
from teraflock.network.fabric import Fabric, WireKey
from teraflock.reconcile.fabric import FabricLoop
from teraflock.reconcile.walls import WallLoop
from teraflock.storage.database import Database, Transaction

NOW = datetime(2026, 11, 15, tzinfo=UTC)


class LinkedEngine(SimulatedEngine):
    """A simulated engine that remembers what it should link."""

    key = ""
    is_down = False

    def __init__(self, site: str, clock: FixedClock, mark: str) -> None:
        super().__init__(MemoryWorld(), clock, fleet("1x1xV100"), site=site, mark=mark)
        self.fabric = Fabric()

    def wire(self) -> WireKey:
        if self.is_down:
            raise EngineDown("down")
        return WireKey(self.key, 8735) if self.key else WireKey()

    def link(self, fabric: Fabric) -> None:
        if self.is_down:
            raise EngineDown("down")
        self.fabric = fabric


class Fleet:
    """Two joined hosts, each with an instance of one project."""

    def __init__(self, database: Database) -> None:
        self.house = House(database, MemoryWorld(), FixedClock(NOW))
        self.database = database
        self.loop = FabricLoop(self.house.workers[0].around)
        self.engines = {name: self._engine(name) for name in ("one", "two")}

    def _engine(self, name: str) -> LinkedEngine:
        engine = LinkedEngine(name, self.house.clock, self.house.tenant.mark)
        self.house.engines.put(engine, SiteRecord(name=name, kind="joined"))
        address = f"192.0.2.{len(name) + ord(name[0])}"
        report = HostReport(name=name, address=address, vcpus=32, ram_bytes=1 << 37, disk_bytes=1 << 41)
        id = HostId(f"hst_{name}")
        self.database.write(lambda tx: hosts.put_report(tx, name, report, id, simulated=True, now=NOW))
        return engine

    def join(self, *, trusted: bool) -> None:
        for number, name in enumerate(self.engines, start=1):
            host = JoinedHost(
                name=name, number=number, certificate="", cards=(), trusted_wire=trusted, joined_at=NOW
            )
            self.database.write(partial(_insert, host))

    def launch(self, name: str) -> str:
        tenant = self.house.tenant
        made = self.house.service.launch(tenant.actor, tenant.project, Order(name=f"on-{name}", host=name))
        assert made[0].address is not None
        return made[0].address


def _insert(host: JoinedHost, tx: Transaction) -> None:
    joins.insert(tx, host)


@pytest.fixture
def joined(database: Database) -> Fleet:
    return Fleet(database)


def test_nothing_is_asked_while_no_host_has_joined(joined: Fleet) -> None:
    for each in joined.engines.values():
        each.is_down = True
    joined.loop.turn()
    assert joined.loop._problems == {}


def test_each_host_gets_the_instances_of_the_other(joined: Fleet) -> None:
    joined.join(trusted=True)
    addresses = {name: joined.launch(name) for name in joined.engines}
    joined.loop.turn()
    one, two = joined.engines["one"], joined.engines["two"]
    assert [each.address for each in one.fabric.remotes] == [addresses["two"]]
    assert [each.address for each in two.fabric.remotes] == [addresses["one"]]
    assert [each.inner for each in one.fabric.peers] == [""]
    WallLoop(joined.house.workers[0].around).turn()
    assert set(one.walls.stations) == set(two.walls.stations) == set(addresses.values())


def test_a_host_that_is_down_keeps_its_place(joined: Fleet) -> None:
    joined.join(trusted=True)
    joined.launch("one")
    gone = joined.launch("two")
    joined.loop.turn()
    one, two = joined.engines["one"], joined.engines["two"]
    two.is_down = True
    joined.loop.turn()
    assert [each.address for each in one.fabric.remotes] == [gone], "its instances may still run"
    joined.database.write(lambda tx: joins.remove(tx, "two"))
    joined.house.engines.drop("two")
    joined.loop.turn()
    assert one.fabric.peers == ()


def test_hosts_that_cannot_encrypt_are_not_linked_over_an_untrusted_wire(joined: Fleet) -> None:
    joined.join(trusted=False)
    one, two = joined.engines["one"], joined.engines["two"]
    one.key = "key-one"
    joined.loop.turn()
    assert one.fabric == two.fabric == Fabric()
    two.key = "key-two"
    joined.loop.turn()
    assert [each.key for each in one.fabric.peers] == ["key-two"]
    assert one.fabric.inner
