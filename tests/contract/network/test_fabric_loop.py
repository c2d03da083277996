"""The loop that links hosts: what each gets, and that a host which is down keeps its place. On both databases."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as hosts
from teraflock.fleet.model import HostId, HostReport
from teraflock.instance.driver import Sent
from teraflock.instance.engine_errors import EngineDown
from teraflock.instance.join import store as joins
from teraflock.instance.join.model import JoinedHost
from teraflock.instance.model import InstanceId
from teraflock.instance.orders import Order
from teraflock.instance.site.model import SiteRecord
from teraflock.network.balancer.model import BalancerOrder
from teraflock.network.balancer.service import BalancerService, Hosting
from teraflock.network.fabric import Fabric, WireKey
from teraflock.network.naming import KnownName
from teraflock.network.peering.service import PeeringService
from teraflock.reconcile.balancers import BalancerLoop
from teraflock.reconcile.fabric import FabricLoop
from teraflock.reconcile.linked import linked_sites
from teraflock.reconcile.names import NameLoop
from teraflock.reconcile.traffic import keep
from teraflock.reconcile.walls import WallLoop
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.service import TenantService

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

    names: Sequence[KnownName] = ()

    def know(self, names: Sequence[KnownName]) -> None:
        if self.is_down:
            raise EngineDown("down")
        self.names = names


class Fleet:
    """Two joined hosts, each with an instance of one project."""

    def __init__(self, database: Database) -> None:
        self.installation = Installation(database, MemoryWorld(), FixedClock(NOW))
        self.database = database
        self.loop = FabricLoop(self.installation.workers[0].around)
        self.engines = {name: self._engine(name) for name in ("one", "two")}

    def _engine(self, name: str) -> LinkedEngine:
        engine = LinkedEngine(name, self.installation.clock, self.installation.tenant.mark)
        self.installation.engines.put(engine, SiteRecord(name=name, kind="joined"))
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
        tenant = self.installation.tenant
        made = self.installation.service.launch(
            tenant.actor, tenant.project, Order(name=f"on-{name}", host=name)
        )
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
    WallLoop(joined.installation.workers[0].around).turn()
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
    joined.installation.engines.drop("two")
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


def test_a_balancer_moves_to_a_linked_host_and_keeps_its_backends(joined: Fleet) -> None:
    joined.join(trusted=True)
    addresses = {name: joined.launch(name) for name in joined.engines}
    installation, around = joined.installation, joined.installation.workers[0].around
    tenant, clock = installation.tenant, installation.clock
    hosting = Hosting(linked=lambda tx: linked_sites(tx, installation.engines))
    service = BalancerService(joined.database, clock, hosting, installation.random_bytes)
    order = BalancerOrder(name="front", port=80, instances=("on-one", "on-two"), publish=True)
    made = service.create(tenant.actor, tenant.project, order).balancer
    assert made.site == "one"
    loops = [BalancerLoop(around, lambda sealed, id: sealed) for _ in range(2)]
    loops[0].turn()
    one, two = joined.engines["one"], joined.engines["two"]
    assert [{each.address for each in spec.backends} for spec in one.balanced] == [set(addresses.values())]
    joined.database.write(lambda tx: hosts.set_drained(tx, HostId("hst_one"), True))
    with ThreadPoolExecutor(2) as pool:  # two servers notice it at once
        list(pool.map(lambda loop: loop.turn(), loops))
    moved = service.show(tenant.project, "front").balancer
    assert (moved.site, moved.address, moved.sequence) == ("two", made.address, 2)
    loops[0].turn()
    assert one.balanced == ()
    assert [{each.address for each in spec.backends} for spec in two.balanced] == [set(addresses.values())]
    WallLoop(around).turn()
    joined.loop.turn()
    assert made.address in one.walls.stations, "the backend there must know it"
    assert made.address in {each.address for each in one.fabric.remotes}
    with joined.database.read() as tx:
        events = tx.all("SELECT id FROM event WHERE kind = 'balancer.moved'")
    assert len(events) == 2


def test_a_balancer_from_before_balancers_had_events_gets_one(joined: Fleet) -> None:
    joined.launch("one")
    installation = joined.installation
    tenant = installation.tenant
    service = BalancerService(joined.database, installation.clock, Hosting(), installation.random_bytes)
    order = BalancerOrder(name="front", port=80, instances=("on-one",))
    id = service.create(tenant.actor, tenant.project, order).balancer.id
    joined.database.write(lambda tx: tx.run("UPDATE balancer SET sequence = 0"))
    joined.database.write(lambda tx: tx.run("DELETE FROM event WHERE kind = 'balancer.moved'"))
    counter = Sent(instance_id=InstanceId(id), epoch="e", bytes=5 << 20)
    now = installation.clock.now()
    assert joined.database.write(lambda tx: keep(tx, [counter], now)) == 0
    BalancerLoop(installation.workers[0].around, lambda sealed, id: sealed).turn()
    assert service.show(tenant.project, "front").balancer.sequence == 1
    assert joined.database.write(lambda tx: keep(tx, [counter], now)) == 1


def test_hosts_know_the_names_of_other_hosts_and_of_peers(joined: Fleet) -> None:
    joined.join(trusted=True)
    addresses = {name: joined.launch(name) for name in joined.engines}
    installation = joined.installation
    tenant, around = installation.tenant, installation.workers[0].around
    loop = NameLoop(around)
    one, two = joined.engines["one"], joined.engines["two"]
    loop.turn()
    name = tenant.project.name
    assert names_of(one) == {f"on-two.{name}.internal": addresses["two"], "on-two": addresses["two"]}
    assert names_of(two) == {f"on-one.{name}.internal": addresses["one"], "on-one": addresses["one"]}
    # A peer of another project, on the other host.
    tenants = TenantService(joined.database, installation.clock, installation.random_bytes)
    other = tenants.projects.make(tenant.actor, "speech")
    (far,) = installation.service.launch(tenant.actor, other, Order(name="far", host="two"))
    peerings = PeeringService(joined.database, installation.clock, installation.random_bytes)
    peerings.agree(tenant.actor, tenant.project, "default", "speech/default")
    loop.turn()
    assert "far.speech.internal" not in names_of(one), "only one side agreed"
    peerings.agree(tenant.actor, other, "default", f"{name}/default")
    loop.turn()
    assert names_of(one)["far.speech.internal"] == far.address
    two.is_down = True
    peerings.end(tenant.actor, other, "default", f"{name}/default")
    loop.turn()
    assert "far.speech.internal" not in names_of(one)


def names_of(engine: LinkedEngine) -> dict[str, str]:
    """What the networks of a host know."""
    return {name: each.address for each in engine.names if each.network for name in each.names}
