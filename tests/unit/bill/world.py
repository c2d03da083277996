"""A small world for tests of meter and bill: a database in memory, a clock, and events as instances leave them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from teraflock.base.clock import FixedClock
from teraflock.base.events import Event
from teraflock.base.exchange import Rate, Rates
from teraflock.base.ids import EventId, new_id
from teraflock.bill.biller import Biller
from teraflock.bill.margin.service import CostService, note_rental
from teraflock.bill.times import microseconds
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host
from teraflock.instance.driver import Sent
from teraflock.instance.model import InstanceId
from teraflock.instance.states import Phase
from teraflock.meter.service import MeterService
from teraflock.reconcile.traffic import keep
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate
from teraflock.tenant.model import ProjectId

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
GB = 1 << 30
PROJECT = ProjectId("prj_1")
OTHER_PROJECT = ProjectId("prj_2")
RATES = Rates(
    [Rate(START.date(), "CNY", 7_250_000, "made up"), Rate(START.date(), "EUR", 913_700, "made up")]
)
BOOK = """\
- from: 2026-01-01
  currency: USD
  gpu:
    V100: {on-demand: 3.06/hour, monthly: 2233/month, spot: 1.10/hour}
    A100: 2.5/hour
  vcpu: 0.0123/hour
  ram: 0.00213/hour
  disk: 0.1/month
  snapshot: 0.05/month
  egress: 0.05
  minimum: 60 seconds
  monthly: 30%
  spot: 60%
  reserved: {1 year: 25%, 2 years: 35%, 3 years: 45%}
  upfront: 5%
  long-term: {30 days: 5%, 90 days: 10%}
  refund: 50%
  tax: {VAT: 20%}
"""


def held(**changes: Any) -> dict[str, Any]:
    """What an event says of what an instance holds."""
    plain = {
        "gpu": "V100-SXM2", "gpus": 1, "vcpus": 8, "ram_bytes": 61 * GB, "disk_bytes": 100 * GB,
        "snapshots_bytes": 0, "host": "hst_1", "region": "local", "name": "box", "member": "mem_1",
        "labels": "{}",
    }  # fmt: skip
    return {**plain, **changes}


class World:
    def __init__(self, database: Database | None = None, at: datetime = START) -> None:
        self.clock = FixedClock(at)
        self.database = database or MemoryDatabase()
        migrate(self.database, self.clock)
        self.meter = MeterService(self.database, self.clock)
        self.biller = Biller(self.database, self.clock)
        self.costs = CostService(self.database, self.clock, RATES)
        self._made = 0
        self._sequences: dict[str, int] = {}

    @property
    def now_us(self) -> int:
        return microseconds(self.clock.now())

    def wait(self, seconds: float = 0, **more: float) -> None:
        self.clock.move(timedelta(seconds=seconds, **more))

    def event(self, instance: str, phase: Phase, *, sequence: int | None = None, **details: Any) -> Event:
        """An event of an instance, made but not written; its sequence is the next one by default."""
        if sequence is None:
            sequence = self._sequences[instance] = self._sequences.get(instance, 0) + 1
        said = {**held(), "sequence": sequence, "generation": sequence // 3, "to": str(phase), **details}
        project = said.pop("project", "prj_1")
        self._made += 1
        random = self._made.to_bytes(5, "big")
        return Event(
            id=EventId(new_id("evt", self.clock.now(), lambda count: random[-count:])),
            at=self.clock.now(), kind="instance.moved", subject=instance, project=project, details=said,
        )  # fmt: skip

    def write(self, *events: Event) -> None:
        def work(tx: Transaction) -> None:
            for event in events:
                record_event(tx, event)

        self.database.write(work)

    def move(self, instance: str, phase: Phase, **details: Any) -> Event:
        event = self.event(instance, phase, **details)
        self.write(event)
        return event

    def sent(self, instance: str, count: int, epoch: str = "1") -> None:
        """The instance's counter is read: it says so many bytes."""
        sequence = self._sequences[instance]
        if not self.rows("SELECT 1 FROM instance WHERE id = :id", id=instance):
            project = self.rows("SELECT project_id FROM event WHERE subject = :id", id=instance)[0][0]
            self._fill_once("organisation", "org_1", name="operator")
            self._fill_once(
                "project", project, organisation_id="org_1", name=project, network_number=-1, quota="{}"
            )
            self._fill_once("instance", instance, project_id=project, name=instance, running_since_us=1)
        counter = Sent(instance_id=InstanceId(instance), epoch=epoch, bytes=count)

        def work(tx: Transaction) -> None:
            tx.run("UPDATE instance SET sequence = :sequence WHERE id = :id", sequence=sequence, id=instance)
            keep(tx, [counter], self.clock.now())

        self.database.write(work)

    def own_host(self, id: str, *, gpus: int, vcpus: int, ram_bytes: int) -> Host:
        """A host of ours with V100 cards, registered now."""
        fill(
            self.database, "host", id=id, name=id, site="lab", state="ready", disk_limits="hold", kind="own",
            vcpus=vcpus, ram_bytes=ram_bytes, registered_at_us=self.now_us, seen_at_us=self.now_us,
        )  # fmt: skip
        for slot in range(gpus):
            fill(self.database, "host_gpu", host_id=id, slot=str(slot), gpu="V100-SXM2", kind="physical")
        with self.database.read() as tx:
            found = fleet.host(tx, id)
        assert found is not None
        return found

    def rent(self, instance: str, host: str, micros_per_hour: int, project: ProjectId = PROJECT) -> None:
        """A provider reports what the host of an instance costs; 0: it is gone."""
        now = self.clock.now()
        cost: dict[str, str | int | float | bool | None] = {
            "cost_micros_per_hour": micros_per_hour,
            "cost_currency": "USD",
        }
        self._made += 1
        id = EventId(new_id("evt", now, lambda count: self._made.to_bytes(5, "big")[-count:]))

        def work(tx: Transaction) -> None:
            event = Event(
                id=id,
                at=now,
                kind="instance.cost",
                subject=instance,
                project="",
                details={"host": host, **cost},
            )
            record_event(tx, event)
            note_rental(
                tx, host_id=host, instance_id=instance, project_id=project, now=now,
                micros_per_hour=micros_per_hour, currency="USD",
            )  # fmt: skip

        self.database.write(work)

    def _fill_once(self, table: str, id: str, **values: object) -> None:
        if not self.rows(f"SELECT 1 FROM {table} WHERE id = :id", id=id):
            fill(self.database, table, id=id, **values)

    def book(self) -> None:
        """Meter and charge all there is."""
        self.meter.catch_up()
        self.biller.catch_up()
        self.biller.close_days(grace_us=0)
        self.costs.catch_up(grace_us=0)

    def rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        with self.database.read() as tx:
            return tx.all(sql, **values)

    def charged(self, instance: str | None = None) -> int:
        only = "" if instance is None else " WHERE subject = :id"
        values = {} if instance is None else {"id": instance}
        return int(self.rows(f"SELECT COALESCE(SUM(micros), 0) FROM charge{only}", **values)[0][0])


def labels(**words: str) -> str:
    return json.dumps(words)


def fill(database: Database, table: str, **values: object) -> None:
    """A row of a table of somebody else's, with something in every column that must have it."""

    def work(tx: Any) -> None:
        row: dict[str, object] = {}
        for name, kind, must in _columns(tx, table, is_postgres="Postgres" in type(database).__name__):
            if name in values or must:
                row[name] = values.get(name, 0 if kind.upper() == "BIGINT" else "")
        names = ", ".join(row)
        tx.run(f"INSERT INTO {table} ({names}) VALUES ({', '.join(':' + name for name in row)})", **row)

    database.write(work)


def _columns(tx: Transaction, table: str, *, is_postgres: bool) -> list[tuple[str, str, bool]]:
    """Name and type of each column, and whether a row must say something there."""
    if is_postgres:
        found = tx.all(
            "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
            " WHERE table_name = :name",
            name=table,
        )
        return [(row[0], row[1], row[2] == "NO" and row[3] is None) for row in found]
    rows = tx.all(f"PRAGMA table_info({table})")
    return [(row[1], row[2], bool(row[5] or (row[3] and row[4] is None))) for row in rows]
