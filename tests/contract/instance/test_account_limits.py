"""Accounts, their uses and their spending limits, on both databases."""

import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.faults.house import SKY, House

from teraflock.base.clock import FixedClock
from teraflock.bill.budget.admission import BudgetReached
from teraflock.bill.margin.spending import spent, within_limits
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.account import store
from teraflock.instance.account.model import AccountUse, CloudAccount
from teraflock.instance.orders import Order
from teraflock.instance.service import InstanceService
from teraflock.instance.states import Phase
from teraflock.reconcile.accounts import AccountLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Project
from teraflock.tenant.service import TenantService

START = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.fixture
def house(database: Database) -> House:
    clock = FixedClock(START)
    house = House(database, MemoryWorld(), clock, sky=MemoryWorld())
    account = CloudAccount(
        name=SKY, provider="lambda", sealed="", currency="USD", limit_micros=None, created_at=START
    )
    database.write(lambda tx: store.insert(tx, account))
    return house


def account_of(house: House) -> CloudAccount:
    with house.database.read() as tx:
        found = store.account(tx, SKY)
    assert found is not None
    return found


def test_uses_are_set_changed_and_removed(house: House) -> None:
    project = house.tenant.project.id
    for limit in (5, None, 7):
        use = AccountUse(account=SKY, project_id=project, limit_micros=limit)
        house.database.write(lambda tx, use=use: store.set_use(tx, use))  # type: ignore[misc]
        with house.database.read() as tx:
            assert store.uses(tx) == (use,)
            assert store.names_for(tx, project) == {SKY}
    house.database.write(lambda tx: store.remove(tx, SKY))
    with house.database.read() as tx:
        assert (store.uses(tx), store.accounts(tx), store.names_for(tx, project)) == ((), (), frozenset())


def test_spending_is_the_cost_of_this_month_to_the_micro_unit(house: House) -> None:
    project = house.tenant.project
    house.service.launch(house.tenant.actor, project, Order(name="one", site=SKY, type="gpu"))
    with house.database.read() as tx:
        assert spent(tx, account_of(house), "", house.clock.now()).per_hour_micros == 900_000, (
            "also before it is rented"
        )
    house.settle()
    began = house.clock.now()
    with house.database.read() as tx:
        before = spent(tx, account_of(house), project.id, began)
    house.wait(3600)
    with house.database.read() as tx:
        after = spent(tx, account_of(house), project.id, house.clock.now())
        other = spent(tx, account_of(house), "prj_other", house.clock.now())
        next_month = spent(tx, account_of(house), "", datetime(2026, 12, 1, 1, tzinfo=UTC))
    assert after.month_micros - before.month_micros == 900_000
    assert (other.month_micros, other.per_hour_micros) == (0, 0)
    assert next_month.month_micros == 900_000, "only its own first hour"


def test_limits_hold_at_the_launch_and_afterwards(house: House) -> None:
    project, admits = house.tenant.project, within_limits(house.clock)
    house.database.write(lambda tx: store.set_limit(tx, SKY, 1_000_000))
    house.service.launch(house.tenant.actor, project, Order(name="one", site=SKY, type="gpu"))
    house.database.write(lambda tx: admits(tx, project.id))
    house.settle()
    house.database.write(lambda tx: store.set_limit(tx, SKY, 900_000))
    with pytest.raises(BudgetReached, match="limit of 0.90 USD per month"):
        house.database.write(lambda tx: admits(tx, project.id))
    loop = AccountLoop(house.database, house.clock, house.service)
    loop.turn()
    house.settle()
    assert house.service.view(project.id, "one").instance.phase == Phase.RUNNING, (
        "the limit is not reached yet"
    )
    house.wait(timedelta(hours=2).total_seconds())
    loop.turn()
    house.settle()
    assert house.service.view(project.id, "one").instance.phase == Phase.STOPPED


def test_two_tenants_that_launch_at_once_stay_within_the_limit(house: House) -> None:
    """Each tenant holds its own rows, so only the account itself can make them wait for each other."""
    house.database.write(lambda tx: store.set_limit(tx, SKY, 1_000_000))
    service = InstanceService(
        house.database, house.clock, house.engines, random_bytes=os.urandom, admits=within_limits(house.clock)
    )
    tenants = TenantService(house.database, house.clock, os.urandom)
    second = tenants.organisations.make(house.tenant.actor, "second", "me@second").project
    for round in range(4):
        outcomes: list[str] = []
        start = threading.Barrier(2)

        def launch(project: Project, name: str, outcomes: list[str], start: threading.Barrier) -> None:
            start.wait()
            try:
                service.launch(house.tenant.actor, project, Order(name=name, site=SKY, type="gpu"))
                outcomes.append("launched")
            except BudgetReached:
                outcomes.append("refused")

        threads = [
            threading.Thread(target=launch, args=(project, f"n{round}", outcomes, start))
            for project in (house.tenant.project, second)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["launched", "refused"]
        for project in (house.tenant.project, second):
            for view in service.page(project.id, limit=9):
                service.delete(house.tenant.actor, project, view.instance.id)
        house.settle()
        house.database.write(lambda tx: tx.run("DELETE FROM host_cost"))
        house.database.write(lambda tx: tx.run("UPDATE cost_cursor SET rates = 0"))
