"""The proof finds every single change that could be made to the books by hand."""

import sqlite3
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.long import counted
from tests.unit.bill.world import BOOK, GB, OTHER_PROJECT, PROJECT, RATES, START, World, labels

from teraflock.bill import store as bill_store
from teraflock.bill.credit.service import CreditService
from teraflock.bill.invoice.service import InvoiceService
from teraflock.bill.price.service import PriceService
from teraflock.bill.purchase.service import PurchaseService
from teraflock.bill.store import Profile
from teraflock.bill.verify.service import verify
from teraflock.instance.states import Phase
from teraflock.storage.database import Database

UNPROVABLE = {
    ("meter_reading", "at_us"): "evidence, like an event: within its day and price the time changes nothing",
    ("meter_reading", "epoch"): "evidence too: of a counter that was read once, any word will do",
    ("ledger", "at_us"): "the time of an entry without a charge is stored nowhere else",
    ("invoice", "issued_at_us"): "it is stored nowhere else",
    ("credit_grant", "reason"): "a word for people",
    ("credit_grant", "from_us"): "which days it might have paid for changes nothing that was paid",
    ("credit_grant", "expires_us"): "likewise",
    ("purchase_term", "purchase_id"): "refused by the database itself",
    ("host_size", "from_us"): "evidence: the first size of a host counts for the time before it too",
    ("host_size", "vcpus"): "evidence: a host with cards is divided by cards",
    ("host_size", "ram_bytes"): "likewise",
    ("host_size", "host_id"): "evidence: of a host that nobody used, the size changes nothing",
    ("cost", "booked_at_us"): "it is stored nowhere else",
}
TABLES = (
    "meter_interval",
    "meter_reading",
    "charge",
    "ledger",
    "account",
    "trial_balance",
    "purchase_term",
    "credit_grant",
    "invoice",
    "host_cost",
    "host_size",
    "host_use",
    "host_use_open",
    "cost",
    "cost_host",
)


def books(database: Database | None = None) -> World:
    """A month with something of everything."""
    world = World(database)
    taken = 0

    def random(count: int) -> bytes:
        nonlocal taken
        taken += 1
        return (taken + (1 << 36)).to_bytes(count, "big")

    prices = PriceService(world.database, world.clock, RATES)
    prices.take(BOOK, name="prices.yaml", member="mem_1")
    profile = Profile(project_id=OTHER_PROJECT, currency="EUR", pays="prepaid")
    world.database.write(lambda tx: bill_store.set_profile(tx, profile))
    invoices = InvoiceService(world.database, world.clock)
    invoices.pay_in(OTHER_PROJECT, 50_000_000)
    CreditService(world.database, world.clock, random).grant(
        PROJECT, 20_000_000, "sign-up", world.clock.now() + timedelta(days=3)
    )
    purchases = PurchaseService(world.database, world.clock, random)
    lab = world.own_host("hst_1", gpus=4, vcpus=64, ram_bytes=512 * GB)
    plain = world.own_host("hst_2", gpus=0, vcpus=16, ram_bytes=64 * GB)
    world.costs.set(lab, 1_234_567, "USD")
    world.costs.set(plain, 98_765, "EUR")
    world.move("ins_3", Phase.STARTING, host="hst_2", gpu="", gpus=0, vcpus=3, ram_bytes=7 * GB)
    world.move("ins_4", Phase.STARTING, host="hst_3")
    world.rent("ins_4", "hst_3", 900_001)
    for project, instance in ((PROJECT, "ins_1"), (OTHER_PROJECT, "ins_2")):
        for phase in (Phase.QUEUED, Phase.STARTING, Phase.RUNNING):
            world.move(instance, phase, project=project, labels=labels(team="vision"))
        world.wait(30)
    world.move("ins_1", Phase.STOPPING, asked_at_us=world.now_us - 5 * 10**6)  # a run below the minimum
    world.move("ins_1", Phase.STOPPED)
    world.wait(hours=20)
    world.book()
    world.move("ins_1", Phase.STARTING)
    world.move("ins_1", Phase.RUNNING)
    world.wait(hours=2)
    world.move("ins_1", Phase.RUNNING, gpus=2, snapshots_bytes=7 * GB)
    world.sent("ins_1", 5 * GB)
    world.book()
    bought, _ = purchases.buy(PROJECT, "ins_1", "monthly")
    world.wait(hours=1)
    world.sent("ins_1", 5 * GB + 12_345_678)
    world.rent("ins_4", "hst_3", 800_000)
    world.move("ins_3", Phase.RUNNING, host="hst_2", gpu="", gpus=0, vcpus=3, ram_bytes=7 * GB)
    world.wait(days=2)
    world.book()
    world.costs.set(lab, 2_000_001, "USD", start=START + timedelta(days=1, hours=3))
    world.rent("ins_4", "hst_3", 0)
    world.move("ins_4", Phase.FAILED, host="hst_3")
    world.wait(days=-2)  # a clock that stepped back into a day that is closed
    world.sent("ins_1", 6 * GB)
    world.sent("ins_2", 77, epoch="9")
    world.wait(days=2)
    world.move("ins_1", Phase.RUNNING, gpus=2, snapshots_bytes=7 * GB, region="north")
    world.sent("ins_1", 3 * GB, epoch="2")
    world.move("ins_1", Phase.STOPPING, gpus=2, asked_at_us=world.now_us - 40 * 3600 * 10**6)
    world.move("ins_2", Phase.STARTING, project=OTHER_PROJECT, last_seen_us=world.now_us - 3600 * 10**6)
    world.move("ins_3", Phase.STOPPED, host="hst_2", gpu="", gpus=0, vcpus=0, ram_bytes=0)
    world.costs.set(plain, None)
    world.book()
    purchases.end(PROJECT, bought.id)
    world.wait(days=40)
    world.book()
    invoices.issue_all()
    return world


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = books()
    yield made
    made.database.close()


def test_sound_books_are_found_sound(world: World) -> None:
    verdict = verify(world.database)
    assert verdict.faults == ()
    for table in TABLES:
        assert world.rows(f"SELECT 1 FROM {table}"), f"the example has no row in {table}"
    kinds = {row[0] for row in world.rows("SELECT kind FROM charge")}
    assert kinds == {"usage", "reversal", "fee", "refund"}
    assert world.rows("SELECT 1 FROM charge WHERE minimum_micros > 0 AND egress_micros = 0")
    assert world.rows("SELECT 1 FROM charge WHERE snapshot_micros > 0")
    sent = world.rows("SELECT SUM(egress_bytes) FROM charge WHERE subject = 'ins_1'")
    assert sent == [(9 * GB,)], "each byte once"


@pytest.mark.parametrize("rows", counted(1, 12, because="proves the books a thousand times"))
def test_every_damage_to_a_single_row_is_found(world: World, rows: int) -> None:
    """Change each column of some rows of each table, alone, with the checks of the database off. Put it back."""
    connection = world.database._connection  # type: ignore[attr-defined]
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA foreign_keys = OFF")
    tried, unnoticed = 0, []
    for table in TABLES:
        columns = [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info({table})")]
        rowids = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
        for rowid in rowids[:: max(1, len(rowids) // rows)]:
            for column, kind in columns:
                if (table, column) in UNPROVABLE:
                    continue
                tried += 1
                if not _is_noticed(world, table, column, kind, rowid):
                    unnoticed.append((table, column, rowid))
            assert verify(world.database).is_sound, "what was damaged is whole again"
    assert tried > (100 if rows == 1 else 800)
    assert not unnoticed, "\n".join(map(str, unnoticed))


def _is_noticed(world: World, table: str, column: str, kind: str, rowid: int) -> bool:
    connection = world.database._connection  # type: ignore[attr-defined]
    if (table, column) == ("charge", "booked_at_us"):
        (micros,) = connection.execute("SELECT micros FROM charge WHERE rowid = ?", (rowid,)).fetchone()
        if not micros:
            return True  # what cost nothing has no entry, and no other row tells when it was written
    (before,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (rowid,)).fetchone()
    after = (before or 0) + 1 if kind == "BIGINT" else f"{before}x"
    if kind != "BIGINT" and column == "document":
        after = before.replace('"micros":', '"micros":9', 1)
    try:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (after, rowid))
    except sqlite3.IntegrityError:
        return True  # the database itself refuses two rows with one key
    found = not verify(world.database).is_sound
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (before, rowid))
    return found


@pytest.mark.parametrize("table", TABLES)
def test_a_row_that_is_taken_out_is_missed(world: World, table: str) -> None:
    connection = world.database._connection  # type: ignore[attr-defined]
    connection.execute("PRAGMA foreign_keys = OFF")
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rowids = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
    for rowid in {rowids[0], rowids[len(rowids) // 2], rowids[-1]}:
        row = connection.execute(
            f"SELECT {', '.join(names)} FROM {table} WHERE rowid = ?", (rowid,)
        ).fetchone()
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
        sound = verify(world.database).is_sound
        connection.execute(
            f"INSERT INTO {table} (rowid, {', '.join(names)}) VALUES ({', '.join('?' * (len(names) + 1))})",
            (rowid, *row),
        )
        assert not sound, f"{table} {rowid}"
    assert verify(world.database).is_sound


def test_an_event_that_is_changed_shows_in_the_books(world: World) -> None:
    connection = world.database._connection  # type: ignore[attr-defined]
    row = connection.execute(
        "SELECT id, details FROM event WHERE subject = 'ins_2' AND details LIKE '%\"to\":\"running\"%'"
    ).fetchone()
    connection.execute(
        "UPDATE event SET details = ? WHERE id = ?", (row[1].replace('"gpus":1', '"gpus":2'), row[0])
    )
    assert not verify(world.database).is_sound
