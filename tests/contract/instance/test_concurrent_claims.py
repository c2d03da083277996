"""Quotas, budgets, cards, room, addresses, ports and names hold when 32 clients act at once, on both databases.

The clients are real threads. Separate SQL checks the whole database afterwards.
"""

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.faults import installation as installations
from tests.faults.installation import Installation
from tests.postgres_server import PostgresServer

from teraflock.base.clock import FixedClock, SystemClock
from teraflock.base.errors import Conflict, NotFound, QuotaReached
from teraflock.base.quantities import GIB
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.placement import RAM_BYTES_OF_HOST, Policy
from teraflock.instance import launching
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.service import InstanceService
from teraflock.network.rules import subnet
from teraflock.storage.database import Database, Transaction
from teraflock.storage.open import open_database
from teraflock.tenant.model import Actor, Defaults, OrganisationQuota, Project, ProjectId, Quota
from teraflock.tenant.project import claim
from teraflock.tenant.project import store as projects
from teraflock.tenant.project.store import project_of_any_organisation
from teraflock.tenant.service import TenantService

HOSTS = "3x4xV100,2x0"
CLIENTS = 32
ACTS_PER_CLIENT = 3
RUNNING_MAX = 5
"""A budget: how many instances of one project may run."""
DEFAULTS = Defaults(
    organisation=OrganisationQuota(projects=4, instances=9, vcpus=20, gpus_default=5),
    project=Quota(instances=6, vcpus=14, gpus_default=3),
)
UNLIMITED = "cow"
POLICY = Policy()
WAIT_SECONDS_MAX = 60  # so that a failing test ends
TOGETHER_SECONDS_MAX = 0.5  # if a lock admits only one thread, the other never arrives
ATTEMPTS_MAX = 20


class Act(NamedTuple):
    kind: str
    tenant: int
    gpus: int = 0
    instances: int = 1
    name: str | None = None


class Place:
    """A small fleet with two organisations of two projects each, all with small quotas, and a third organisation
    without a quota, whose project has one.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.installation = Installation(
            database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
        )
        installation, operator = self.installation, self.installation.tenant.actor
        self.service = InstanceService(
            database,
            installation.clock,
            installation.engines,
            policy=POLICY,
            random_bytes=installation.random_bytes,
            admits=admits,
        )
        tenants = TenantService(database, installation.clock, installation.random_bytes, DEFAULTS)
        self.tenants: list[tuple[Actor, Project]] = []
        for name in ("ant", "bee"):
            made = tenants.organisations.make(operator, name, "owner")
            owner = tenants.authenticate(made.key.secret)
            other = tenants.projects.make(owner, "second")
            self.tenants += [(owner, made.project), (owner, other)]
        made = tenants.organisations.make(operator, UNLIMITED, "owner")
        tenants.organisations.set_quota(operator, made.organisation.id, OrganisationQuota())
        self.tenants.append((tenants.authenticate(made.key.secret), made.project))

    def do(self, act: Act) -> None:
        actor, project = self.tenants[act.tenant]
        shape = ShapeWish(vcpus=1 + act.gpus, ram_bytes=GIB, disk_bytes=GIB)
        if act.kind == "launch":
            wish = ShapeWish(gpu="V100", gpus=act.gpus, vcpus=2, ram_bytes=GIB) if act.gpus else shape
            order = Order(name=act.name, shape=wish, instances=act.instances)
            self.service.launch(actor, project, order)
            return
        there = self.service.page(project.id, limit=50)
        if not there:
            return
        ref = there[act.instances % len(there)].instance.id
        if act.kind == "resize":
            self.service.resize(actor, project, ref, ShapeWish(vcpus=1 + act.instances))
        else:
            getattr(self.service, act.kind)(actor, project, ref)


def admits(tx: Transaction, project: ProjectId) -> None:
    if _running(tx).get(project, 0) > RUNNING_MAX:
        raise QuotaReached("the budget is spent")


def _running(tx: Transaction) -> dict[str, int]:
    rows = tx.all(
        "SELECT project_id, COUNT(*) FROM instance WHERE wanted = 'running' AND phase NOT IN ('gone', 'failed')"
        " GROUP BY project_id"
    )
    return dict(rows)


# What must hold


def broken(database: Database) -> list[str]:
    """All violations in the database."""
    with database.read() as tx:
        return [*_quotas(tx), *_rooms(tx), *_cards(tx), *_ports(tx), *_addresses(tx), *_names(tx)]


def _quotas(tx: Transaction) -> Iterator[str]:
    live = (
        "FROM instance i JOIN project p ON p.id = i.project_id JOIN organisation o ON o.id = p.organisation_id"
        " WHERE i.phase NOT IN ('gone', 'failed') GROUP BY"
    )
    sums = "COUNT(*), SUM(i.vcpus), SUM(i.gpus)"
    limits = [("p.id", DEFAULTS.project), ("o.name", DEFAULTS.organisation)]
    for column, quota in limits:
        most = (quota.instances, quota.vcpus, quota.gpus_default)
        for id, *used in tx.all(f"SELECT {column}, {sums} {live} {column}"):
            if id != UNLIMITED and any(
                limit is not None and have > limit for have, limit in zip(used, most, strict=True)
            ):
                yield f"{id} uses {used} of {most}"
    for project, running in _running(tx).items():
        if running > RUNNING_MAX:
            yield f"{project} runs {running} instances"


def _rooms(tx: Transaction) -> Iterator[str]:
    for id, vcpus, ram, disk, *held in tx.all(
        "SELECT h.id, h.vcpus, h.ram_bytes, h.disk_bytes, SUM(i.held_vcpus), SUM(i.held_ram_bytes),"
        " SUM(i.held_disk_bytes) FROM host h JOIN instance i ON i.host_id = h.id"
        " GROUP BY h.id, h.vcpus, h.ram_bytes, h.disk_bytes"
    ):
        room = (
            vcpus * POLICY.vcpu_overcommit,
            ram - RAM_BYTES_OF_HOST,
            disk * POLICY.disk_overcommit,
        )
        if any(have > limit for have, limit in zip(held, room, strict=True)):
            yield f"{id} has {room}, and {held} is held"


def _cards(tx: Transaction) -> Iterator[str]:
    """A card belongs to one instance on its host, and instances that should run have the cards they asked for."""
    held: Counter[str] = Counter()
    for slot, holder, there in tx.all(
        "SELECT g.slot, g.instance_id, i.id FROM host_gpu g LEFT JOIN instance i ON i.id = g.instance_id"
        " AND i.host_id = g.host_id AND i.phase <> 'gone' WHERE g.instance_id IS NOT NULL"
    ):
        held[holder] += 1
        if there is None:
            yield f"the card {slot} is held by {holder}, which is not there"
    for id, gpus in tx.all("SELECT id, gpus FROM instance WHERE phase = 'queued'"):
        if held[id] != gpus:
            yield f"{id} has {held[id]} of {gpus} cards"


def _ports(tx: Transaction) -> Iterator[str]:
    rows = tx.all(
        "SELECT p.host_id, p.port, i.id FROM host_port p LEFT JOIN instance i ON i.id = p.instance_id"
    )
    yield from (f"the port {port} of {host} leads nowhere" for host, port, id in rows if id is None)
    for id, ports in tx.all(
        "SELECT i.id, COUNT(p.port) FROM instance i LEFT JOIN host_port p ON p.instance_id = i.id"
        " AND p.host_id = i.host_id WHERE i.phase = 'queued' GROUP BY i.id"
    ):
        if ports != 1:
            yield f"{id} has {ports} ports"
    yield from _doubles("port", [(host, port) for host, port, _ in rows])


def _addresses(tx: Transaction) -> Iterator[str]:
    rows = tx.all(
        "SELECT i.project_id, i.address, p.network_number FROM instance i JOIN project p ON p.id = i.project_id"
        " WHERE i.address IS NOT NULL"
    )
    yield from _doubles("address", [address for _, address, _ in rows])
    yield from (
        f"{address} is not in network {number}"
        for _, address, number in rows
        if IPv4Address(address) not in subnet(number)
    )
    numbers = tx.all("SELECT network_number FROM project WHERE network_number >= 0")
    yield from _doubles("network", numbers)


def _names(tx: Transaction) -> Iterator[str]:
    yield from _doubles("name", tx.all("SELECT project_id, name FROM instance WHERE phase <> 'gone'"))


def _doubles(what: str, things: Sequence[Any]) -> Iterator[str]:
    yield from (f"the {what} {thing} is there {n} times" for thing, n in Counter(things).items() if n > 1)


# The clients


acts = st.one_of(
    st.builds(
        Act,
        kind=st.just("launch"),
        tenant=st.integers(0, 4),
        gpus=st.integers(0, 2),
        instances=st.integers(1, 2),
        name=st.sampled_from([None, None, "same"]),
    ),
    st.builds(
        Act,
        kind=st.sampled_from(["stop", "start", "resize", "delete"]),
        tenant=st.integers(0, 4),
        instances=st.integers(0, 5),
    ),
)
scripts = st.lists(
    st.lists(acts, min_size=ACTS_PER_CLIENT, max_size=ACTS_PER_CLIENT), min_size=CLIENTS, max_size=CLIENTS
)


def run_at_once(works: Sequence[Callable[[], None]]) -> list[Exception]:
    """Errors other than those for capacity or quota that is used up."""
    barrier = threading.Barrier(len(works))
    unforeseen: list[Exception] = []

    def run(work: Callable[[], None]) -> None:
        barrier.wait(WAIT_SECONDS_MAX)
        try:
            work()
        except Exception as error:
            unforeseen.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return unforeseen


def acts_of(place: Place, script: Sequence[Act]) -> Callable[[], None]:
    def run() -> None:
        for act in script:
            try:
                place.do(act)
            except (Conflict, QuotaReached, NotFound):
                continue

    return run


@contextmanager
def turning(place: Place) -> Iterator[None]:
    """Run the loops meanwhile: stopped and deleted instances release what they held."""
    ending = threading.Event()
    worker = place.installation.workers[0]

    def run() -> None:
        while not ending.is_set():
            worker.turn()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


@pytest.fixture(params=["sqlite", "postgres"])
def fresh(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Creates a place on a new database with each call."""
    monkeypatch.setattr(installations, "HOSTS", HOSTS)
    server: PostgresServer | None = None
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")

    @contextmanager
    def opened() -> Iterator[Place]:
        with tempfile.TemporaryDirectory() as folder, _address(server, Path(folder)) as address:
            database = open_database(address, SystemClock())
            try:
                yield Place(database)
            finally:
                database.close()

    return opened


@contextmanager
def _address(server: PostgresServer | None, folder: Path) -> Iterator[str]:
    if server is None:
        yield f"sqlite:///{folder / 'tera.db'}"
    else:
        with server.fresh() as address:
            yield address


@settings(
    max_examples=3,
    phases=[Phase.generate],  # threads meet differently each time: nothing to shrink
    suppress_health_check=list(HealthCheck),
)
@given(script=scripts)
def test_concurrent_claims_stay_within_capacity(fresh: Any, script: list[list[Act]]) -> None:
    with fresh() as place:
        with turning(place):
            unforeseen = run_at_once([acts_of(place, each) for each in script])
        assert unforeseen == []
        assert broken(place.database) == []


def test_last_card_is_given_to_one_of_many_clients(fresh: Any) -> None:
    """Twelve cards for 32 clients. Each organisation may have five: all ten are assigned, none of them twice."""
    with fresh() as place:
        works = [acts_of(place, [Act("launch", tenant=n % 4, gpus=1)]) for n in range(CLIENTS)]
        assert run_at_once(works) == []
        assert broken(place.database) == []
        with place.database.read() as tx:
            taken = tx.one("SELECT COUNT(*) FROM host_gpu WHERE instance_id IS NOT NULL")
        assert taken == (10,)


# Without a lock


def _unlocked_quota(tx: Transaction, id: Any, *, shared: bool) -> OrganisationQuota:
    return DEFAULTS.organisation


def _unlocked_first(tx: Transaction, ids: Sequence[Any], *, waits: bool) -> Any:
    return ids[0]


@pytest.mark.parametrize(
    ("target", "name", "replacement", "first", "second"),
    [
        pytest.param(
            projects, "claim", project_of_any_organisation, Act("launch", 4, gpus=2), Act("launch", 4, gpus=2),
            id="project",
        ),
        pytest.param(
            claim, "lock_quota", _unlocked_quota, Act("launch", 0, gpus=3), Act("launch", 1, gpus=3), id="organisation"
        ),
        pytest.param(
            fleet, "lock_one_host", _unlocked_first, Act("launch", 0, gpus=1), Act("launch", 2, gpus=1), id="host"
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_lock", [True, False], ids=["with", "without"])
def test_each_lock_is_needed(
    fresh: Any,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    target: Any,
    name: str,
    replacement: Any,
    first: Act,
    second: Act,
    has_lock: bool,
) -> None:
    """Two launches check before either has written, if they can. Without its lock, an invariant breaks."""
    needs_none = "sqlite" in request.node.name  # it has one writer
    set_aside = launching._set_aside

    def are_right() -> bool:
        both = threading.Barrier(2)

        def together(*words: Any) -> Any:
            with suppress(threading.BrokenBarrierError):
                both.wait(TOGETHER_SECONDS_MAX)
            return set_aside(*words)

        with fresh() as place, monkeypatch.context() as patch:
            for tenant in place.tenants:  # so that each has a network
                place.service.launch(*tenant, Order(shape=ShapeWish(vcpus=1)))
            patch.setattr(launching, "_set_aside", together)
            if not has_lock:
                patch.setattr(target, name, replacement)
            unforeseen = run_at_once([acts_of(place, [each]) for each in (first, second)])
            return not unforeseen and not broken(place.database)

    if has_lock or needs_none:
        assert are_right()
    else:  # on a busy machine, one may have written before the other looks
        assert not all(are_right() for _ in range(ATTEMPTS_MAX))
