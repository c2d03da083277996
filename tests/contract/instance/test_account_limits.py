"""Accounts, their uses and their spending limits, on both databases."""

import os
import threading
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from tests.faults.installation import SKY, Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Conflict, NotFound
from teraflock.base.quantities import GIB
from teraflock.bill.budget.admission import BudgetReached
from teraflock.bill.margin.spending import spent, within_limits
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.account import store
from teraflock.instance.account.model import AccountUse, CloudAccount
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.service import InstanceService
from teraflock.instance.states import Phase
from teraflock.reconcile.accounts import AccountLoop
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import NO_PROJECT, Actor, Project, ProjectId
from teraflock.tenant.project import store as projects
from teraflock.tenant.project.store import project_of_any_organisation
from teraflock.tenant.service import TenantService

START = datetime(2026, 11, 15, tzinfo=UTC)
TOGETHER_SECONDS_MAX = 2
GPU_MICROS = 900_000
CPU_MICROS = 50_000
ACTS = ("gpu", "gpu", "cpu", "cpu", "delete")
RENTED = (
    "SELECT COUNT(CASE WHEN gpus > 0 THEN 1 END), COUNT(CASE WHEN gpus = 0 THEN 1 END) FROM instance"
    " WHERE project_id = :project AND site = 'sky' AND phase NOT IN ('gone', 'failed')"
)
"""Also those that are being deleted: they cost money until the provider has deleted them."""


@pytest.fixture
def installation(database: Database) -> Installation:
    clock = FixedClock(START)
    installation = Installation(database, MemoryWorld(), clock, sky=MemoryWorld())
    account = CloudAccount(
        name=SKY, provider="lambda", sealed="", currency="USD", limit_micros=None, created_at=START
    )
    database.write(lambda tx: store.insert(tx, account))
    return installation


def account_of(installation: Installation) -> CloudAccount:
    with installation.database.read() as tx:
        found = store.account(tx, SKY)
    assert found is not None
    return found


def test_uses_are_set_changed_and_removed(installation: Installation) -> None:
    project = installation.tenant.project.id
    for limit in (5, None, 7):
        use = AccountUse(account=SKY, project_id=project, limit_micros=limit)
        installation.database.write(lambda tx, use=use: store.set_use(tx, use))  # type: ignore[misc]
        with installation.database.read() as tx:
            assert store.uses(tx) == (use,)
            assert store.names_for(tx, project) == {SKY}
    installation.database.write(lambda tx: store.remove(tx, SKY))
    with installation.database.read() as tx:
        assert (store.uses(tx), store.accounts(tx), store.names_for(tx, project)) == ((), (), frozenset())


def test_spending_is_the_cost_of_this_month_to_the_micro_unit(installation: Installation) -> None:
    project = installation.tenant.project
    installation.service.launch(installation.tenant.actor, project, Order(name="one", site=SKY, type="gpu"))
    with installation.database.read() as tx:
        assert (
            spent(tx, account_of(installation), NO_PROJECT, installation.clock.now()).per_hour_micros
            == 900_000
        ), "also before it is rented"
    installation.settle()
    began = installation.clock.now()
    with installation.database.read() as tx:
        before = spent(tx, account_of(installation), project.id, began)
    installation.wait(3600)
    with installation.database.read() as tx:
        after = spent(tx, account_of(installation), project.id, installation.clock.now())
        other = spent(tx, account_of(installation), ProjectId("prj_other"), installation.clock.now())
        next_month = spent(tx, account_of(installation), NO_PROJECT, datetime(2026, 12, 1, 1, tzinfo=UTC))
    assert after.month_micros - before.month_micros == 900_000
    assert (other.month_micros, other.per_hour_micros) == (0, 0)
    assert next_month.month_micros == 900_000, "only its own first hour"


def test_limits_hold_at_the_launch_and_afterwards(installation: Installation) -> None:
    project, admits = installation.tenant.project, within_limits(installation.clock)
    installation.database.write(lambda tx: store.set_limit(tx, SKY, 1_000_000))
    installation.service.launch(installation.tenant.actor, project, Order(name="one", site=SKY, type="gpu"))
    installation.database.write(lambda tx: admits(tx, project.id))
    installation.settle()
    installation.database.write(lambda tx: store.set_limit(tx, SKY, 900_000))
    with pytest.raises(BudgetReached, match="limit of 0.90 USD per month"):
        installation.database.write(lambda tx: admits(tx, project.id))
    loop = AccountLoop(installation.database, installation.clock, installation.service)
    loop.turn()
    installation.settle()
    assert installation.service.view(project.id, "one").instance.phase == Phase.RUNNING, (
        "the limit is not reached yet"
    )
    installation.wait(timedelta(hours=2).total_seconds())
    loop.turn()
    installation.settle()
    assert installation.service.view(project.id, "one").instance.phase == Phase.STOPPED


@pytest.mark.parametrize("limit_of", ["account", "project"])
def test_two_that_rent_at_once_stay_within_the_limit(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, limit_of: str
) -> None:
    """Two tenants hold their own rows, and a loop that rents again does not lock its project, so only the account
    itself can make them wait for each other."""
    project = installation.tenant.project
    both, check = threading.Barrier(2), within_limits(installation.clock)

    def admits(tx: Transaction, project_id: ProjectId) -> None:
        with suppress(threading.BrokenBarrierError):  # SQLite has one writer: the other never comes
            both.wait(TOGETHER_SECONDS_MAX)
        check(tx, project_id)

    service = InstanceService(
        installation.database,
        installation.clock,
        installation.engines,
        random_bytes=os.urandom,
        admits=admits,
    )
    tenants = TenantService(installation.database, installation.clock, os.urandom)
    second = tenants.organisations.make(installation.tenant.actor, "second", "me@second").project
    give_networks(installation, project, second)
    if limit_of == "account":
        installation.database.write(lambda tx: store.set_limit(tx, SKY, 1_000_000))
    else:
        second = project
        use = AccountUse(account=SKY, project_id=project.id, limit_micros=1_000_000)
        installation.database.write(lambda tx: store.set_use(tx, use))
        monkeypatch.setattr(projects, "claim", project_of_any_organisation)
    outcomes: list[str] = []

    def launch(project: Project) -> None:
        try:
            service.launch(installation.tenant.actor, project, Order(site=SKY, type="gpu"))
            outcomes.append("launched")
        except BudgetReached:
            outcomes.append("refused")

    threads = [threading.Thread(target=launch, args=(each,)) for each in (project, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["launched", "refused"]


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_account_and_projects_hold_for_many_clients_at_once(
    installation: Installation, seed: int
) -> None:
    """Eight threads launch and delete in three projects with random limits. Afterwards no account and no
    project rents more per hour than its limit, and what fits under the limits can still be launched."""
    draw = Random(seed)
    tenants = TenantService(installation.database, installation.clock, os.urandom)
    operator = installation.tenant.actor
    projects = [installation.tenant.project]
    projects += [
        tenants.organisations.make(operator, name, f"me@{name}").project for name in ("two", "three")
    ]
    give_networks(installation, *projects)
    whole = draw.randrange(1, 5) * GPU_MICROS + draw.randrange(3) * CPU_MICROS
    each_limit: list[int | None] = [draw.choice([None, 2 * GPU_MICROS, 3 * CPU_MICROS]) for _ in projects]
    installation.database.write(lambda tx: store.set_limit(tx, SKY, whole))
    for project, limit in zip(projects, each_limit, strict=True):
        use = AccountUse(account=SKY, project_id=project.id, limit_micros=limit)
        installation.database.write(lambda tx, use=use: store.set_use(tx, use))  # type: ignore[misc]
    service = InstanceService(
        installation.database,
        installation.clock,
        installation.engines,
        random_bytes=os.urandom,
        admits=within_limits(installation.clock),
    )
    scripts = [[(draw.randrange(3), draw.choice(ACTS)) for _ in range(5)] for _ in range(8)]
    start, unforeseen = threading.Barrier(len(scripts)), list[Exception]()

    def client(script: list[tuple[int, str]]) -> None:
        start.wait()
        for number, act in script:
            try:
                with suppress(BudgetReached, NotFound, Conflict):
                    do(service, operator, projects[number], act)
            except Exception as error:
                unforeseen.append(error)

    threads = [threading.Thread(target=client, args=(script,)) for script in scripts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unforeseen == []
    with installation.database.read() as tx:
        rented = [tx.one(RENTED, project=project.id) for project in projects]
    per_hour = [int(row[0]) * GPU_MICROS + int(row[1]) * CPU_MICROS for row in rented if row]
    assert sum(per_hour) <= whole
    assert all(limit is None or used <= limit for used, limit in zip(per_hour, each_limit, strict=True))
    for number, (project, limit) in enumerate(zip(projects, each_limit, strict=True)):
        fits = sum(per_hour) + CPU_MICROS <= whole
        fits = fits and (limit is None or per_hour[number] + CPU_MICROS <= limit)
        with nullcontext() if fits else pytest.raises(BudgetReached):
            service.launch(operator, project, Order(site=SKY, type="cpu"))
        per_hour[number] += CPU_MICROS if fits else 0


def give_networks(installation: Installation, *projects: Project) -> None:
    """The first launch of a project locks the installation, which would also keep two projects apart."""
    for project in projects:
        installation.service.launch(
            installation.tenant.actor, project, Order(shape=ShapeWish(vcpus=1, ram_bytes=GIB))
        )


def do(service: InstanceService, actor: Actor, project: Project, act: str) -> None:
    if act != "delete":
        service.launch(actor, project, Order(site=SKY, type=act))
    elif there := service.page(project.id, limit=9):
        service.delete(actor, project, there[0].instance.id)
