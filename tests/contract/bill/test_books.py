"""The books on both databases: verified, correct with several concurrent billers, and complete after `kill -9`."""

import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from tests.unit.bill.test_verify import books
from tests.unit.bill.world import BOOK, OTHER_PROJECT, PROJECT, RATES, START, World

from teraflock.base.errors import Conflict, Refused
from teraflock.bill.biller import Biller
from teraflock.bill.export.model import BillingAccount
from teraflock.bill.invoice.service import InvoiceService
from teraflock.bill.price.service import PriceService
from teraflock.bill.service import BillService, SumBy
from teraflock.bill.verify.service import verify
from teraflock.instance.states import Phase
from teraflock.meter.service import MeterService
from teraflock.storage.database import ConstraintBroken, Database
from teraflock.tenant.model import ProjectId

WRITER = Path(__file__).with_name("writes_until_killed.py")


def test_a_month_with_every_kind_of_charge_verifies(database: Database) -> None:
    world = books(database)
    assert verify(database).faults == ()
    bills = BillService(database, world.clock, RATES)
    bill = bills.bill(PROJECT, "2026-01")
    charged = world.rows(
        "SELECT SUM(micros), COUNT(*) FROM charge WHERE project_id = 'prj_1' AND month = '2026-01'"
    )
    assert (bill.micros, bill.lines) == tuple(map(int, charged[0]))
    for by in get_args(SumBy):
        groups = bills.bill(PROJECT, "2026-01", by).groups
        assert sum(group.micros for group in groups) == bill.micros
    days = [group.name for group in bills.bill(PROJECT, "2026-01", "day").groups]
    assert days == sorted(set(days))
    assert all(day.startswith("2026-01-") for day in days)
    assert len(bills.lines(PROJECT, "2026-01")) == bill.lines
    account = BillingAccount(
        organisation_id="org_1", organisation="lab", project_id=PROJECT, project="default"
    )
    assert "".join(bills.focus(account, "2026-01")).count("\n") > bill.lines


def test_the_database_refuses_unbalanced_entries(database: Database) -> None:
    books(database)
    for sql in (
        "UPDATE trial_balance SET debits = debits + 1",
        "UPDATE ledger SET micros = 0 WHERE number = 1",
        "UPDATE ledger SET debit = credit WHERE number = 1",
        "UPDATE charge SET micros = micros + 1 WHERE number = 1",
        "UPDATE meter_interval SET until_us = from_us - 1 WHERE number = 1",
        "UPDATE credit_grant SET drawn_micros = micros + 1",
        "UPDATE invoice SET due_micros = due_micros + 1",
    ):
        with pytest.raises(ConstraintBroken):
            database.write(lambda tx, sql=sql: tx.run(sql))  # type: ignore[misc]


def launches(world: World, count: int) -> None:
    """Runs of random lengths, over days."""
    chance = random.Random(7)
    PriceService(world.database, world.clock, RATES).take(BOOK, name="book", member="mem_1")
    for number in range(count):
        for phase in (Phase.QUEUED, Phase.STARTING, Phase.RUNNING):
            world.move(f"ins_{number:03}", phase, project=f"prj_{number % 3}")
        world.wait(chance.randrange(10, 5_000))
        if number % 3:
            asked_us = world.now_us - chance.randrange(0, 3_000) * 10**6
            world.move(f"ins_{number:03}", Phase.STOPPING, project=f"prj_{number % 3}", asked_at_us=asked_us)


def test_two_concurrent_billers_charge_everything_once(database: Database) -> None:
    world = World(database)
    launches(world, 60)
    world.wait(days=3)
    errors: list[Exception] = []

    def run() -> None:
        meter, biller = MeterService(database, world.clock), Biller(database, world.clock)
        try:
            while meter.turn(limit=7) + biller.turn(limit=5) or biller.close_days(grace_us=0):
                pass
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    world.wait(days=1)  # a day that one of them closed early is made up for at the end of the next
    world.book()
    verdict = verify(database)
    assert verdict.faults == ()
    assert verdict.changes_to_come == 0
    assert verdict.charges > 40


def test_invoices_of_two_concurrent_servers_have_no_gaps(database: Database) -> None:
    """Each server issues all invoices repeatedly, while the other does the same and a tenant pays."""
    world = World(database)
    launches(world, 30)
    world.clock.move(START + timedelta(days=70) - world.clock.now())
    world.book()
    errors: list[Exception] = []
    start = threading.Barrier(3)

    def run(month: str) -> None:
        invoices = InvoiceService(database, world.clock)
        try:
            start.wait()
            for project in (
                (OTHER_PROJECT, ProjectId("prj_0"), PROJECT)
                if month == "2026-02"
                else (PROJECT, OTHER_PROJECT)
            ):
                invoices.pay_in(project, 1_000)
                with suppress(
                    Conflict, Refused
                ):  # the later month may have been first, or nothing was left for it
                    invoices.issue(project, month)
            invoices.issue_all()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(month,)) for month in ("2026-01", "2026-02", "2026-02")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    issued = world.rows("SELECT number, project_id, month FROM invoice ORDER BY number")
    assert [row[0] for row in issued] == list(range(1, len(issued) + 1))
    assert len({row[1:] for row in issued}) == len(issued)
    assert {row[1] for row in issued} == {ProjectId("prj_0"), PROJECT, OTHER_PROJECT}
    (invoiced, charged), *_ = world.rows(
        "SELECT (SELECT SUM(usage_micros) FROM invoice), (SELECT SUM(micros) FROM charge WHERE month <= '2026-02')"
    )
    assert invoiced == charged > 0
    assert verify(database).faults == ()


def test_the_next_biller_continues_after_a_killed_one(database_address: str, database: Database) -> None:
    world = World(database)
    launches(world, 60)
    chance = random.Random(11)
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.contract.bill.writes_until_killed", database_address],
            stdout=subprocess.PIPE, stdin=subprocess.PIPE, cwd=WRITER.parents[3],
        ) as process:  # fmt: skip
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            for _ in range(chance.randrange(0, 12)):
                if process.stdout.readline() == b"done\n":
                    break
            process.send_signal(signal.SIGKILL)
        assert verify(database).faults == (), "sound at whatever point it was killed"
    world.clock.move(START + timedelta(days=40) - world.clock.now())
    world.book()
    verdict = verify(database)
    assert (verdict.faults, verdict.changes_to_come) == ((), 0)
