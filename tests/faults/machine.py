"""Random requests of a tenant together with random faults, with two workers that take turns and die.

In every case, an undisturbed installation becomes idle with its database and the engine in agreement
(`checker.py`).
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.faults.checker import charged_on_lost_hosts, faults
from tests.faults.installation import SKY, Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.simulated.faults import Kind, SimulatedFault, When
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.driver import GRACE
from teraflock.instance.model import Access, Instance, RestartPolicy
from teraflock.instance.orders import Order, ShapeWish
from teraflock.network.balancer.model import BalancerOrder
from teraflock.storage.database import Database
from teraflock.storage.open import open_database

START = datetime(2026, 11, 15, tzinfo=UTC)
CALLS = (
    "prepare", "create", "start", "expose", "ready", "hide", "stop", "delete", "resize", "snapshot", "restore",
    "publish", "sightings", "hosts", "balance", "all_sent", "*",
)  # fmt: skip
FAULTS = st.builds(
    SimulatedFault,
    call=st.sampled_from(CALLS),
    when=st.sampled_from(When),
    kind=st.sampled_from(sorted(set(Kind) - {Kind.LATER})),
    times=st.integers(1, 3),
)
SHAPES = st.sampled_from(
    [
        ShapeWish(),
        ShapeWish(vcpus=4, ram_bytes=8 << 30),
        ShapeWish(gpu="V100"),
        ShapeWish(gpu="V100", gpus=2),
        ShapeWish(vcpus=2, disk_bytes=32 << 30),
        ShapeWish(gpus=0),
    ]
)
WORKERS = st.integers(0, 1)
PICK = st.integers(0, 7)


class InstallationMachine(RuleBasedStateMachine):
    """`open_fresh` returns an empty database."""

    open_fresh: Callable[[FixedClock], Database]

    @initialize(seed=st.integers(0, 3), shapes=st.lists(SHAPES, max_size=3))
    def move_in(self, seed: int, shapes: list[ShapeWish]) -> None:
        clock = FixedClock(START)
        self.installation = Installation(
            type(self).open_fresh(clock),
            MemoryWorld(),
            clock,
            seed=seed,
            sky=MemoryWorld(),
            tokens=seed % 2 == 0,
            listing_seconds=5 * (seed // 2),
        )
        self.named = 0
        for shape in shapes:
            self.launch(shape, 1, False)
        self.installation.workers[0].turn()

    # What tenants do

    @rule(shape=SHAPES, count=st.integers(1, 2), command=st.booleans())
    def launch(self, shape: ShapeWish, count: int, command: bool) -> None:
        self.named += 1
        order = Order(
            name=f"one-{self.named}",
            shape=shape,
            instances=count,
            access=Access.COMMAND if command else Access.SSH,
            command=("sleep", "3") if command else (),
        )
        tenant = self.installation.tenant
        self._ask(lambda: self.installation.service.launch(tenant.actor, tenant.project, order))

    @rule(
        mode=st.sampled_from(["on-demand", "spot"]),
        policy=st.sampled_from([None, *RestartPolicy]),
        command=st.booleans(),
    )
    def rent(self, mode: str, policy: RestartPolicy | None, command: bool) -> None:
        self.named += 1
        order = Order(
            name=f"far-{self.named}",
            site=SKY,
            type="gpu",
            mode=mode,
            restart_policy=policy,
            access=Access.COMMAND if command else Access.SSH,
            command=("sleep", "3") if command else (),
        )
        tenant = self.installation.tenant
        self._ask(lambda: self.installation.service.launch(tenant.actor, tenant.project, order))

    @rule(pick=PICK, act=st.sampled_from(["start", "stop", "start", "stop", "restart", "delete"]))
    def act(self, pick: int, act: str) -> None:
        if name := self._pick(pick):
            call = getattr(self.installation.service, act)
            self._ask(lambda: call(self.installation.tenant.actor, self.installation.tenant.project, name))

    @rule(pick=PICK, shape=SHAPES)
    def resize(self, pick: int, shape: ShapeWish) -> None:
        if name := self._pick(pick):
            tenant = self.installation.tenant
            self._ask(lambda: self.installation.service.resize(tenant.actor, tenant.project, name, shape))

    @rule(pick=PICK, what=st.sampled_from(["snapshot", "snapshot", "restore", "delete_snapshot", "publish"]))
    def keep(self, pick: int, what: str) -> None:
        service, tenant = self.installation.service, self.installation.tenant
        if not (name := self._pick(pick)):
            return
        self.named += 1
        made = f"kept-{self.named}"
        if what == "snapshot":
            words = ("fill", f"{self.named}GB")
            self._ask(lambda: service.guests.run(tenant.project.id, name, words))
            self._ask(lambda: service.snapshots.create(tenant.actor, tenant.project, name, made))
        elif what == "publish":
            self._ask(
                lambda: self.installation.images.from_instance(tenant.actor, tenant.project, made, name)
            )
        elif there := service.snapshots.page(tenant.project.id, name):
            use = service.snapshots.restore if what == "restore" else service.snapshots.delete
            self._ask(lambda: use(tenant.actor, tenant.project, name, there[0].id))

    @rule(pick=PICK, what=st.sampled_from(["create", "create", "delete", "add", "remove"]))
    def balance(self, pick: int, what: str) -> None:
        balancers, tenant, name = self.installation.balancers, self.installation.tenant, f"front-{pick % 2}"
        instance = self._pick(pick)
        if what == "create":
            order = BalancerOrder(name=name, port=80, label="app=web", publish=pick < 4)
            self._ask(lambda: balancers.create(tenant.actor, tenant.project, order))
        elif what == "delete":
            self._ask(lambda: balancers.delete(tenant.actor, tenant.project, name))
        elif instance:
            change = balancers.add if what == "add" else balancers.remove
            self._ask(lambda: change(tenant.actor, tenant.project, name, (instance,)))

    # What the loops do

    @rule(worker=WORKERS, rounds=st.integers(1, 3))
    def work(self, worker: int, rounds: int) -> None:
        for _ in range(rounds):
            at = self.installation.workers[worker]
            at.beat()
            if self.installation.survive(at.look, worker):
                self.installation.survive(at.turn, worker)
            self.installation.wait(1)

    @rule(worker=WORKERS)
    def work_more(self, worker: int) -> None:
        self.work(worker, 2)

    @rule(worker=WORKERS, what=st.sampled_from(["lease", "advance", "look", "turn"]))
    def work_a_little(self, worker: int, what: str) -> None:
        """Keep the leases: the other worker may run before the leased instances are advanced."""
        at = self.installation.workers[worker]
        at.beat()
        self.installation.survive(getattr(at, what), worker)

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0, 7.0, 130.0]))
    def wait(self, seconds: float) -> None:
        self.installation.wait(seconds)
        for worker in self.installation.workers:
            worker.beat()

    @rule(worker=WORKERS, seconds=st.sampled_from([7.0, 20.0]))
    def sleep_through(self, worker: int, seconds: float) -> None:
        """A worker that is considered dead wakes up, and releases its leases before its next heartbeat."""
        sleeper, other = self.installation.workers[worker], self.installation.workers[1 - worker]
        sleeper.lease()
        self.installation.wait(seconds)
        other.beat()
        self.installation.survive(other.turn, 1 - worker)
        while sleeper.in_hand:
            self.installation.survive(sleeper.advance, worker)

    # What goes wrong

    @rule(worker=WORKERS, steps=st.integers(0, 12))
    def die(self, worker: int, steps: int) -> None:
        """End the worker at once, or after this many more beginnings or ends of steps."""
        if steps:
            self.installation.workers[worker].dies_in = steps
        else:
            self.installation.workers[worker] = self.installation.hire()

    @rule(fault=FAULTS, more=st.booleans())
    def fault(self, fault: SimulatedFault, more: bool) -> None:
        if not more:
            self.installation.trouble.no_more_faults()
        self.installation.trouble.faults(fault)

    @rule(fault=FAULTS, more=st.booleans())
    def fault_in_the_sky(self, fault: SimulatedFault, more: bool) -> None:
        if not more:
            self.installation.sky_trouble.no_more_faults()
        self.installation.sky_trouble.faults(fault)

    @rule(what=st.sampled_from(["well", "locked", "broke", "sold out", "quota", "down"]))
    def trouble_in_the_sky(self, what: str) -> None:
        trouble = self.installation.sky_trouble
        acts: dict[str, Callable[[], None]] = {
            "well": trouble.all_is_well,
            "locked": trouble.locked_out,
            "broke": trouble.runs_out_of_money,
            "sold out": lambda: trouble.sold_out("east"),
            "quota": lambda: trouble.quota(1),
            "down": trouble.engine_goes_down,
        }
        acts[what]()

    @rule(
        pick=PICK,
        seconds=st.sampled_from([0, 0, 30]),
        what=st.sampled_from(["taken_back", "stopped", "deleted"]),
    )
    def interrupt(self, pick: int, seconds: int, what: str) -> None:
        with self.installation.sky_world.read() as turn:
            ids = [each.machine.handle.instance_id for each in turn.every(Guest)]
        if not ids:
            return
        trouble, id = self.installation.sky_trouble, ids[pick % len(ids)]
        if what == "taken_back":
            trouble.taken_back(id, self.installation.clock.now() + timedelta(seconds=seconds))
        else:
            (trouble.stopped_by_hand if what == "stopped" else trouble.deleted_by_hand)(id)

    @rule(what=st.sampled_from(["away", "back", "rebooted", "down", "up", "full", "room"]), pick=PICK)
    def trouble(self, what: str, pick: int) -> None:
        trouble, host = self.installation.trouble, f"simulated-{pick % 3 + 1:04d}"
        if what in ("down", "up"):
            (trouble.engine_goes_down if what == "down" else trouble.engine_comes_back)()
        elif what in ("full", "room"):
            trouble.pool_is_full(host, full=what == "full")
        elif what == "away":
            trouble.host_goes_away(host)
        else:
            trouble.host_comes_back(host, rebooted=what == "rebooted")

    @rule(pick=PICK, vcpus=st.integers(1, 9), ram=st.integers(1, 9))
    def meddle_with_limits(self, pick: int, vcpus: int, ram: int) -> None:
        if ids := self._on_engine():
            self.installation.trouble.limits_changed_by_hand(
                ids[pick % len(ids)], vcpus=vcpus, ram_bytes=ram << 30
            )

    @rule(
        pick=PICK, what=st.sampled_from(["stopped_by_hand", "deleted_by_hand", "dies", "cards_taken_by_hand"])
    )
    def meddle(self, pick: int, what: str) -> None:
        if ids := self._on_engine():
            getattr(self.installation.trouble, what)(ids[pick % len(ids)])

    @invariant()
    def nothing_is_charged_on_lost_hosts(self) -> None:
        if hasattr(self, "installation"):
            wrong = charged_on_lost_hosts(self.installation.database)
            assert not wrong, "\n".join(wrong)

    @rule(pick=PICK, points=st.integers(1, 8))
    def lose_host_in_the_middle(self, pick: int, points: int) -> None:
        """Lose the host of the current operation, and let the loops notice it."""
        host, left = f"simulated-{pick % 3 + 1:04d}", [points]

        def befalls(point: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                self.installation.trouble.host_goes_away(host)

        for number, worker in enumerate(self.installation.workers):
            worker.befalls = befalls
            worker.beat()
            self.installation.survive(worker.turn, number)
            worker.befalls = lambda point: None
        for _ in range(2):
            self.installation.survive(self.installation.workers[0].look, 0)

    def _on_engine(self) -> list[str]:
        with self.installation.world.read() as turn:
            return [guest.key for guest in turn.every(Guest)]

    # The end

    def teardown(self) -> None:
        if not hasattr(self, "installation"):
            return
        installation = self.installation
        try:
            self._settle()
            self._check()
            self._leave()
        finally:
            installation.database.close()

    def _leave(self) -> None:
        """Delete everything, and check that nothing is left."""
        installation = self.installation
        for shown in installation.balancers.all(installation.tenant.project):
            installation.balancers.delete(
                installation.tenant.actor, installation.tenant.project, shown.balancer.id
            )
        for view in installation.service.page(installation.tenant.project.id, limit=200):
            installation.service.delete(
                installation.tenant.actor, installation.tenant.project, view.instance.id
            )
        self._settle()
        self._check()
        assert list(installation.engine.sightings()) == []
        assert list(installation.sky.sightings()) == []
        with installation.database.read() as tx:
            assert tx.all("SELECT port FROM host_port") == []
            assert tx.all("SELECT slot FROM host_gpu WHERE instance_id IS NOT NULL") == []
            assert tx.all("SELECT id FROM instance WHERE phase <> 'gone'") == []
            assert tx.all("SELECT id FROM balancer") == []

    def _settle(self) -> None:
        """Settle twice: a missing machine counts as lost only after a while."""
        self.installation.settle()
        self.installation.wait(GRACE.total_seconds())
        self.installation.settle()

    def _check(self) -> None:
        installation = self.installation
        wrong = faults(
            installation.database, installation.world, installation.clock.now(), installation.sky_world
        )
        assert not wrong, "\n".join(wrong)

    def _pick(self, pick: int) -> str | None:
        found: list[Instance] = [
            view.instance
            for view in self.installation.service.page(self.installation.tenant.project.id, limit=50)
        ]
        return found[pick % len(found)].id if found else None

    def _ask(self, call: Callable[[], "tuple[str, ...] | object"]) -> tuple[str, ...] | None:
        """A tenant may get an error with a sentence; anything else is a bug."""
        try:
            made = call()
        except TeraflockError as refusal:
            note(f"refused: {refusal.sentence}")
            return None
        return made if isinstance(made, tuple) else None


def fresh_sqlite(clock: FixedClock) -> Database:
    folder = TemporaryDirectory(prefix="tera-faults-")
    database = open_database(f"sqlite:///{Path(folder.name) / 'cloud.db'}", clock)
    close = database.close

    def close_all() -> None:
        close()
        folder.cleanup()

    database.close = close_all  # type: ignore[method-assign]
    return database
