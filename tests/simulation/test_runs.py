"""Many runs on simulated hosts, with seeded failures: none is lost, none runs twice, and the bill is right."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.faults.installation import Worker
from tests.faults.run_installation import RunInstallation
from tests.faults.test_runs import result
from tests.simulation import price_book
from tests.simulation.crashing_database import CrashingDatabase
from tests.simulation.observer import Observer, WatchedEngine
from tests.simulation.oracle import Oracle
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock, microseconds
from teraflock.base.errors import TeraflockError
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Wanted
from teraflock.reconcile.bills import BillLoop
from teraflock.run.guard import CHANGEOVER_HOURS, TICK_HOURS, needs_steady
from teraflock.run.model import Run, RunEstimate, RunId
from teraflock.run.nodes import nodes_of
from teraflock.run.rules import is_over
from teraflock.run.states import RunPhase
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate
from teraflock.tenant.model import ProjectId

pytestmark = pytest.mark.long("many runs; tests/faults/test_runs.py has each failure on its own")

PRICES = (3_000_000, 100_000, 0, 10)
"""Without a minimum, which instances that were made to leave do not pay."""
HOSTS = [report.name for report in fleet("2x2xV100,1x0")]


class Names(dict[str, str]):
    """All projects are one to the oracle."""

    def __missing__(self, id: str) -> str:
        return "default"


class StormInstallation(RunInstallation):
    """Tells an observer what its hosts answer."""

    engine_class = WatchedEngine

    def __init__(self, observer: Observer, *words: Any, **more: Any) -> None:
        self._observer = observer
        super().__init__(*words, **more)

    def hire(self) -> Worker:
        worker, engine = super().hire(), self.engine
        assert isinstance(engine, WatchedEngine)
        turn = worker.hosts.turn

        def watched() -> None:
            engine.forget()
            turn()
            self._observer.read_hosts(engine.read, self.database)

        self._observer.began()
        setattr(worker.hosts, "turn", watched)  # noqa: B010  # mypy refuses to assign a method
        return worker


class Storm:
    def __init__(self, seed: int, folder: Path, *, bids: bool = False) -> None:
        """`bids`: others also bid. The oracle does not know what bids cost; the proof of the bill does."""
        self.draw = Random(seed)
        self.bids = bids
        self.clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
        inner = MemoryDatabase()
        migrate(inner, self.clock)
        self.oracle = Oracle()
        self.observer = Observer(
            self.oracle, Names(), lambda: microseconds(self.clock.now()), lambda instance: None
        )
        database = CrashingDatabase(inner, self.observer.look, self.observer.saw)
        self.installation = StormInstallation(
            self.observer, database, MemoryWorld(), self.clock, folder, seed=seed
        )
        self.bills = BillService(database, self.clock, RATES, self.installation.random_bytes)
        (period,) = self.bills.prices.take(price_book.text(*PRICES), name="prices.yaml", member="mem")
        self.oracle.prices.append(price_book.price(period.from_us, *PRICES))
        self.billing = BillLoop(self.bills, self.clock)
        self.installation.fault = self.crash
        self.kills = 0
        self.away: list[str] = []
        self.excused: set[str] = set()
        """Runs that failures or missing room hit: their lateness says nothing about the guard."""
        self.intruders: list[str] = []
        self.count: Counter[str] = Counter()
        self.seen: dict[RunId, Run] = {}
        """The runs after the last turn."""

    def turn(self) -> None:
        self.installation.turn(self.draw.choice((1, 2, 5, 8)))
        self.look()

    def look(self) -> None:
        found = self.installation.runs.page(
            self.installation.tenant.project.id, before="", limit=1000, active=False
        )
        self.seen = {run.id: run for run in reversed(found)}

    def intrude(self) -> None:
        """Others launch on demand, which takes the cards of spot runs, and delete their instances again."""
        installation, lot = self.installation, self.draw.random()
        tenant, service = installation.tenant, installation.service
        if lot < 0.15 and len(self.intruders) < 3:
            name = f"other-{self.draw.getrandbits(40)}"
            mode, bid = "on-demand", None
            if self.bids and self.draw.random() < 0.3:
                mode, bid = "bid", 3_000_000
            order = Order(name=name, shape=ShapeWish(gpu="V100"), mode=mode, bid_micros_per_hour=bid)
            with suppress(TeraflockError):
                service.launch_or_queue(tenant.actor, tenant.project, order)
                self.intruders.append(name)
        elif lot < 0.20 and self.intruders:
            name = self.intruders.pop(self.draw.randrange(len(self.intruders)))
            for act in (service.delete, service.queue.cancel):
                with suppress(TeraflockError):
                    act(tenant.actor, tenant.project, name)

    def leave(self) -> None:
        tenant, service = self.installation.tenant, self.installation.service
        for name in self.intruders:
            for act in (service.delete, service.queue.cancel):
                with suppress(TeraflockError):
                    act(tenant.actor, tenant.project, name)

    def excuse(self) -> None:
        """A run that must be on demand and finds no room cannot be saved by the guard."""
        for run in self.seen.values():
            waits = run.phase == RunPhase.QUEUED and run.problem.startswith("Waiting: There is no room")
            if waits and needs_steady(run, self.installation.clock.now()):
                self.excused.add(run.id)

    def crash(self, point: str) -> None:
        if self.draw.random() < 0.02:
            self.kills += 1
            raise Killed(point)

    def strike(self) -> None:
        """Something happens to a guest, a host or a run, or nothing."""
        installation, lot = self.installation, self.draw.random()
        alive = [each for each in self.seen.values() if each.instance_id and not is_over(each)]
        if lot < 0.05 and alive:
            struck = self.draw.choice(alive)
            self.excused.add(struck.id)
            victim = self.draw.choice(nodes_of(struck)).instance_id
            acts: list[Callable[[str], None]] = [
                installation.trouble.dies,
                installation.trouble.deleted_by_hand,
            ]
            with suppress(TeraflockError):  # it is not there yet, or not any more
                self.draw.choice(acts)(victim)
        elif lot < 0.06:
            self.away.append(host := self.draw.choice(HOSTS))
            self.excused |= set(self.seen)
            installation.trouble.host_goes_away(host)
        elif lot < 0.10 and self.away:
            installation.trouble.host_comes_back(self.away.pop(), rebooted=self.draw.random() < 0.5)

    def none_runs_twice(self) -> None:
        """A living program belongs to the instance of its run, or to one that is being deleted. One for each."""
        now = {id: {node.instance_id for node in nodes_of(run)} for id, run in self.seen.items()}
        with self.installation.world.read() as turn:
            guests = [each for each in turn.every(Guest) if each.running]
        for guest in guests:
            living = [
                key.rpartition(".")[0]
                for key, program in guest.disk.programs.items()
                if program.exit_code is None and program.start == guest.starts
            ]
            assert len(living) <= 1
            if living and guest.machine.id not in now[RunId(living[0])]:  # it was left, and is being deleted
                view = self.installation.service.view(self.installation.tenant.project.id, guest.machine.id)
                assert view.instance.wanted == Wanted.GONE


@pytest.mark.parametrize("seed", range(8))
def test_no_run_is_lost_or_run_twice_and_the_bill_is_right(seed: int, tmp_path: Path) -> None:
    storm = simulated(seed, tmp_path, runs=12)
    assert storm.kills > 6, "the server died often"


@pytest.mark.parametrize("seed", range(100, 104))
def test_no_run_on_spot_is_late_that_the_guard_could_save(seed: int, tmp_path: Path) -> None:
    storm = simulated(seed, tmp_path, runs=12, spot=True)
    assert storm.kills > 6, "the server died often"
    assert storm.count["notices"] > 0, "others took cards"


def simulated(seed: int, folder: Path, *, runs: int, spot: bool = False) -> Storm:
    """Carry runs through a storm, and check what must hold of each. `spot`: on idle cards, with deadlines."""
    storm = Storm(seed, folder, bids=spot and seed % 4 == 0)
    installation, draw = storm.installation, storm.draw
    made: list[Run] = []
    lengths = {}
    for number in range(runs):
        length = draw.randint(10, 240 if spot else 120)
        terms = _terms(storm, length) if spot and draw.random() < 0.8 else {}
        run = installation.ask(
            "train",
            str(length),
            "1",
            str(draw.randint(1, 20)),
            name=f"job-{number}",
            attempts_max=90,
            nodes=draw.choice((1, 1, 1, 2, 3)),
            **terms,
        )
        lengths[run.id] = length
        made.append(run)
    calm = spot and draw.random() < 0.7  # then only the market and the server's deaths
    for _ in range(4000):
        storm.turn()
        if not calm:
            storm.strike()
        if spot:
            storm.intrude()
            storm.excuse()
        storm.none_runs_twice()
        if all(map(is_over, storm.seen.values())):
            break
    storm.leave()
    for host in storm.away:
        installation.trouble.host_comes_back(host, rebooted=False)
    installation.fault = lambda point: None
    installation.settle()
    check_runs(storm, made, lengths)
    with installation.world.read() as turn:
        assert not turn.every(Guest), "nothing is left on the engine"
    check_bill(storm, made)
    with installation.database.read() as tx:
        kinds = [row[0] for row in tx.all("SELECT kind FROM event WHERE kind LIKE 'instance.%'")]
    storm.count = Counter({"runs": len(made), "kills": storm.kills, "excused": len(storm.excused)})
    storm.count["late"] = sum(_is_late(each) for each in map(installation.seen, made))
    storm.count["attempts"] = sum(installation.seen(each).attempt for each in made)
    storm.count["notices"] = kinds.count("instance.leaving")
    installation.database.close()
    return storm


def _is_late(run: Run) -> bool:
    return bool(run.spec.deadline and run.ended_at and run.ended_at > run.spec.deadline)


def _terms(storm: Storm, length: int) -> dict[str, Any]:
    """A run on spot with a deadline that a start on demand at once keeps easily."""
    hours = (length + 5) / 3600
    reserve = CHANGEOVER_HOURS + TICK_HOURS + 0.15
    deadline = storm.installation.clock.now() + timedelta(hours=hours + reserve + storm.draw.uniform(0, 0.5))
    return {
        "mode": "spot", "shape": ShapeWish(gpu="V100"), "deadline": deadline,
        "estimate": RunEstimate(hours=(hours, hours, hours)),
    }  # fmt: skip


def check_runs(storm: Storm, made: list[Run], lengths: dict[RunId, int]) -> None:
    installation = storm.installation
    for run in map(installation.seen, made):
        assert (run.phase, run.exit_code) == (RunPhase.DONE, 0), run.problem
        assert result(installation, run) == chain(lengths[run.id]).hex()
        if run.spec.deadline is not None and run.id not in storm.excused:
            assert not _is_late(run), f"{run.id} is late"


def check_bill(storm: Storm, runs: list[Run]) -> None:
    """What the runs cost is what the project pays, and what is computed again from the events."""
    installation = storm.installation
    for _ in range(5):
        installation.wait(60)
        storm.billing.turn()
    project = installation.tenant.project.id
    with installation.database.read() as tx:
        others = [row[0] for row in tx.all("SELECT id FROM instance WHERE name LIKE 'other-%'")]
    every = [others, *(list(run.instances) for run in map(installation.seen, runs))]
    costs = sum(each.micros for ids in every for each in storm.bills.costs(project, ids).values())
    now = installation.clock.now()
    bill = storm.bills.bill(project, f"{now:%Y-%m}")
    assert costs == bill.micros + bill.unbooked_micros > 0
    assert verify(installation.database).is_sound
    if not storm.bids:
        check_costs(storm, project)


def check_costs(storm: Storm, project: ProjectId) -> None:
    """Every instance cost what the oracle computes from what it observed, to the micro-unit."""
    booked = storm.bills.costs(project, list(storm.oracle.lives))
    now_us = microseconds(storm.clock.now())
    for id, life in storm.oracle.lives.items():
        assert booked[id].micros == storm.oracle.cost(id, now_us), (id, life)
