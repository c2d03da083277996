"""A whole installation in one process: real services and loops, the simulated engine, a clock to move, and an
oracle.

Nothing runs by itself: `turn` is one turn of every loop. When the process dies, everything in memory is
dropped and created again on the same database and world, as in a restart.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import msgspec
from tests.simulation import price_book
from tests.simulation.balancing import PROJECT as EDGE
from tests.simulation.balancing import Balancing
from tests.simulation.crashing_database import CrashingDatabase
from tests.simulation.intake import Intake
from tests.simulation.observer import Observer, WatchedCloud, WatchedEngine
from tests.simulation.oracle import Cover, Oracle
from tests.simulation.process import MortalProcess
from tests.simulation.watch import Watch
from tests.unit.bill.world import RATES, START

from teraflock.base.clock import FixedClock
from teraflock.base.errors import TeraflockError
from teraflock.bill.budget.admission import admission
from teraflock.bill.budget.model import Budget
from teraflock.bill.budget.rules import LOOK_SECONDS
from teraflock.bill.service import BillService
from teraflock.bill.store import Profile
from teraflock.bill.times import microseconds, month_bounds
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.image.service import ImageService
from teraflock.instance.engines import Engines
from teraflock.instance.model import Instance, RestartPolicy
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.service import InstanceService
from teraflock.instance.states import BILLABLE
from teraflock.reconcile.balancers import BalancerLoop
from teraflock.reconcile.bills import BillLoop, stopper
from teraflock.reconcile.commands import CommandLoop
from teraflock.reconcile.images import ImageLoop
from teraflock.reconcile.time_limits import TimeLimitLoop
from teraflock.reconcile.traffic import TrafficLoop
from teraflock.storage.database import Database
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate
from teraflock.tenant.model import Actor, MemberId, Project, ProjectId
from teraflock.tenant.service import TenantService

HOSTS = "2x4xV100,1x2xA100-80,1x0"
SKY = "sky"
SKY_TYPES = "gpu=1xV100@north:0.90/0.30,home:1.00/0.40"
PROJECTS = ("default", "cny", "ahead")
DAY_S = 86_400
FAR_S = 20 * 3600
"""The longest time without a turn of the loops, when no limit is near."""


class Cloud(MortalProcess):
    def __init__(self, database: Database | None = None, seed: int = 0) -> None:
        self.clock = FixedClock(START)
        self.random_bytes = Random(seed).randbytes
        self._sky_has_tokens = seed % 2 == 0
        self.world = MemoryWorld()
        self.trouble = Trouble(self.world)
        self.sky_world = MemoryWorld()
        self.sky_trouble = Trouble(self.sky_world)
        self.oracle = Oracle()
        self.names: dict[str, str] = {}
        """Project names by id."""
        self.intake = Intake()
        self.observer = Observer(self.oracle, self.names, lambda: self.now_us, self.intake.arrive_of)
        self.count = self.observer.count
        self.sent_bytes: Counter[str] = Counter()
        """By instance: the bytes that its guest was told to send."""
        self.paid: Counter[str] = Counter()
        self.given: Counter[str] = Counter()
        """By project: prepayments and credits."""
        self.watch = Watch()
        self.balancing = Balancing(self, seed)
        self._first = True
        self._standing: dict[str, int] = {}
        """Instances that were stopped when a new process first checked, and the number of their last event."""
        inner = database or MemoryDatabase()
        migrate(inner, self.clock)
        self.database = CrashingDatabase(inner, self.observer.look, self.observer.saw)
        self._named = 0
        tenants = TenantService(self.database, self.clock, self.random_bytes)
        self.mark = tenants.install().installation_id
        actor = tenants.authenticate(tenants.operator_key().secret)
        self.actors: list[Actor] = [actor, msgspec.structs.replace(actor, member_id=MemberId("mem_other"))]
        for name in (*PROJECTS[1:], EDGE):
            tenants.projects.make(actor, name)
        self.projects: dict[str, Project] = {name: tenants.projects.show(actor, name) for name in PROJECTS}
        self.edge = tenants.projects.show(actor, EDGE)
        self.names.update({project.id: name for name, project in self.projects.items()})
        self.boot()
        self.bills.set_profile(Profile(project_id=self.id("cny"), currency="CNY"))
        ahead = Profile(
            project_id=self.id("ahead"), currency="USD", pays="prepaid", tax_name="VAT", tax_bp=1900
        )
        self.bills.set_profile(ahead)
        images = ImageService(
            self.database, self.clock, publish=self.service.publish, random_bytes=self.random_bytes
        )
        images.build(actor, self.projects["default"], "base", "base")
        for project in (self.projects["cny"], self.projects["ahead"]):
            with suppress(TeraflockError):  # already a member of the organisation
                images.build(actor, project, "base", "base")
        self.turn()

    @property
    def now_us(self) -> int:
        return microseconds(self.clock.now())

    @property
    def engine_site(self) -> str:
        return self._engine.site

    def id(self, project: str) -> ProjectId:
        return self.projects[project].id

    # -- the process -------------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Create everything that lives in memory. On SQLite the only process takes over all leases."""
        self.database.live()
        around = (self.database, self.clock)
        self.observer.began()
        engine = WatchedEngine(self.world, self.clock, fleet(HOSTS), mark=self.mark, boot_seconds=0.4)
        self._engine = engine
        self._sky = WatchedCloud(
            self.sky_world, self.clock, types=SKY_TYPES, site=SKY, mark=self.mark, boot_seconds=0.4, launch_seconds=2,
            listing_seconds=3, tokens=self._sky_has_tokens,
        )  # fmt: skip
        self.engines = engines = Engines([engine, self._sky], for_all=[SKY])
        self.service = InstanceService(
            *around, engines, random_bytes=self.random_bytes, admits=admission(self.clock)
        )
        self.bills = BillService(
            *around,
            RATES,
            self.random_bytes,
            stopper(self.database, self.service),
        )
        self.loop = BillLoop(self.bills, self.clock)
        self._look = self.bills.budgets.turn
        self.bills.budgets.turn = self._looked  # type: ignore[method-assign]
        self._named += 1
        loops = self.hire(engines, f"worker-{self._named}")
        self.commands = CommandLoop(loops)
        self._first, self._standing = True, {}
        self.image_loop, self.traffic = ImageLoop(loops), TrafficLoop(loops)
        self.time_limits = TimeLimitLoop(loops)
        self.balancers = BalancerLoop(loops, lambda sealed, id: sealed)

    def turn(self) -> None:
        """Run one turn of every loop."""
        for act in (self.beat, self._read_hosts, self.image_loop.turn, self.drift.turn, self.commands.turn,
                    self.time_limits.turn, self.serve, self.balancing.turn, self.balancers.turn, self.traffic.turn,
                    self.loop.turn):  # fmt: skip
            if not self.survives(act) or (act == self._read_hosts and not self.hosts.has_looked):
                return

    def _read_hosts(self) -> None:
        self._engine.forget()
        self._sky.forget()
        first, self._first = self._first, False
        if first:
            self._note_standing()
        try:
            self.hosts.turn()
        except Killed:
            if self.database.dies_after_commit:
                self.observer.found_hosts(self._engine.read or ())
                self.observer.found_hosts(self._sky.read or ())
            raise
        self.observer.read_hosts(self._engine.read, self.database)
        self.observer.found_hosts(self._sky.read or ())
        if self.hosts.has_looked:
            self._check_standing()

    def _note_standing(self) -> None:
        """Note what does not run when a new process first checks: it must not be charged up to now."""
        with self.world.read() as turn:
            running = {guest.key for guest in turn.every(Guest) if guest.running}
        rows = [each for each in self.instances_there() if each.phase in BILLABLE and not each.spec.rental]
        self._standing = {each.id: each.sequence for each in rows if each.id not in running}
        self.count["ran on"] += len(rows) - len(self._standing)
        self.count["stood still"] += len(self._standing)

    def _check_standing(self) -> None:
        """Check with the world alone that stopped instances are charged only up to an earlier reading of
        their host."""
        for id, sequence in self._standing.items():
            with self.database.read() as tx:
                row = tx.one("SELECT sequence FROM instance WHERE id = :id", id=id)
            assert row, id
            assert row[0] > sequence, f"{id} was stopped while the server did not watch, but is charged"
        self._standing = {}

    def _looked(self) -> list[ProjectId]:
        stopped = self._look()
        self.watch.looked(self)
        return stopped

    # -- time --------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Pass time with the loops running: in long steps, but in short ones when a budget is nearly used up."""
        end_us = self.now_us + int(seconds * 10**6)
        while self.now_us < end_us:
            stride_us = min(end_us - self.now_us, self._stride_us())
            self.clock.move(timedelta(microseconds=stride_us))
            self.turn()

    def _stride_us(self) -> int:
        now_us, step_us = self.now_us, LOOK_SECONDS * 10**6
        month = f"{self.clock.now():%Y-%m}"
        stride_us = min(FAR_S * 10**6, month_bounds(month)[1] - now_us)
        for name, limit in self.limits().items():
            rate = self.oracle.rate(name, now_us)
            if rate > 0 and self._is_any_wanted(name):
                left_us = int(max(0, limit - self.spent(name)) / rate) - 4 * step_us
                stride_us = min(stride_us, max(step_us, left_us))
        with self.database.read() as tx:
            due = tx.one("SELECT MIN(due_us) FROM purchase WHERE ended = 0")
        if due and due[0] is not None and due[0] > now_us:
            stride_us = min(stride_us, int(due[0]) - now_us)
        return max(stride_us, 1)

    def _is_any_wanted(self, project: str) -> bool:
        return any(
            life.project == project and life.wanted == "running" and life.phase != "failed"
            for life in self.oracle.lives.values()
        )

    # -- what is watched ---------------------------------------------------------------------------------------

    def spent(self, project: str) -> int:
        """Return the oracle's cost: of this month with a budget, of all time with prepayment."""
        month = f"{self.clock.now():%Y-%m}"
        from_us, until_us = month_bounds(month)
        usage = sum(
            self.oracle.cost(id, self.now_us, from_us, until_us)
            for id, life in self.oracle.lives.items()
            if life.project == project
        )
        with self.database.read() as tx:
            fees = tx.one(
                "SELECT COALESCE(SUM(t.fee_micros), 0) FROM purchase_term t JOIN purchase p ON p.id = t.purchase_id"
                " WHERE p.project_id = :project AND t.from_us >= :a AND t.from_us < :b",
                project=self.id(project), a=from_us, b=until_us,
            )  # fmt: skip
        return usage + int(fees[0] if fees else 0)

    def instalments_since(self, project: str, us: int) -> int:
        """Return the instalments of reservations, which are due whatever the budget."""
        with self.database.read() as tx:
            row = tx.one(
                "SELECT COALESCE(SUM(t.fee_micros), 0) FROM purchase_term t JOIN purchase p ON p.id = t.purchase_id"
                " WHERE p.project_id = :project AND t.kind = 'continued' AND t.from_us >= :us",
                project=self.id(project), us=us,
            )  # fmt: skip
        return int(row[0]) if row else 0

    def limits(self) -> dict[str, int]:
        """Return the hard budgets by project."""
        with self.database.read() as tx:
            rows = tx.all("SELECT project_id, micros FROM budget WHERE hard_stop = 1")
        return {self.names[row[0]]: int(row[1]) for row in rows}

    # -- what tenants and operators do ---------------------------------------------------------------------------

    def launch(
        self,
        project: str,
        shape: ShapeWish,
        count: int,
        mode: str,
        label: str,
        who: int,
        time_limit_seconds: int | None = None,
    ) -> None:
        self._named += 1
        order = Order(
            name=f"one-{self._named}", shape=shape, instances=count, mode=mode, labels={"team": label},
            time_limit_seconds=time_limit_seconds, delete_when_done=bool(time_limit_seconds) and self._named % 2 == 0,
        )  # fmt: skip
        self.ask(lambda: self.service.launch(self.actors[who], self.projects[project], order))

    def rent(
        self, project: str, mode: str, policy: RestartPolicy | None, time_limit_seconds: int | None
    ) -> None:
        """Launch on a machine of the simulated cloud."""
        self._named += 1
        order = Order(
            name=f"one-{self._named}", site=SKY, type="gpu", mode=mode, labels={"team": "sky"}, restart_policy=policy,
            bid_micros_per_hour=500_000 if mode == "bid" else None, time_limit_seconds=time_limit_seconds,
        )  # fmt: skip
        self.ask(lambda: self.service.launch(self.actors[0], self.projects[project], order))
        self.count["rented"] += 1

    def act(self, act: str, instance: Instance) -> None:
        call, project = getattr(self.service, act), self.projects[self.names[instance.project_id]]
        self.ask(lambda: call(self.actors[0], project, instance.id))

    def resize(self, instance: Instance, wish: ShapeWish) -> None:
        project = self.projects[self.names[instance.project_id]]
        self.ask(lambda: self.service.resize(self.actors[0], project, instance.id, wish))

    def label(self, instance: Instance, team: str | None) -> None:
        project = self.projects[self.names[instance.project_id]]
        self.ask(lambda: self.service.label(self.actors[0], project, instance.id, {"team": team}))

    def snapshot(self, instance: Instance) -> None:
        self._named += 1
        project = self.projects[self.names[instance.project_id]]
        self.ask(
            lambda: self.service.snapshots.create(self.actors[0], project, instance.id, f"kept-{self._named}")
        )

    def send(self, instance: Instance, size: int) -> None:
        """Send at most this much: the engine may fail or the server may die before or after the guest sent
        it."""
        self.sent_bytes[instance.id] += size
        self.ask(lambda: self.service.guests.run(instance.project_id, instance.id, ("send", str(size))))

    def move_host(self, host: str, region: str) -> None:
        self.ask(lambda: self.service.set_region(self.actors[0], host, region))
        self.count["region changes"] += 1

    def pay(self, project: str, micros: int) -> None:
        if self._is_done(lambda: self.bills.invoices.pay_in(self.id(project), micros)):
            self.paid[project] += micros

    def give(self, project: str, micros: int) -> None:
        if self._is_done(lambda: self.bills.credits.grant(self.id(project), micros, "gift")):
            self.given[project] += micros

    def _is_done(self, act: Callable[[], object]) -> bool:
        """Check whether a single write was done: a process that dies after its commit has done it."""
        try:
            act()
        except Killed:
            self.count["kills"] += 1
            self.boot()
            return self.database.dies_after_commit
        return True

    def host_of(self, instance: Instance) -> str:
        with self.database.read() as tx:
            row = tx.one("SELECT name FROM host WHERE id = :id", id=instance.host_id or "")
        return str(row[0]) if row else ""

    def instances_there(self) -> list[Instance]:
        return [
            view.instance
            for project in self.projects.values()
            for view in self.service.page(project.id, limit=100)
        ]

    def set_prices(self, gpu: int, part: int, minimum: int, off: int) -> None:
        text = price_book.text(gpu, part, minimum, off)
        periods: Any = self.ask(partial(self.bills.prices.take, text, name="book", member="mem_1"))
        with self.database.read() as tx:
            row = tx.one("SELECT from_us, version FROM price_period ORDER BY version DESC LIMIT 1")
        # Imported, although the process may have died afterwards.
        if row and int(row[1]) > len(self.oracle.prices):
            self.count["price changes"] += 1
            self.oracle.prices.append(price_book.price(int(row[0]), gpu, part, minimum, off))
        assert periods is None or periods[0].from_us == self.oracle.prices[-1].from_us

    def buy(self, instance: Instance, *, reserved: bool, upfront: bool) -> None:
        mode: Any = "reserved" if reserved else "monthly"
        self.ask(
            lambda: self.bills.purchases.buy(
                instance.project_id, instance.id, mode, years=int(reserved), upfront=reserved and upfront
            )
        )

    def change_purchase(self, pick: int, act: str) -> None:
        with self.database.read() as tx:
            rows = tx.all("SELECT project_id, id FROM purchase WHERE ended = 0 ORDER BY id")
        if rows:
            project, id = rows[pick % len(rows)]
            self.ask(lambda: getattr(self.bills.purchases, act)(project, id))

    def set_budget(self, project: str, micros: int, hard_stop: bool, notice: int) -> None:
        budget = Budget(
            project_id=self.id(project),
            currency="",
            micros=micros,
            hard_stop=hard_stop,
            notice_seconds=notice,
        )
        self.ask(lambda: self.bills.budgets.set(budget))
        self.watch.forget(project)

    def learn_covers(self) -> None:
        """Read what purchases cover from their terms. Their fees are checked separately."""
        with self.database.read() as tx:
            rows = tx.all(
                "SELECT instance_id, purchase_id, kind, from_us, until_us, gpu, gpus, vcpus, ram_bytes, disk_bytes"
                " FROM purchase_term ORDER BY purchase_id, sequence"
            )
        self.oracle.covers.clear()
        for row, later in zip(rows, [*rows[1:], None], strict=False):
            id, purchase, kind, from_us, until_us, *held = row
            if later and later[1] == purchase:
                until_us = min(until_us, later[3])
            if kind != "ended" and until_us > from_us:
                cover = Cover(from_us=from_us, until_us=until_us, held=tuple(held))
                self.oracle.covers.setdefault(id, []).append(cover)
