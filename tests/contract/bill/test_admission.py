"""Whether a budget allows a launch depends on the price where the instance is."""

from datetime import UTC, datetime

import pytest
from tests.faults.installation import Installation
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
from teraflock.bill.budget.admission import BudgetReached, check_launch
from teraflock.bill.budget.model import Budget
from teraflock.bill.service import BillService
from teraflock.bill.times import microseconds
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order
from teraflock.storage.database import Database

BOOK = """\
- from: 2026-01-01
  currency: USD
  vcpu: 1/hour
  regions: {north: {vcpu: 100/hour}}
"""


def test_a_launch_needs_the_budget_for_the_price_of_its_region(database: Database) -> None:
    clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
    installation = Installation(database, MemoryWorld(), clock)
    tenant = installation.tenant
    bills = BillService(database, clock, RATES, installation.random_bytes)
    bills.prices.take(BOOK, name="prices.yaml", member="mem")
    bills.budgets.set(Budget(project_id=tenant.project.id, currency="", micros=1_000_000, hard_stop=True))
    installation.service.launch(tenant.actor, tenant.project, Order(name="one"))

    def check() -> None:
        with database.read() as tx:
            check_launch(tx, tenant.project.id, microseconds(clock.now()))

    check()
    with database.read() as tx:
        hosts = [row[0] for row in tx.all("SELECT id FROM host ORDER BY id")]
    for host in hosts:
        installation.service.set_region(tenant.actor, host, "north")
    with pytest.raises(BudgetReached):
        check()
