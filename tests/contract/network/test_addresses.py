"""Public addresses on both databases: the pool, quotas, targets, the firewall, and the bill."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from ipaddress import IPv4Network

import pytest
from tests.contract.network.test_balancers import Desk
from tests.unit.bill.world import RATES

from teraflock.base.errors import AmbiguousName, BadInput, Conflict, NotFound, QuotaReached, Refused
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.network.address import store
from teraflock.network.address.rules import pool_from
from teraflock.network.address.service import AddressService
from teraflock.network.checking import NetworkChecks
from teraflock.network.reach import Stop
from teraflock.network.walls import Floating
from teraflock.reconcile.networks import NetworkLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService

BOOK = "- {from: 2026-01-01, currency: USD, vcpu: 9/hour, snapshot: 730/month, address: 0.005/hour}\n"


class Pool(Desk):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        clock, random_bytes = self.installation.clock, self.installation.random_bytes
        self.addresses = AddressService(database, clock, pool_from("203.0.113.16/30"), random_bytes)
        self.tenants = TenantService(database, clock, random_bytes)

    def take(self, wanted: str = "") -> str:
        return self.addresses.create(self.actor, self.project, wanted).public.address

    def attach(self, address: str, target: str) -> None:
        self.addresses.attach(self.actor, self.project, address, target)


@pytest.fixture
def pool(database: Database) -> Pool:
    made = Pool(database)
    made.launch("web-1")
    made.launch("web-2")
    return made


def test_an_address_leads_to_an_instance_or_a_balancer(pool: Pool) -> None:
    address = pool.take()
    assert address == "203.0.113.16"
    assert pool.loaded().floating == ()
    web = pool.installation.service.view(pool.project.id, "web-1").instance.address or ""
    pool.attach(address, "web-1")
    assert pool.loaded().floating == (Floating(address, web),)
    check = NetworkChecks(pool.database).check
    assert check(pool.project, "internet", "web-1", "tcp", "22").reach.stop is None
    assert check(pool.project, "internet", "web-1", "tcp", "80").reach.stop == Stop.IN, "no group allows it"
    assert check(pool.project, "internet", "web-2", "tcp", "80").reach.stop == Stop.UNPUBLISHED
    balancer = pool.create("front", "web-1")
    pool.attach(address, "front")
    assert pool.loaded().floating == (Floating(address, balancer),)
    pool.balancers.delete(pool.actor, pool.project, "front")
    assert pool.loaded().floating == ()
    assert pool.addresses.all(pool.project)[0].target is None
    pool.attach(address, "web-1")
    pool.addresses.detach(pool.actor, pool.project, address)
    assert pool.loaded().floating == ()
    pool.attach(address, "web-1")
    pool.installation.service.delete(pool.actor, pool.project, "web-1")
    pool.installation.settle()
    assert pool.loaded().floating == ()
    assert [each.public.address for each in pool.addresses.all(pool.project)] == [address], "it is kept"
    pool.addresses.release(pool.actor, pool.project, address)
    assert pool.take() == address


def test_bad_requests_get_one_sentence_and_change_nothing(pool: Pool) -> None:
    first, second = pool.take(), pool.take("203.0.113.19")
    pool.attach(first, "web-1")
    pool.create("web-2", "web-1")
    for address, target, error, sentence in (
        ("203.0.113.99", "web-1", NotFound, "There is no public address"),
        (second, "web-9", NotFound, "There is no instance or balancer `web-9`"),
        (second, "web-1", Conflict, "`web-1` has the address 203.0.113.16 already"),
        (second, "web-2", AmbiguousName, "web-2"),
    ):
        with pytest.raises(error, match=sentence):
            pool.attach(address, target)
    for wanted in ("203.0.113.19", "198.51.100.7", "10.128.0.16"):
        with pytest.raises(Conflict, match="is not available"):
            pool.take(wanted)
    other = pool.tenants.projects.make(pool.actor, "other")
    with pytest.raises(NotFound):
        pool.addresses.release(pool.actor, other, first)
    with pytest.raises(NotFound):
        pool.addresses.attach(pool.actor, other, first, "web-1")
    assert len(pool.addresses.all(pool.project)) == 2


def test_no_address_is_given_twice_and_quotas_hold(pool: Pool) -> None:
    def one(_: int) -> str:
        try:
            return pool.take()
        except Refused:
            return ""

    with ThreadPoolExecutor(4) as threads:
        found = [each for each in threads.map(one, range(8)) if each]
    assert sorted(found) == [f"203.0.113.{number}" for number in range(16, 20)]
    with pytest.raises(Refused, match="All public addresses are taken"):
        pool.take()
    assert pool.installation.service.usage(pool.project.id).addresses == 4
    pool.addresses.release(pool.actor, pool.project, found[0])
    pool.tenants.projects.set_quota(pool.actor, pool.project.id, Quota(addresses=3))
    with pytest.raises(QuotaReached, match="allows 3 public addresses"):
        pool.take()


def test_an_address_is_charged_by_the_hour_until_it_is_released(pool: Pool) -> None:
    clock = pool.installation.clock
    bills = BillService(pool.database, clock, RATES, pool.installation.random_bytes)
    bills.prices.take(BOOK, name="prices.yaml", member="mem")
    address = pool.take()
    clock.move(timedelta(hours=10))
    pool.addresses.release(pool.actor, pool.project, address)
    clock.move(timedelta(hours=10))
    kept = pool.take()
    clock.move(timedelta(hours=2))
    pool.tenants.projects.make(pool.actor, "other")
    bills.turn()
    clock.move(timedelta(days=2))
    bills.turn()
    lines = [
        each.charge
        for each in bills.lines(pool.project.id, "2026-11")
        if each.charge.subject.held.mode == "address"
    ]
    assert {each.subject.held.name for each in lines} == {f"address {address}", f"address {kept}"}
    first = {each.subject.id for each in lines if each.slice.from_us == min(c.slice.from_us for c in lines)}
    assert sum(each.micros for each in lines if each.subject.id in first) == 50_000, "10 hours at 0.005"
    verdict = verify(pool.database)
    assert verdict.faults == ()


def test_addresses_of_a_removed_project_are_released_and_no_longer_charged(pool: Pool) -> None:
    other = pool.tenants.projects.make(pool.actor, "other")
    pool.addresses.create(pool.actor, other)
    pool.tenants.projects.remove(pool.actor, other.id)
    NetworkLoop(pool.around).turn()
    with pool.database.read() as tx:
        assert store.taken_in_all_projects(tx) == set()
        kinds = tx.all("SELECT details FROM event WHERE kind = 'address.moved' ORDER BY id")
    assert ['"to":"stopped"' in row[0] for row in kinds] == [True, False]


def test_pools() -> None:
    assert pool_from("") == ()
    assert pool_from("203.0.113.0/30, 198.51.100.7") == (
        IPv4Network("203.0.113.0/30"),
        IPv4Network("198.51.100.7/32"),
    )
    for text in ("nonsense", "203.0.113.1/30", "0.0.0.0/0", "203.0.113.0/30 203.0.113.0/24", "10.200.0.0/24"):
        with pytest.raises(BadInput):
            pool_from(text)
