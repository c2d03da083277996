"""Balancers on both databases: orders, limits, tenants, the loop, and what the firewall gets."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace
from tests.contract.network.test_security_groups import Office
from tests.unit.network.balancer.certificates import pem_of, self_signed

from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached, Refused, TeraflockError
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.instance.orders import Order
from teraflock.network.address.rules import pool_from
from teraflock.network.address.service import AddressService
from teraflock.network.balancer import rules, store
from teraflock.network.balancer.model import BackendState, BalancerOrder, BalancerSeen, BalancerSpec
from teraflock.network.balancer.service import BalancerService, Hosting
from teraflock.network.checking import NetworkChecks
from teraflock.network.peering.service import PeeringService
from teraflock.network.published_port.service import PublishedPortService
from teraflock.network.reach import Stop
from teraflock.network.security_group.model import Protocol
from teraflock.network.service import NetworkService
from teraflock.network.walls import Packet, Published, decide, network_of
from teraflock.reconcile.balancers import BalancerLoop
from teraflock.reconcile.networks import NetworkLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService

OUTSIDE = "198.51.100.2"


class Desk(Office):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        hosting = Hosting(seal=lambda text, id: f"sealed {id} {text[::-1]}")
        clock, random_bytes = self.installation.clock, self.installation.random_bytes
        self.balancers = BalancerService(database, clock, hosting, random_bytes)
        self.ports = PublishedPortService(database, clock, random_bytes=random_bytes)
        self.balancing = BalancerLoop(self.around, self.opened)

    def opened(self, sealed: str, id: str) -> str:
        assert sealed.startswith(f"sealed {id} ")
        return sealed.removeprefix(f"sealed {id} ")[::-1]

    def create(self, name: str = "front", *instances: str, **more: object) -> str:
        values: dict[str, object] = {"name": name, "port": 80, "instances": instances, **more}
        order = BalancerOrder(**values)  # type: ignore[arg-type]
        return self.balancers.create(self.actor, self.project, order).balancer.address

    @property
    def engine(self) -> SimulatedEngine:
        (engine,) = self.installation.engines
        assert isinstance(engine, SimulatedEngine)
        return engine

    def running(self) -> dict[str, BalancerSpec]:
        self.balancing.turn()
        return {each.name: each for each in self.engine.balanced}


@pytest.fixture
def desk(database: Database) -> Desk:
    made = Desk(database)
    made.launch("web-1")
    made.launch("web-2")
    return made


def names(desk: Desk, ref: str) -> list[str]:
    return [each.name for each in desk.balancers.show(desk.project, ref).targets]


def test_a_balancer_runs_with_its_backends_and_ends(desk: Desk) -> None:
    address = desk.create("front", "web-1", "web-2", target_port=8080, health_check="http:/health")
    desk.create("back", "web-1", port=443)
    spec = desk.running()["front"]
    assert (spec.address, spec.port, spec.target_port, spec.health_check) == (
        address,
        80,
        8080,
        "http:/health",
    )
    assert len(spec.backends) == 2
    desk.balancers.remove(desk.actor, desk.project, "front", ("web-1",))
    assert names(desk, "front") == ["web-2"]
    assert len(desk.running()["front"].backends) == 1
    desk.balancers.add(desk.actor, desk.project, "front", ("web-1", "web-2", "web-1"))
    assert len(desk.running()["front"].backends) == 2
    desk.balancers.delete(desk.actor, desk.project, "front")
    desk.balancers.delete(desk.actor, desk.project, "front")
    with pytest.raises(Conflict, match="already exists"):
        desk.create("front", "web-1")
    assert desk.create("next", "web-1") != address, (
        "an address that its host may still use is not given again"
    )
    assert set(desk.running()) == {"back", "next"}
    assert desk.create("front", "web-1") == address


def test_backends_are_in_the_network_of_the_balancer_or_in_a_peer(desk: Desk) -> None:
    networks = NetworkService(desk.database, desk.installation.clock, desk.installation.random_bytes)
    peerings = PeeringService(desk.database, desk.installation.clock, desk.installation.random_bytes)
    networks.create(desk.actor, desk.project, "backend")
    for name, there in (("far", ("backend",)), ("both", ("backend", "default"))):
        desk.installation.service.launch(desk.actor, desk.project, Order(name=name, networks=there))
    with pytest.raises(Refused, match="`far` is not in the network `default`"):
        desk.create("front", "web-1", "far")
    desk.create("front", "both")
    with pytest.raises(Refused, match="`far` is not in the network `default`"):
        desk.balancers.add(desk.actor, desk.project, "front", ("far",))
    (used,) = desk.running()["front"].backends
    assert network_of(used.address) == network_of(desk.running()["front"].address), "its second interface"
    peerings.agree(desk.actor, desk.project, "backend", "default")
    desk.balancers.add(desk.actor, desk.project, "front", ("far",))
    assert len(desk.running()["front"].backends) == 2


def test_labels_are_followed_and_deleted_instances_leave(desk: Desk) -> None:
    desk.create("front", "web-1", label="app=web")
    order = Order(name="web-3", labels={"app": "web"})
    desk.installation.service.launch(desk.actor, desk.project, order)
    assert names(desk, "front") == ["web-1", "web-3"]
    assert len(desk.running()["front"].backends) == 2
    for name in ("web-1", "web-3"):
        desk.installation.service.delete(desk.actor, desk.project, name)
    desk.installation.settle()
    assert desk.running()["front"].backends == ()
    assert names(desk, "front") == []
    desk.balancing.turn()
    with desk.database.read() as tx:
        assert not store.has_leftovers(tx)


def test_the_firewall_lets_the_project_in_and_the_internet_only_if_published(desk: Desk) -> None:
    inside, outer = (
        desk.create("inner", "web-1"),
        desk.create("outer", "web-1", publish=True, target_port=8080),
    )
    web = desk.installation.service.view(desk.project.id, "web-1").instance.address or ""
    walls = desk.loaded()
    assert decide(walls, Packet(web, inside, Protocol.TCP, 80)).passes
    assert not decide(walls, Packet(OUTSIDE, inside, Protocol.TCP, 80)).passes
    assert decide(walls, Packet(OUTSIDE, outer, Protocol.TCP, 80)).passes
    assert not decide(walls, Packet(OUTSIDE, outer, Protocol.TCP, 81)).passes
    assert decide(walls, Packet(outer, web, Protocol.TCP, 8080)).passes, "both are in `default`"
    host = str(desk.installation.service.view(desk.project.id, "web-1").host_name)
    assert walls.published == (Published(host, 30_000, outer, 80),)
    rule = next(
        each
        for each in desk.groups.all(desk.project)[0].rules
        if each.peer == "0.0.0.0/0" and each.direction == "out"
    )
    desk.groups.revoke(desk.actor, desk.project, "default", rule.id)
    walls = desk.loaded()
    assert decide(walls, Packet(outer, web, Protocol.TCP, 8080)).passes, "a balancer may reach its backends"
    assert not decide(walls, Packet(outer, web, Protocol.TCP, 22)).passes, "and nothing else"
    desk.balancers.delete(desk.actor, desk.project, "outer")
    assert set(desk.loaded().stations) >= {inside}
    assert outer not in desk.loaded().stations


def test_published_ports_are_shared_with_instances_and_count(desk: Desk) -> None:
    desk.create("one", "web-1", publish=True)
    made = desk.ports.publish(desk.actor, desk.project, "web-1", 80)
    assert made.published.port == 30_001
    with pytest.raises(Conflict, match="Port 30001 of the host is taken"):
        desk.create("two", "web-1", published=30_001)
    with pytest.raises(Conflict, match="Port 30000 of the host is taken"):
        desk.ports.publish(desk.actor, desk.project, "web-1", 81, 30_000)
    assert desk.installation.service.usage(desk.project.id).ports == 2
    tenants = TenantService(desk.database, desk.installation.clock, desk.installation.random_bytes)
    tenants.projects.set_quota(desk.actor, desk.project.id, Quota(ports=2))
    with pytest.raises(QuotaReached):
        desk.create("two", "web-1", publish=True)
    desk.create("two", "web-1")


@pytest.mark.parametrize(
    ("more", "error", "sentence"),
    [
        ({"name": "Front\nbind"}, BadInput, "is not a valid name for a balancer"),
        ({"port": 0}, BadInput, "Port `0` is out of range"),
        ({"port": 70_000}, BadInput, "Port `70000` is out of range"),
        ({"target_port": 70_000}, BadInput, "Port `70000` is out of range"),
        ({"protocol": "udp"}, BadInput, "udp"),
        ({"health_check": "http:health"}, BadInput, "is not a health check"),
        ({"health_check": "http:/a b"}, BadInput, "is not a health check"),
        ({"health_check": "http:/\n  server x"}, BadInput, "is not a health check"),
        ({"check_seconds": 1}, BadInput, "out of range"),
        ({"label": "app"}, BadInput, "is not a label"),
        ({"instances": ()}, BadInput, "A balancer needs backends"),
        ({"instances": ("web-9",)}, NotFound, "There is no instance `web-9`"),
        (
            {"instances": tuple(f"w{n}" for n in range(65))},
            Refused,
            "A balancer can have at most 64 backends",
        ),
        ({"certificate": "x"}, BadInput, "TLS needs a certificate and its key"),
        ({"certificate": "x", "key": "y"}, BadInput, "not in PEM format"),
        ({"published": 22}, BadInput, "Port `22` of the host cannot be published"),
    ],
)
def test_bad_orders_get_one_sentence_and_change_nothing(
    desk: Desk, more: dict[str, object], error: type[TeraflockError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as raised:
        desk.create(**{"name": "front", "instances": ("web-1",), **more})  # type: ignore[arg-type]
    assert raised.value.hint or error is BadInput
    assert desk.balancers.all(desk.project) == ()


def test_another_projects_instance_cannot_be_a_backend(desk: Desk) -> None:
    tenants = TenantService(desk.database, desk.installation.clock, desk.installation.random_bytes)
    other = tenants.projects.make(desk.actor, "other")
    (foreign,) = desk.installation.service.launch(
        desk.actor, other, Order(name="theirs", labels={"app": "web"})
    )
    for ref in ("theirs", foreign.id):
        with pytest.raises(NotFound, match="There is no instance"):
            desk.create("front", ref)
    desk.create("front", "web-1", label="app=web")
    with pytest.raises(NotFound):
        desk.balancers.add(desk.actor, desk.project, "front", (foreign.id,))
    assert names(desk, "front") == ["web-1"], "a label of another project does not count"
    with pytest.raises(NotFound):
        desk.balancers.show(other, "front")


def test_limits_and_concurrent_creates(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "BALANCERS_MAX", 3)

    def one(number: int) -> str:
        try:
            return desk.create(f"b-{number % 4}", "web-1", publish=True)
        except (Conflict, Refused):
            return ""

    with ThreadPoolExecutor(4) as pool:
        made = [each for each in pool.map(one, range(8)) if each]
    assert len(made) == len(set(made)) == 3
    ports = [each.balancer.published for each in desk.balancers.all(desk.project)]
    assert len(set(ports)) == 3


def test_keys_are_sealed_and_a_key_that_cannot_be_opened_stops_only_its_balancer(desk: Desk) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    text, now = pem_of(key), desk.installation.clock.now()
    desk.create("safe", "web-1", certificate=self_signed(key, now=now), key=text)
    desk.create("plain", "web-1")
    shown = desk.balancers.show(desk.project, "safe").balancer
    assert text not in shown.sealed_key
    assert shown.certificate_ends_at is not None
    assert desk.running()["safe"].key == text

    def closed(sealed: str, id: str) -> str:
        raise Refused("The stored key cannot be decrypted")

    desk.balancing = BalancerLoop(desk.around, closed)
    assert set(desk.running()) == {"plain"}


def test_a_removed_project_takes_its_balancers_along(desk: Desk) -> None:
    desk.create("front", "web-1", "web-2")
    desk.running()
    for name in ("web-1", "web-2"):
        desk.installation.service.delete(desk.actor, desk.project, name)
    desk.installation.settle()
    tenants = TenantService(desk.database, desk.installation.clock, desk.installation.random_bytes)
    tenants.projects.remove(desk.actor, desk.project.id)
    NetworkLoop(desk.around).turn()
    with desk.database.read() as tx:
        assert store.projects_with_some(tx), "the network waits for the balancer"
    desk.running()
    assert desk.running() == {}
    NetworkLoop(desk.around).turn()
    with desk.database.read() as tx:
        assert store.projects_with_some(tx) == set()


def test_simulated_balancers_report_their_backends(desk: Desk) -> None:
    desk.installation.settle()
    desk.create("front", "web-1", "web-2")
    desk.running()
    (seen,) = desk.engine.balancers()
    assert isinstance(seen, BalancerSeen)
    assert {each.state for each in seen.backends} == {BackendState.UP}
    desk.installation.service.stop(desk.actor, desk.project, "web-1")
    desk.installation.settle()
    (seen,) = desk.engine.balancers()
    assert sorted(each.state for each in seen.backends) == [BackendState.DOWN, BackendState.UP]


def test_check_and_graph_know_balancers_and_public_addresses(desk: Desk) -> None:
    desk.create("inner", "web-1")
    desk.create("outer", "web-1", publish=True, target_port=8080)
    checks = NetworkChecks(desk.database)

    def stop(source: str, target: str, port: int) -> Stop | None:
        return checks.check(desk.project, source, target, "tcp", str(port)).reach.stop

    assert stop("internet", "lb:outer", 80) is None
    assert stop("internet", "lb:outer", 81) == Stop.UNPUBLISHED
    assert stop("internet", "lb:inner", 80) == Stop.UNPUBLISHED
    assert stop("web-2", "lb:inner", 80) is None
    assert stop("lb:outer", "web-1", 8080) is None
    deciding = checks.check(desk.project, "internet", "lb:outer", "tcp", "80")
    assert deciding.reach.entering is not None
    assert {each.id: each.name for each in deciding.groups}[deciding.reach.entering.group] == "lb:outer"
    assert "Create a balancer with `--publish`" in (
        checks.check(desk.project, "internet", "lb:inner", "tcp", "80").hint
    )
    with pytest.raises(NotFound, match="There is no balancer `none`"):
        stop("internet", "lb:none", 80)
    # A public address opens a balancer that is not published.
    pool = AddressService(
        desk.database, desk.installation.clock, pool_from("203.0.113.16/30"), desk.installation.random_bytes
    )
    address = pool.create(desk.actor, desk.project).public.address
    inner = desk.balancers.show(desk.project, "inner").balancer.address
    with pytest.raises(BadInput, match="Neither end is an instance"):
        stop("internet", address, 80)
    pool.attach(desk.actor, desk.project, address, "inner")
    assert stop("internet", address, 80) is None
    assert stop("internet", "lb:inner", 80) is None
    assert stop("internet", address, 81) == Stop.IN
    assert decide(desk.loaded(), Packet(OUTSIDE, inner, Protocol.TCP, 80)).passes
    names, edges = checks.graph(desk.project)
    assert names == ("internet", "web-1", "web-2", "lb:inner", "lb:outer")
    allowed = {(each.source, each.target): each.allows for each in edges}
    assert allowed["internet", "lb:outer"] == "tcp 80"
    assert allowed["lb:inner", "web-1"] == "everything", "both are in `default`"


def test_backends_on_linked_hosts_are_accepted_and_followed(desk: Desk) -> None:
    with desk.database.read() as tx:
        near = store.instance(tx, desk.project.id, "web-1")
    assert near is not None
    far = replace(near, site="two")
    with pytest.raises(Refused, match="runs at the site `two`, and the balancer at `simulated`"):
        rules.check_targets([far], near.site)
    rules.check_targets([far], near.site, {"two", near.site})
    with pytest.raises(Refused):
        rules.check_targets([far], near.site, {"two"})
