"""Networks and subnets on both databases: acts, limits, launches into them, and their end on the engine."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from tests.contract.network.test_security_groups import Office

from teraflock.base.errors import (
    BadInput,
    Conflict,
    NotFound,
    QuotaReached,
    Refused,
    TeraflockError,
    UnknownName,
)
from teraflock.drivers.simulated.model import Guest, NetworkThere
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order
from teraflock.network import service as acts
from teraflock.network import store
from teraflock.network.acl.service import AclService
from teraflock.network.checking import NetworkChecks
from teraflock.network.reach import Stop
from teraflock.network.service import NetworkService
from teraflock.network.subnet.service import SubnetService
from teraflock.reconcile import networks as loop
from teraflock.reconcile.networks import NetworkLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService


class Estate(Office):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        given: tuple[Any, ...] = (database, self.installation.clock, self.installation.random_bytes)
        self.networks = NetworkService(*given)
        self.subnets = SubnetService(*given)
        self.acls = AclService(*given)
        self.checks = NetworkChecks(database)
        self.tenants = TenantService(*given)

    def create(self, name: str) -> str:
        """Create a network and return its addresses."""
        return str(self.networks.create(self.actor, self.project, name).network.cidr)

    def subnet(
        self, name: str, network: str = "default", *, cidr: str = "", prefix: int | None = None
    ) -> str:
        return self.subnets.create(
            self.actor, self.project, name, network=network, cidr=cidr, prefix=prefix
        ).cidr

    def put(self, name: str, **words: Any) -> Instance:
        return self.installation.service.launch(self.actor, self.project, Order(name=name, **words))[0]

    def delete(self, name: str) -> None:
        self.networks.delete(self.actor, self.project, name)

    def names(self) -> list[str]:
        return [each.network.name for each in self.networks.all(self.project)]

    def there(self) -> set[str]:
        """The networks that the engine has, by their addresses."""
        with self.installation.world.read() as turn:
            return {each.network.subnet for each in turn.every(NetworkThere)}


@pytest.fixture
def estate(database: Database) -> Estate:
    return Estate(database)


def test_the_first_launch_creates_the_network_default_and_more_are_created_on_request(estate: Estate) -> None:
    assert estate.names() == []
    assert estate.put("web", networks=("default",)).address == "10.128.0.16"
    assert estate.names() == ["default"]
    assert estate.create("backend") == "10.128.16.0/20"
    both = estate.put("both", networks=("default", "backend"))
    assert (both.address, both.more_addresses) == ("10.128.0.17", ("10.128.16.16",))
    back = estate.put("back", networks=("backend",))
    assert (back.address, back.more_addresses) == ("10.128.16.17", ())
    shown = estate.networks.show(estate.project, "backend")
    assert [(each.instance, each.address) for each in shown.tenancies] == [
        ("back", "10.128.16.17"), ("both", "10.128.16.16"),
    ]  # fmt: skip
    estate.installation.settle()
    assert estate.there() == {"10.128.0.0/20", "10.128.16.0/20"}
    groups = estate.loaded().stations
    assert groups["10.128.16.16"] == groups["10.128.0.17"], "all interfaces are in the instance's groups"


def test_no_network_has_the_name_of_balancers(estate: Estate) -> None:
    """`web.lb.PROJECT.internal` would be an instance and a balancer."""
    with pytest.raises(BadInput, match="`lb` is the name of all balancers"):
        estate.create("lb")
    assert estate.names() == []


def test_the_engine_gets_every_interface(estate: Estate) -> None:
    estate.create("backend")
    estate.create("default")
    estate.put("both", networks=("backend", "default"))
    estate.installation.settle()
    with estate.installation.world.read() as turn:
        (guest,) = turn.every(Guest)
    seen = [(each.network.name, each.network.subnet, each.address) for each in guest.machine.nics]
    assert seen == [
        ("backend", "10.128.0.0/20", "10.128.0.16"), ("default", "10.128.16.0/20", "10.128.16.16"),
    ]  # fmt: skip
    assert len({each.network.key for each in guest.machine.nics}) == 2
    estate.installation.service.delete(estate.actor, estate.project, "both")
    estate.installation.settle()
    with estate.database.read() as tx:
        assert store.tenancies(tx, estate.project.id) == ()


def test_a_deleted_network_leaves_the_engine_before_its_addresses_are_used_again(estate: Estate) -> None:
    estate.put("web")
    estate.create("backend")
    estate.put("db", networks=("backend",))
    estate.installation.settle()
    with pytest.raises(Conflict, match="The network `backend` is in use by `db`"):
        estate.delete("backend")
    estate.installation.service.delete(estate.actor, estate.project, "db")
    estate.installation.settle()
    estate.delete("backend")
    assert estate.names() == ["default"]
    with pytest.raises(UnknownName, match="backend"):
        estate.put("late", networks=("backend",))
    assert estate.create("backend") == "10.128.32.0/20", "the engine still has the old one"
    assert estate.there() == {"10.128.0.0/20", "10.128.16.0/20"}
    NetworkLoop(estate.around).turn()
    assert estate.there() == {"10.128.0.0/20"}
    assert estate.create("third") == "10.128.16.0/20"


def test_a_crash_after_the_engine_removed_a_network_is_repaired(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.put("db", networks=(estate.networks.create(estate.actor, estate.project, "backend").network.name,))
    estate.installation.settle()
    estate.installation.service.delete(estate.actor, estate.project, "db")
    estate.installation.settle()
    estate.delete("backend")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(loop, "_forget", dies)
        with pytest.raises(KeyboardInterrupt):
            NetworkLoop(estate.around).turn()
    assert estate.there() == set()
    assert estate.create("second") == "10.128.16.0/20", "the addresses are not free yet"
    NetworkLoop(estate.around).turn()
    assert estate.create("third") == "10.128.0.0/20"


def test_the_network_default_can_be_deleted_and_comes_back_with_the_next_launch(estate: Estate) -> None:
    estate.put("web")
    estate.installation.settle()
    estate.installation.service.delete(estate.actor, estate.project, "web")
    estate.installation.settle()
    estate.delete("default")
    again = estate.put("web")
    assert again.address == "10.128.16.16"
    estate.installation.settle()
    NetworkLoop(estate.around).turn()
    assert estate.there() == {"10.128.16.0/20"}, "the new one is not mistaken for the old one"
    project = estate.tenants.projects.show(estate.actor, None)
    assert project.network_number == 1


def test_networks_count_against_the_quota(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    estate.tenants.projects.set_quota(estate.actor, estate.project.id, Quota(networks=2))
    estate.create("one")
    estate.create("two")
    with pytest.raises(QuotaReached, match="allows 2 networks; this would need 3"):
        estate.create("three")
    with pytest.raises(QuotaReached, match="allows 2 networks"):
        estate.put("web")
    assert estate.put("web", networks=("one",)).address == "10.128.0.16"
    estate.tenants.projects.set_quota(estate.actor, estate.project.id, Quota())
    monkeypatch.setattr(acts, "PER_PROJECT_MAX", 2)
    with pytest.raises(Refused, match="A project can have at most 2 networks"):
        estate.create("three")
    monkeypatch.setattr(acts, "PER_PROJECT_MAX", 9)
    monkeypatch.setattr(acts, "PER_ORGANISATION_MAX", 2)
    other = estate.tenants.projects.make(estate.actor, "other")
    with pytest.raises(Refused, match="an organisation can have at most 2 networks together"):
        estate.networks.create(estate.actor, other, "three")
    with pytest.raises(Conflict, match="A network `one` already exists"):
        estate.create("one")
    with pytest.raises(BadInput, match="not a valid name"):
        estate.create("No/Such")
    assert estate.names() == ["one", "two"]


def test_a_subnet_of_every_size_has_room_for_an_instance(estate: Estate) -> None:
    for prefix in reversed(range(22, 30)):
        addresses = ip_network(estate.subnet(f"of-{prefix}", prefix=prefix))
        address = estate.put(f"in-{prefix}", subnets=(f"of-{prefix}",)).address
        assert address is not None
        assert ip_address(address) in addresses


def test_subnets_do_not_overlap_and_hold_what_is_launched_into_them(estate: Estate) -> None:
    assert estate.subnet("db", cidr="10.128.4.0/24") == "10.128.4.0/24", "creates the network `default`"
    assert estate.subnet("cache", prefix=24) == "10.128.1.0/24", "the first block has reserved addresses"
    assert estate.put("web").address == "10.128.0.16"
    assert estate.put("db", subnets=("db",)).address == "10.128.4.0"
    assert estate.put("fixed", addresses=("10.128.4.9",), subnets=("db",)).address == "10.128.4.9"
    assert estate.put("also", addresses=("10.128.1.200",)).address == "10.128.1.200"
    views = {each.name: each.instances for each in estate.subnets.all(estate.project)}
    assert views == {"default": ("web",), "db": ("db", "fixed"), "cache": ("also",)}


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        ({"cidr": "10.128.4.0/25"}, Conflict, r"10.128.4.0/25 overlaps the subnet `db` \(10.128.4.0/24\)"),
        ({"cidr": "10.128.0.0/21"}, Conflict, "overlaps the subnet `db`"),
        ({"cidr": "10.128.5.1/24"}, BadInput, "`10.128.5.1/24` has host bits set"),
        ({"cidr": "10.129.0.0/24"}, BadInput, "10.129.0.0/24 is not in the network `default`"),
        ({"cidr": "10.128.0.0/20"}, BadInput, "A subnet cannot be a /20"),
        ({"cidr": "10.128.5.0/30"}, BadInput, "A subnet cannot be a /30"),
        ({"cidr": "10.128.0.0/24"}, Conflict, "An instance has the address 10.128.0.16"),
        ({"cidr": "10.128.0.8/29"}, BadInput, "10.128.0.8/29 has only reserved addresses"),
        ({"cidr": "ten"}, BadInput, "`ten` is not a network"),
        ({"cidr": "10.128.5.0/24", "prefix": 24}, BadInput, "needs its addresses or its size"),
        ({}, BadInput, "needs its addresses or its size"),
        ({"prefix": 8}, BadInput, "A subnet cannot be a /8"),
        ({"prefix": 21, "network": "nowhere"}, NotFound, "no network `nowhere`"),
    ],
)
def test_bad_subnets_get_one_sentence(
    estate: Estate, words: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    estate.put("web")
    estate.subnet("db", cidr="10.128.4.0/24")
    with pytest.raises(error, match=sentence):
        estate.subnet("other", **words)
    assert [each.name for each in estate.subnets.all(estate.project)] == ["default", "db"]


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        ({"networks": ("nowhere",)}, UnknownName, "nowhere"),
        ({"networks": ("default", "default")}, BadInput, "The network `default` is named twice"),
        ({"subnets": ("nowhere",)}, UnknownName, "nowhere"),
        ({"networks": ("default", "more"), "subnets": ("default",)}, BadInput, "have a subnet `default`"),
        ({"subnets": ("db", "default")}, BadInput, "Two subnets of the network `default`"),
        ({"addresses": ("10.128.4.9", "10.128.4.10")}, BadInput, "Two addresses of the network"),
        ({"addresses": ("10.128.0.16",)}, Conflict, "Another instance has the address 10.128.0.16"),
        ({"addresses": ("10.128.0.1",)}, BadInput, "10.128.0.1 is reserved"),
        ({"addresses": ("10.128.15.255",)}, BadInput, "10.128.15.255 is reserved"),
        ({"addresses": ("10.200.0.20",)}, BadInput, "No network of the project has the address"),
        ({"addresses": ("me",)}, BadInput, "`me` is not an IPv4 address"),
        (
            {"addresses": ("10.128.0.20",), "subnets": ("db",)},
            BadInput,
            "10.128.0.20 is not in the subnet `db`",
        ),
        ({"addresses": ("10.128.0.20",), "networks": ("more",)}, BadInput, "is in none of the networks"),
        ({"addresses": ("10.128.0.20",), "instances": 2}, BadInput, "Only one instance can have an address"),
        ({"networks": tuple(f"n{each}" for each in range(9))}, BadInput, "can have at most 8 interfaces"),
    ],
)
def test_bad_launches_get_one_sentence_and_leave_nothing(
    estate: Estate, words: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    estate.put("web")
    estate.create("more")
    estate.subnet("db", cidr="10.128.4.0/24")
    with pytest.raises(error, match=sentence):
        estate.put("odd", **words)
    with estate.database.read() as tx:
        assert [each.instance for each in store.tenancies(tx, estate.project.id)] == ["web"]


def test_subnets_and_networks_in_use_stay(estate: Estate) -> None:
    estate.subnet("db", cidr="10.128.4.0/24")
    estate.put("one", subnets=("db",))

    def delete(name: str) -> None:
        estate.subnets.delete(estate.actor, estate.project, "default", name)

    with pytest.raises(Conflict, match="The subnet `db` is in use by `one`"):
        delete("db")
    estate.installation.settle()
    estate.installation.service.delete(estate.actor, estate.project, "one")
    estate.installation.settle()
    estate.acls.create(estate.actor, estate.project, "border")
    estate.acls.attach(estate.actor, estate.project, "border", subnet="db")
    with pytest.raises(Conflict, match="The ACL `border` guards the subnet `db`"):
        delete("db")
    with pytest.raises(Conflict, match="The ACL `border` guards the subnet `db` of the network `default`"):
        estate.delete("default")
    estate.acls.detach(estate.actor, estate.project, "border", subnet="db")
    with pytest.raises(BadInput, match="The subnet `default` cannot be deleted"):
        delete("default")
    delete("db")
    with pytest.raises(NotFound):
        delete("db")
    estate.delete("default")


def test_an_acl_guards_one_subnet_and_not_the_others(estate: Estate) -> None:
    estate.subnet("db", cidr="10.128.4.0/24")
    estate.put("web")
    estate.put("db", subnets=("db",))
    estate.acls.create(estate.actor, estate.project, "shut")
    with pytest.raises(NotFound, match="no subnet `nowhere`"):
        estate.acls.attach(estate.actor, estate.project, "shut", subnet="nowhere")
    with pytest.raises(NotFound, match="no network `nowhere`"):
        estate.acls.attach(estate.actor, estate.project, "shut", network="nowhere")
    assert estate.checks.check(estate.project, "web", "db", "tcp", "80").reach.stop is None
    acl = estate.acls.attach(estate.actor, estate.project, "shut", subnet="db")
    assert acl.subnets == ("default/db",)
    assert estate.loaded().borders == {"10.128.0.0/20": None, "10.128.4.0/24": ()}
    assert estate.checks.check(estate.project, "web", "db", "tcp", "80").reach.stop == Stop.ACL
    assert estate.checks.check(estate.project, "internet", "web", "tcp", "22").reach.stop is None
    with pytest.raises(Conflict, match="is in use: it guards `default/db`"):
        estate.acls.delete(estate.actor, estate.project, "shut")


def test_instances_of_several_networks_are_checked_by_the_network_that_both_have(estate: Estate) -> None:
    estate.put("web")
    estate.create("backend")
    estate.put("both", networks=("default", "backend"))
    estate.put("db", networks=("backend",))

    def stop(source: str, target: str) -> Stop | None:
        return estate.checks.check(estate.project, source, target, "tcp", "22").reach.stop

    assert stop("both", "db") is None
    assert stop("both", "web") is None
    assert stop("web", "db") == Stop.APART
    assert stop("10.128.16.16", "internet") == Stop.INNER
    assert stop("both", "internet") is None
    names, edges = estate.checks.graph(estate.project)
    assert names == ("internet", "both", "db", "web")
    assert {(each.source, each.target) for each in edges if "internet" not in (each.source, each.target)} == {
        ("both", "db"), ("db", "both"), ("both", "web"), ("web", "both"),
    }  # fmt: skip


def test_one_of_several_concurrent_launches_gets_an_address_and_quotas_hold(estate: Estate) -> None:
    estate.put("web")
    estate.tenants.projects.set_quota(estate.actor, estate.project.id, Quota(networks=3))

    def launch(number: int) -> object:
        return attempt(lambda: estate.put(f"c{number}", addresses=("10.128.0.99",)))

    def create(number: int) -> object:
        return attempt(lambda: estate.create(f"n{number}"))

    with ThreadPoolExecutor(6) as pool:
        launched = list(pool.map(launch, range(3)))
        created = list(pool.map(create, range(4)))
    assert [type(each) for each in launched if isinstance(each, Exception)] == [Conflict, Conflict]
    assert [type(each) for each in created if isinstance(each, Exception)] == [QuotaReached, QuotaReached]
    networks = [str(each.network.cidr) for each in estate.networks.all(estate.project)]
    assert len(networks) == len(set(networks)) == 3


def attempt(work: Callable[[], object]) -> object:
    try:
        return work()
    except TeraflockError as error:
        return error
