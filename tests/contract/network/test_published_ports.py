"""Published ports on both databases: numbers, quotas, concurrent requests, and what the loop loads."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.contract.network.test_security_groups import Office

from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached, Refused
from teraflock.network.published_port import rules, store
from teraflock.network.published_port import service as acts
from teraflock.network.published_port.service import PublishedPortService
from teraflock.network.walls import Published
from teraflock.reconcile.networks import NetworkLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Quota
from teraflock.tenant.service import TenantService


class Ports(Office):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.ports = PublishedPortService(
            database, self.installation.clock, random_bytes=self.installation.random_bytes
        )

    def publish(self, instance: str, guest_port: int, port: int | None = None) -> int:
        return self.ports.publish(self.actor, self.project, instance, guest_port, port).published.port

    def numbers(self) -> list[tuple[str, int, int]]:
        found = self.ports.all(self.project)
        return [(each.instance, each.published.guest_port, each.published.port) for each in found]


@pytest.fixture
def office(database: Database) -> Ports:
    return Ports(database)


def test_ports_are_published_loaded_and_closed(office: Ports) -> None:
    address = office.launch("web")
    assert office.publish("web", 8080) == 30_000
    assert office.publish("web", 8080) == 30_000, "safe to run again"
    assert office.publish("web", 443, 30_443) == 30_443
    host = office.installation.service.view(office.project.id, "web").host_name
    assert office.loaded().published == (
        Published(str(host), 30_000, address, 8080),
        Published(str(host), 30_443, address, 443),
    )
    (first, _) = office.ports.all(office.project)
    office.ports.unpublish(office.actor, office.project, first.published.id)
    assert [each.port for each in office.loaded().published] == [30_000]
    assert office.installation.service.usage(office.project.id).ports == 1


def test_a_deleted_instance_frees_its_ports(office: Ports) -> None:
    office.launch("web")
    office.publish("web", 80)
    office.installation.service.delete(office.actor, office.project, "web")
    office.installation.settle()
    assert office.loaded().published == ()
    NetworkLoop(office.around).turn()
    with office.database.read() as tx:
        assert store.count(tx, office.project.id) == 0


@pytest.mark.parametrize(
    ("guest_port", "port", "error", "sentence"),
    [
        (70_000, None, BadInput, "Port `70000` is out of range"),
        (0, None, BadInput, "Port `0` is out of range"),
        (81, 22, BadInput, "Port `22` of the host cannot be published"),
        (81, 29_999, BadInput, "Port `29999` of the host cannot be published"),
        (81, 30_000, Conflict, "Port 30000 of the host is taken"),
        (80, 30_001, Conflict, "Port 80 of `web` is published as 30000 already"),
    ],
)
def test_bad_ports_get_one_sentence_and_change_nothing(
    office: Ports, guest_port: int, port: int | None, error: type[Exception], sentence: str
) -> None:
    office.launch("web")
    office.publish("web", 80)
    with pytest.raises(error, match=sentence):
        office.publish("web", guest_port, port)
    assert office.numbers() == [("web", 80, 30_000)]


def test_the_quota_and_the_limit_of_a_project_hold(office: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    office.launch("web")
    tenants = TenantService(office.database, office.installation.clock, office.installation.random_bytes)
    tenants.projects.set_quota(office.actor, office.project.id, Quota(ports=1))
    office.publish("web", 80)
    with pytest.raises(QuotaReached, match="allows 1 published ports; this would need 2"):
        office.publish("web", 81)
    tenants.projects.set_quota(office.actor, office.project.id, Quota())
    monkeypatch.setattr(acts, "PER_PROJECT_MAX", 1)
    with pytest.raises(Refused, match="A project can have at most 1 published ports"):
        office.publish("web", 81)


def test_concurrent_requests_get_different_ports_within_the_quota(office: Ports) -> None:
    office.launch("web")
    tenants = TenantService(office.database, office.installation.clock, office.installation.random_bytes)
    tenants.projects.set_quota(office.actor, office.project.id, Quota(ports=6))

    def publish(guest_port: int) -> int:
        try:
            return office.publish("web", guest_port)
        except QuotaReached:
            return 0

    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(publish, range(1000, 1012)))
    assert sorted(filter(None, given)) == list(range(30_000, 30_006))


def test_ports_of_other_projects_are_out_of_reach(office: Ports) -> None:
    office.launch("web")
    office.publish("web", 80)
    (mine,) = office.ports.all(office.project)
    tenants = TenantService(office.database, office.installation.clock, office.installation.random_bytes)
    other = tenants.projects.make(office.actor, "other")
    with pytest.raises(NotFound):
        office.ports.unpublish(office.actor, other, mine.published.id)
    with pytest.raises(NotFound):
        office.ports.publish(office.actor, other, "web", 80)
    assert office.ports.all(other) == ()


def test_a_port_follows_its_instance_to_another_host(office: Ports) -> None:
    office.launch("web")
    office.publish("web", 80)
    (port,) = office.ports.all(office.project)
    there = office.installation.service.view(office.project.id, "web").instance.host_id
    office.database.write(lambda tx: store.move(tx, port.published.id, "hst_elsewhere", 30_007))
    NetworkLoop(office.around).turn()
    (port,) = office.ports.all(office.project)
    assert (port.published.host_id, port.published.port) == (there, 30_007)


def test_a_full_host_refuses() -> None:
    every = range(30_000, 32_768)
    with pytest.raises(Refused, match="no free port"):
        rules.chosen(None, every)
    assert rules.chosen(None, every[1:]) == 30_000
