"""A seeded life of the whole: launches, stops, resizes, losses, prices, months, credits, crashes, late events.

After every few steps the proof must find nothing, the trial balance must be zero; in the end, every tick that a tenant
held a card must be charged exactly once, and the cost be that of the oracle to within the floors.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.bill.oracle import TICK_US, Oracle
from tests.unit.bill.world import GB, RATES, World, fill, held

from teraflock.base.errors import TeraflockError
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.bill import store as bill_store
from teraflock.bill.credit.service import CreditService
from teraflock.bill.invoice.service import InvoiceService
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.price.service import PriceService
from teraflock.bill.purchase.service import PurchaseService
from teraflock.bill.store import Profile
from teraflock.bill.verify.service import verify
from teraflock.instance.driver import Sent
from teraflock.instance.model import InstanceId
from teraflock.instance.states import Phase
from teraflock.reconcile.traffic import keep
from teraflock.storage.database import Transaction
from teraflock.storage.memory import MemoryDatabase

T = TypeVar("T")
EXAMPLES = int(os.environ.get("TERA_SIMULATIONS", "12"))
STEPS = int(os.environ.get("TERA_SIMULATION_STEPS", "60"))
PROJECTS = ("prj_usd", "prj_cny", "prj_ahead")
GPUS = ("V100-SXM2", "A100-SXM4-80", "")
TICK_S = TICK_US // 10**6
AGO = st.one_of(st.integers(0, 40), st.integers(0, 2_000))
"""Hours, or a week: then days that are closed and charged must be taken back."""


class Killed(BaseException):
    """The process ended in the middle of a transaction."""


class MortalDatabase(MemoryDatabase):
    """Dies once, when told to, after a work was done and before it is committed."""

    dies = False

    def write(self, work: Callable[[Transaction], T], /) -> T:
        def until_killed(tx: Transaction) -> T:
            result = work(tx)
            if self.dies:
                self.dies = False
                raise Killed
            return result

        return super().write(until_killed)


class Books(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.database = MortalDatabase()
        self.world = World(self.database)
        self.oracle = Oracle()
        self.late: list[Event] = []
        self.counters: dict[str, tuple[int, int]] = {}
        self.regions: dict[tuple[str, int], str] = {}
        self.rng = 1 << 36  # apart from the ids of the events that the world makes
        clock = self.world.clock
        self.prices = PriceService(self.database, clock, RATES)
        self.purchases = PurchaseService(self.database, clock, self._random)
        self.credits = CreditService(self.database, clock, self._random)
        self.invoices = InvoiceService(self.database, clock)
        self.bought: dict[str, tuple[str, str]] = {}
        fill(self.database, "organisation", id="org_1", name="lab")
        for number, project in enumerate(PROJECTS):
            fill(
                self.database,
                "project",
                id=project,
                organisation_id="org_1",
                name=project,
                network_number=number,
                quota="{}",
            )
        profiles = [
            Profile(project_id="prj_cny", currency="CNY"),
            Profile(project_id="prj_ahead", currency="USD", pays="prepaid", tax_name="VAT", tax_bp=1900),
        ]
        for profile in profiles:
            self.database.write(lambda tx, profile=profile: bill_store.set_profile(tx, profile))  # type: ignore[misc]

    def _random(self, count: int) -> bytes:
        self.rng += 1
        return self.rng.to_bytes(count, "big")

    # -- what tenants and hosts do -----------------------------------------------------------------

    @rule(
        project=st.sampled_from(PROJECTS), gpu=st.sampled_from(GPUS), gpus=st.integers(1, 8),
        mode=st.sampled_from(["on-demand", "on-demand", "spot"]), fails=st.integers(0, 5), late=st.booleans(),
    )  # fmt: skip
    def launch(self, project: str, gpu: str, gpus: int, mode: str, fails: int, late: bool) -> None:
        id = f"ins_{len(self.oracle.lives):04}"
        shape = held(
            gpu=gpu, gpus=gpus if gpu else 0, vcpus=2 * gpus, ram_bytes=gpus * 7 * GB + 12345,
            disk_bytes=40 * GB + gpus, mode=mode, name=id, region="home",
        )  # fmt: skip
        row = {
            "id": id, "project_id": project, "name": id, "address": None, "phase": "queued", "spec": "{}",
            "running_since_us": 1,
        }  # fmt: skip
        self._survives(lambda: fill(self.database, "instance", **row))
        self.shapes = {**getattr(self, "shapes", {}), id: shape}
        self._change(id, project, Phase.QUEUED, late=False)
        self._change(id, project, Phase.STARTING, late=late)
        self._change(id, project, Phase.RUNNING if fails else Phase.FAILED, late=late)

    @precondition(lambda self: self._in("running"))
    @rule(data=st.data(), ago=AGO, late=st.booleans(), deletes=st.booleans())
    def stop(self, data: st.DataObject, ago: int, late: bool, deletes: bool) -> None:
        """Asked for some time ago: other things may have happened since."""
        id = data.draw(st.sampled_from(self._in("running")))
        asked_us = self.world.now_us - ago * TICK_US
        self._change(id, phase=Phase.DELETING if deletes else Phase.STOPPING, late=late, asked_at_us=asked_us)

    @precondition(lambda self: self._in("stopping", "deleting"))
    @rule(data=st.data(), late=st.booleans())
    def reach(self, data: st.DataObject, late: bool) -> None:
        id = data.draw(st.sampled_from(self._in("stopping", "deleting")))
        stops = self.oracle.lives[id].phase == "stopping"
        self._change(id, phase=Phase.STOPPED if stops else Phase.GONE, late=late, asked_at_us=1)

    @precondition(lambda self: self._in("stopped"))
    @rule(data=st.data(), late=st.booleans(), wait=st.integers(0, 3))
    def start(self, data: st.DataObject, late: bool, wait: int) -> None:
        id = data.draw(st.sampled_from(self._in("stopped")))
        self._change(id, phase=Phase.STARTING, late=late)
        self.pass_time(wait)
        self._change(id, phase=Phase.RUNNING, late=late)

    @precondition(lambda self: self._in("running"))
    @rule(data=st.data(), gpus=st.integers(1, 8), late=st.booleans(), restarts=st.booleans())
    def resize(self, data: st.DataObject, gpus: int, late: bool, restarts: bool) -> None:
        id = data.draw(st.sampled_from(self._in("running")))
        before = self.shapes[id]
        if restarts:
            self._change(id, phase=Phase.CHANGING, late=late)
        self.shapes[id] = {
            **before,
            "gpus": gpus if before["gpu"] else 0,
            "vcpus": 3 * gpus,
            "ram_bytes": gpus * GB,
        }
        self._change(id, phase=Phase.RUNNING, late=late, kind="instance.held")

    @precondition(lambda self: self._in("running", "stopped"))
    @rule(
        data=st.data(), size=st.integers(0, 90), region=st.sampled_from(["home", "north"]), late=st.booleans()
    )
    def snapshots(self, data: st.DataObject, size: int, region: str, late: bool) -> None:
        """Made or deleted, and its host said to stand elsewhere."""
        id = data.draw(st.sampled_from(self._in("running", "stopped")))
        self.shapes[id] = {**self.shapes[id], "snapshots_bytes": size * GB + size, "region": region}
        self._change(id, phase=Phase(self.oracle.lives[id].phase), late=late, kind="instance.held")

    @precondition(lambda self: self._in("running", "stopping", "deleting"))
    @rule(data=st.data(), count=st.integers(1, 1 << 40), anew=st.booleans())
    def send(self, data: st.DataObject, count: int, anew: bool) -> None:
        """The counter is read, twice; it goes on, or began anew meanwhile."""
        id = data.draw(st.sampled_from(self._in("running", "stopping", "deleting")))
        epoch, before = self.counters.get(id, (0, 0))
        epoch, before = (epoch + 1, 0) if anew else (epoch, before)
        self.counters[id] = (epoch, before + count)
        ((sequence,),) = self.world.rows("SELECT sequence FROM instance WHERE id = :id", id=id)
        ((closed_us,),) = self.world.rows("SELECT booked_until_us FROM bill_cursor")
        counter = Sent(instance_id=InstanceId(id), epoch=str(epoch), bytes=before + count)
        for _ in range(2):
            self._survives(
                lambda: self.database.write(lambda tx: keep(tx, [counter], self.world.clock.now()))
            )
        at_us = max(self.world.now_us, closed_us)
        self.oracle.lives[id].sent.append((at_us, count, self.regions[id, sequence]))
        self.oracle.lives[id].cuts += 1

    @precondition(lambda self: self._in("running"))
    @rule(data=st.data(), ago=AGO, late=st.booleans())
    def lose_host(self, data: st.DataObject, ago: int, late: bool) -> None:
        id = data.draw(st.sampled_from(self._in("running")))
        seen_us = self.world.now_us - ago * TICK_US
        self._change(id, phase=Phase.STARTING, late=late, last_seen_us=seen_us)
        self._change(id, phase=Phase.RUNNING, late=late)

    @precondition(lambda self: self._in("running", "stopped"))
    @rule(data=st.data())
    def trouble(self, data: st.DataObject) -> None:
        """An event that changes nothing."""
        id = data.draw(st.sampled_from(self._in("running", "stopped")))
        self._change(id, phase=Phase(self.oracle.lives[id].phase), late=False, kind="instance.troubled")

    # -- time ----------------------------------------------------------------------------------------

    @rule(ticks=st.one_of(st.integers(0, 12), st.integers(0, 2_000), st.sampled_from([9_000])))
    def pass_time(self, ticks: int) -> None:
        before_us = self.world.now_us
        self.world.wait(ticks * TICK_S)
        self.oracle.pass_time(before_us, self.world.now_us)

    @rule(ticks=st.integers(1, 400))
    def step_back(self, ticks: int) -> None:
        self.world.wait(-ticks * TICK_S)

    # -- prices and purchases --------------------------------------------------------------------------

    @rule(
        gpu=st.integers(0, 10**7),
        part=st.integers(0, 10**5),
        minimum=st.sampled_from([0, 900, 3600]),
        off=st.integers(0, 90),
    )
    def change_prices(self, gpu: int, part: int, minimum: int, off: int) -> None:
        text = f"""
- from: 2020-01-01
  currency: USD
  gpu: {{V100: {gpu / 10**6:.6f}/hour, A100: {gpu / 10**5:.6f}/month}}
  vcpu: {part / 10**6:.6f}/hour
  ram: {part / 10**6:.6f}/month
  disk: {part / 10**5:.6f}/month
  snapshot: {part / 10**6:.6f}/month
  egress: {part / 10**6:.6f}
  regions: {{north: {{gpu: {{V100: {part / 10**6:.6f}/hour}}, disk: {part / 10**6:.6f}/month, egress: 0.07}}}}
  minimum: {minimum} s
  spot: 60%
  monthly: 30%
  refund: 50%
  reserved: {{1 year: 25%}}
  long-term: {{2 days: {off}%, 5 days: {min(100, off + 9)}%}}
  tax: {{VAT: 20%}}
"""
        period = self._survives(lambda: self.prices.take(text, name="book", member="mem_1"))[0]
        self.oracle.prices.append(
            (
                period.from_us,
                {
                    "gpu": {"V100-SXM2": 730 * gpu, "A100-SXM4-80": 10 * gpu}, "vcpu": 730 * part, "ram": part,
                    "snapshot": part, "egress": part,
                    "regions": {"north": {"gpu": {"V100-SXM2": 730 * part}, "disk": part, "egress": 70_000}},
                    "disk": 10 * part, "minimum": minimum, "long_term": ((2, off * 100), (5, min(100, off + 9) * 100)),
                },
            )
        )  # fmt: skip

    @precondition(lambda self: self._in("running"))
    @rule(data=st.data(), reserved=st.booleans(), upfront=st.booleans())
    def buy(self, data: st.DataObject, reserved: bool, upfront: bool) -> None:
        id = data.draw(st.sampled_from(self._in("running")))
        project = self.oracle.lives[id].project
        mode = "reserved" if reserved else "monthly"
        years = 1 if reserved else 0
        try:
            purchase, term = self._survives(
                lambda: self.purchases.buy(project, id, mode, years=years, upfront=upfront and reserved)  # type: ignore[arg-type]
            )
        except TeraflockError:
            return  # not metered yet, bought already, or no prices: as it should be
        self.bought[id] = (purchase.id, project)
        until_us = 1 << 62
        self.oracle.covers.setdefault(id, []).append((term.from_us, until_us, _shape(term.covers)))

    @precondition(lambda self: bool(self.bought))
    @rule(data=st.data(), ends=st.booleans())
    def change_purchase(self, data: st.DataObject, ends: bool) -> None:
        id = data.draw(st.sampled_from(sorted(self.bought)))
        purchase_id, project = self.bought[id]
        change = self.purchases.end if ends else self.purchases.upgrade
        try:
            term = self._survives(lambda: change(project, purchase_id))
        except TeraflockError:
            return
        from_us, _, shape = self.oracle.covers[id].pop()
        self.oracle.covers[id].append((from_us, term.from_us, shape))
        if ends:
            del self.bought[id]
        else:
            self.oracle.covers[id].append((term.from_us, 1 << 62, _shape(term.covers)))

    @rule(
        project=st.sampled_from(PROJECTS),
        micros=st.integers(1, 10**9),
        days=st.integers(1, 40),
        pays=st.booleans(),
    )
    def give(self, project: str, micros: int, days: int, pays: bool) -> None:
        if pays:
            self._survives(lambda: self.invoices.pay_in(project, micros))
        else:
            expires = self.world.clock.now() + timedelta(days=days)
            self._survives(lambda: self.credits.grant(project, micros, "gift", expires))

    # -- the loops, and what may happen to them ----------------------------------------------------------

    @rule(limit=st.sampled_from([1, 3, 5_000]))
    def meter(self, limit: int) -> None:
        self._may_die(lambda: self.world.meter.turn(limit=limit))

    @rule(limit=st.sampled_from([1, 2, 10_000]))
    def bill(self, limit: int) -> None:
        self._may_die(lambda: self.world.biller.turn(limit=limit))

    @rule(hours=st.integers(0, 60))
    def keep_books(self, hours: int) -> None:
        """All of it, as the loop does most of the time."""
        self.pass_time(hours * 12)
        self._may_die(self.world.meter.catch_up)
        self._may_die(self.world.meter.sweep)
        self._may_die(self.world.biller.catch_up)
        self._may_die(lambda: self.world.biller.close_days(grace_us=0))

    @rule()
    def close_days(self) -> None:
        self._may_die(lambda: self.world.biller.close_days(grace_us=0))

    @rule()
    def sweep(self) -> None:
        self._may_die(self.world.meter.sweep)

    @rule()
    def issue_invoices(self) -> None:
        self._may_die(self.invoices.issue_all)

    @rule()
    def kill_next(self) -> None:
        self.database.dies = True

    @precondition(lambda self: bool(self.late))
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Some late events arrive, in any order, perhaps as two."""
        for _ in range(data.draw(st.integers(1, len(self.late)))):
            event = self.late.pop(data.draw(st.integers(0, len(self.late) - 1)))
            self._write(event)
            if data.draw(st.integers(0, 3)) == 0:
                twin = new_id("evt", event.at, self._random)
                self._write(
                    Event(**{**{f: getattr(event, f) for f in event.__struct_fields__}, "id": EventId(twin)})
                )

    # -- what must hold ------------------------------------------------------------------------------------

    @invariant()
    def books_balance(self) -> None:
        if hasattr(self, "database"):
            with self.database.read() as tx:
                for debits, credits in ledger_store.trial_balance(tx).values():
                    assert debits == credits

    @rule()
    def proof_finds_nothing(self) -> None:
        verdict = verify(self.database)
        assert verdict.is_sound, verdict.faults[:5]

    def teardown(self) -> None:
        if not hasattr(self, "oracle"):
            return
        self.database.dies = False
        for id, life in list(self.oracle.lives.items()):
            if life.phase not in ("gone", "failed"):
                self._change(id, phase=Phase.GONE, late=False)
        while self.late:
            self._write(self.late.pop())
        self.world.meter.catch_up()
        self.world.meter.sweep()
        self.world.biller.catch_up()
        ((closed_us,),) = self.world.rows("SELECT booked_until_us FROM bill_cursor")
        self.world.wait(
            2 * 86_400 + max(0, closed_us - self.world.now_us) // 10**6
        )  # traffic is booked by the day
        self.world.biller.close_days(grace_us=0)
        verdict = verify(self.database)
        assert verdict.is_sound, verdict.faults[:5]
        assert verdict.changes_to_come == 0
        for id in self.oracle.lives:
            self._compare(id)
        self.database.close()

    def _compare(self, id: str) -> None:
        rows = self.world.rows(
            "SELECT gpus, until_us - from_us, micros, kind FROM charge WHERE subject = :id", id=id
        )
        sign = {"usage": 1, "reversal": -1}
        assert sum(sign[row[3]] * row[0] * row[1] for row in rows) == self.oracle.gpu_us(id)
        exact, booked = self.oracle.cost(id), sum(row[2] for row in rows)
        floors = 9 * (self.oracle.lives[id].cuts + 1)
        assert 0 <= exact - booked < floors, (id, float(exact), booked, rows)

    # -- how it is done ------------------------------------------------------------------------------------

    def _in(self, *phases: str) -> list[str]:
        return [id for id, life in self.oracle.lives.items() if life.phase in phases]

    def _change(
        self, id: str, project: str = "", phase: Phase = Phase.GONE, *, late: bool, **details: Any
    ) -> None:
        project = project or self.oracle.lives[id].project
        kind = details.pop("kind", "instance.moved")
        event = self.world.event(id, phase, project=project, **self.shapes[id], **details)
        self.regions[id, int(str(event.details["sequence"]))] = self.shapes[id]["region"]
        event = Event(**{**{f: getattr(event, f) for f in event.__struct_fields__}, "kind": kind})
        asked_us, lost_us = details.get("asked_at_us"), details.get("last_seen_us")
        self.oracle.change(
            id, project, str(phase), _charged(self.shapes[id]), self.world.now_us, asked_us, lost_us
        )
        if late:
            self.late.append(event)
        else:
            self._write(event)

    def _write(self, event: Event) -> None:
        self._survives(lambda: self.world.write(event))
        self._survives(
            lambda: self.database.write(
                lambda tx: tx.run(
                    "UPDATE instance SET sequence = :new WHERE id = :id AND sequence < :new",
                    id=event.subject,
                    new=event.details["sequence"],
                )
            )
        )

    def _survives(self, act: Callable[[], T]) -> T:
        """What a user asks for again until it is done."""
        try:
            return act()
        except Killed:
            return act()

    def _may_die(self, act: Callable[[], object]) -> None:
        with suppress(Killed):
            act()


def _charged(shape: dict[str, Any]) -> dict[str, Any]:
    names = ("gpu", "gpus", "vcpus", "ram_bytes", "disk_bytes", "snapshots_bytes", "region", "mode")
    return {name: shape[name] for name in names}


def _shape(covers: Any) -> dict[str, Any]:
    return {name: getattr(covers, name) for name in ("gpu", "gpus", "vcpus", "ram_bytes", "disk_bytes")}


Books.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None)
TestBooks = Books.TestCase
