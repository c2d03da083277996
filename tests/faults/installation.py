"""A whole installation in one process: a database, a simulated world, workers that can die, and a clock to
move.

Nothing runs by itself: a test decides what runs next. The same seed therefore repeats the same run.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any, Self

from teraflock.app.wiring import used_lately
from teraflock.base.clock import Clock, FixedClock
from teraflock.bill.floors import card_floors
from teraflock.drivers.simulated.cloud import SimulatedCloud
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld, World
from teraflock.image.service import ImageService
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.instance.lease import store as leases
from teraflock.instance.model import Instance
from teraflock.instance.service import InstanceService
from teraflock.network.balancer.service import BalancerService, Hosting
from teraflock.reconcile.balancers import BalancerLoop
from teraflock.reconcile.bids import BidLoop
from teraflock.reconcile.commands import CommandLoop
from teraflock.reconcile.draining import DrainLoop
from teraflock.reconcile.drift import DriftLoop
from teraflock.reconcile.hosts import HostLoop
from teraflock.reconcile.images import ImageLoop
from teraflock.reconcile.instances import InstanceLoop
from teraflock.reconcile.loops import WORKER_TIME
from teraflock.reconcile.moving import MoveLoop
from teraflock.reconcile.queue import QueueLoop
from teraflock.reconcile.slices import SliceLoop
from teraflock.reconcile.surroundings import Surroundings
from teraflock.reconcile.time_limits import TimeLimitLoop
from teraflock.storage.database import Database
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.service import TenantService

HOSTS = "2x2xV100,1x0"
SKY = "sky"
TYPES = "gpu=1xV100@east:0.90/0.30,west:1.00/0.40; cpu=0@east:0.05"
ROUNDS_MAX = 200
BOOT_SECONDS = 0.4


class Tenant:
    """The first project of an installation, and its actor."""

    def __init__(self, database: Database, clock: Clock, random_bytes: Callable[[int], bytes]) -> None:
        tenants = TenantService(database, clock, random_bytes)
        self.mark = tenants.install().installation_id
        self.secret = tenants.operator_key().secret
        self.actor: Actor = tenants.authenticate(self.secret)
        self.project: Project = tenants.projects.show(self.actor, None)


class Worker:
    """The loops of one process. It dies after `dies_in` more beginnings or ends of steps."""

    def __init__(self, installation: "Installation", name: str) -> None:
        self._installation = installation
        self.name = name
        self.in_hand: list[Instance] = []
        self.dies_in: int | None = None
        self.dies_at = ""
        self.befalls: Callable[[str], None] = lambda point: None
        """Called at every point of every operation."""
        self._alive_until = installation.clock.now()
        self.around = around = Surroundings(
            database=installation.database,
            clock=installation.clock,
            engines=installation.engines,
            random_bytes=installation.random_bytes,
        )
        self.instances = InstanceLoop(
            around,
            worker=name,
            fault=self._reach,
            pause=installation.wait,
            alive=lambda: installation.clock.now() < self._alive_until,
        )
        self.hosts = HostLoop(around)
        self.drift = DriftLoop(around)
        self.commands = CommandLoop(around)
        self.images = ImageLoop(around)
        self.time_limits = TimeLimitLoop(around)
        self.moves = MoveLoop(around)
        self.slices = SliceLoop(around)
        self.drains = DrainLoop(around)
        self.queue = QueueLoop(around, installation.service.queue)
        self.balancers = BalancerLoop(around, lambda sealed, id: sealed)
        self.bids = BidLoop(around, installation.service.queue, installation.service.bids, card_floors)

    def beat(self) -> None:
        now = self._installation.clock.now()
        self._installation.database.write(lambda tx: leases.heartbeat(tx, self.name, now + WORKER_TIME, now))
        self._alive_until = now + WORKER_TIME

    def lease(self) -> None:
        self.in_hand += self.instances.lease()

    def advance(self) -> None:
        """Advance one leased instance as far as it goes."""
        if self.in_hand:
            self.instances.advance(self.in_hand.pop(0))

    def look(self) -> None:
        for loop in (
            self.slices, self.hosts, self.images, self.drift, self.moves, self.drains, self.queue, self.bids,
            self.commands, self.time_limits, self.balancers,
        ):  # fmt: skip
            loop.turn()

    def turn(self) -> None:
        self.beat()
        self.lease()
        while self.in_hand:
            self.advance()

    def _reach(self, point: str) -> None:
        self.befalls(point)
        if self.dies_in is not None:
            self.dies_in -= 1
        if self.dies_in == 0 or point == self.dies_at:
            raise Killed(point)


class Installation:
    """An installation with own hosts and, if a world is given for it, a simulated cloud named `sky`."""

    engine_class: type[SimulatedEngine] = SimulatedEngine

    def __init__(
        self,
        database: Database,
        world: World,
        clock: FixedClock,
        *,
        seed: int = 0,
        sky: World | None = None,
        **of_sky: Any,
    ) -> None:
        self.database = database
        self.world = world
        self.clock = clock
        self.random_bytes = Random(seed).randbytes
        self.tenant = Tenant(database, clock, self.random_bytes)
        self.trouble = Trouble(world)
        self.engine = self.engine_class(
            world, clock, fleet(HOSTS), mark=self.tenant.mark, boot_seconds=BOOT_SECONDS
        )
        self.sky_world = sky or MemoryWorld()
        self.sky_trouble = Trouble(self.sky_world)
        self.sky = SimulatedCloud(
            self.sky_world,
            clock,
            **{
                "types": TYPES,
                "site": SKY,
                "mark": self.tenant.mark,
                "boot_seconds": BOOT_SECONDS,
                "launch_seconds": 5,
                **of_sky,
            },
        )
        drivers: list[ComputeDriver] = [self.engine, self.sky] if sky else [self.engine]
        self.engines = Engines(drivers, for_all=[SKY])
        self.service = InstanceService(
            database, clock, self.engines, random_bytes=self.random_bytes, read_prices=card_floors,
            used_by=used_lately,
        )  # fmt: skip
        self.images = ImageService(
            database, clock, publish=self.service.publish, random_bytes=self.random_bytes
        )
        self.balancers = BalancerService(database, clock, Hosting(can=self.owns), self.random_bytes)
        self._named = 0
        self.workers = [self.hire(), self.hire()]
        self.images.build(self.tenant.actor, self.tenant.project, "base", "base")
        self.workers[0].look()

    @classmethod
    def in_memory(cls, at: datetime, *more: Any, **words: Any) -> Self:
        """An installation with a new database and new hosts, all in memory."""
        clock, database = FixedClock(at), MemoryDatabase()
        migrate(database, clock)
        return cls(database, MemoryWorld(), clock, *more, **words)

    def hire(self) -> Worker:
        self._named += 1
        worker = Worker(self, f"worker-{self._named}")
        worker.beat()
        return worker

    def owns(self, site: str) -> bool:
        return site == self.engine.site

    def wait(self, seconds: float) -> None:
        self.clock.move(timedelta(seconds=seconds))

    def survive(self, work: Callable[[], None], worker: int) -> bool:
        """Run it. If a worker dies, replace it with a new one without any state."""
        try:
            work()
        except Killed:
            self.workers[worker] = self.hire()
            return False
        return True

    def settle(self) -> None:
        """Remove all faults and pass time until nothing is due and nothing drifts."""
        self.trouble.no_more_faults()
        self.trouble.engine_comes_back()
        self.sky_trouble.all_is_well()
        for report in fleet(HOSTS):
            self.trouble.host_comes_back(report.name, rebooted=False)
            self.trouble.pool_is_full(report.name, full=False)
        for worker in self.workers:
            worker.in_hand, worker.dies_in, worker.dies_at = [], None, ""
        self.workers = [self.hire(), self.hire()]
        self.wait(2 * WORKER_TIME.total_seconds())
        quiet = 0
        for _ in range(ROUNDS_MAX):
            for worker in self.workers:
                worker.beat()
                worker.look()
                worker.turn()
            quiet = quiet + 1 if self.idle() else 0
            if quiet == 3:  # two readings of hosts, and one of what they have
                return
            self.wait(1)
        raise AssertionError("the installation does not become idle")

    def idle(self) -> bool:
        with self.database.read() as tx:
            return leases.next_due_in_all_projects(tx) is None and not tx.one(
                "SELECT 1 FROM instance WHERE settled = 0"
            )
