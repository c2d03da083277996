"""Many runs on simulated hosts, with seeded failures: none is lost, none runs twice, and the bill is right."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.faults.run_installation import RunInstallation
from tests.faults.test_quantities import BOOK
from tests.faults.test_runs import result
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
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

pytestmark = pytest.mark.long("many runs; tests/faults/test_runs.py has each failure on its own")

HOSTS = [report.name for report in fleet("2x2xV100,1x0")]


class Storm:
    def __init__(self, seed: int, folder: Path) -> None:
        self.draw = Random(seed)
        clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
        database = MemoryDatabase()
        migrate(database, clock)
        self.installation = RunInstallation(database, MemoryWorld(), clock, folder, seed=seed)
        self.bills = BillService(database, clock, RATES, self.installation.random_bytes)
        self.bills.prices.take(BOOK, name="prices.yaml", member="mem")
        self.billing = BillLoop(self.bills, clock)
        self.installation.fault = self.crash
        self.kills = 0
        self.away: set[str] = set()
        self.excused: set[str] = set()
        """Runs that failures or missing room hit: their lateness says nothing about the guard."""
        self.intruders: list[str] = []
        self.count: Counter[str] = Counter()

    def intrude(self) -> None:
        """Others launch on demand, which takes the cards of spot runs, and delete their instances again."""
        installation, lot = self.installation, self.draw.random()
        tenant, service = installation.tenant, installation.service
        if lot < 0.15 and len(self.intruders) < 3:
            name = f"other-{self.draw.getrandbits(40)}"
            mode, bid = self.draw.choice((("on-demand", None), ("on-demand", None), ("bid", 3_000_000)))
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

    def excuse(self, runs: list[Run]) -> None:
        """A run that must be on demand and finds no room cannot be saved by the guard."""
        for run in map(self.installation.seen, runs):
            waits = run.phase == RunPhase.QUEUED and run.problem.startswith("Waiting: There is no room")
            if waits and needs_steady(run, self.installation.clock.now()):
                self.excused.add(run.id)

    def crash(self, point: str) -> None:
        if self.draw.random() < 0.02:
            self.kills += 1
            raise Killed(point)

    def strike(self, runs: list[Run]) -> None:
        """Something happens to a guest, a host or a run, or nothing."""
        installation, lot = self.installation, self.draw.random()
        alive = [each for each in map(installation.seen, runs) if each.instance_id and not is_over(each)]
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
            self.away.add(host := self.draw.choice(HOSTS))
            self.excused |= {each.id for each in runs}
            installation.trouble.host_goes_away(host)
        elif lot < 0.10 and self.away:
            installation.trouble.host_comes_back(self.away.pop(), rebooted=self.draw.random() < 0.5)

    def none_runs_twice(self, runs: list[Run]) -> None:
        """A living program belongs to the instance of its run, or to one that is being deleted. One for each."""
        now = {run.id: {node.instance_id for node in nodes_of(self.installation.seen(run))} for run in runs}
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
    simulated(seed, tmp_path, runs=12)


@pytest.mark.parametrize("seed", range(100, 104))
def test_no_run_on_spot_is_late_that_the_guard_could_save(seed: int, tmp_path: Path) -> None:
    storm = simulated(seed, tmp_path, runs=12, spot=True)
    assert storm.count["notices"] > 0, "others took cards"


def simulated(seed: int, folder: Path, *, runs: int, spot: bool = False) -> Storm:
    """Carry runs through a storm, and check what must hold of each. `spot`: on idle cards, with deadlines."""
    storm = Storm(seed, folder)
    installation, draw = storm.installation, storm.draw
    made: list[Run] = []
    lengths = {}
    for number in range(runs):
        length = draw.randint(10, 300 if spot else 120)
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
        installation.turn(draw.choice((1, 1, 2, 5)))
        if not calm:
            storm.strike(made)
        if spot:
            storm.intrude()
            storm.excuse(made)
        storm.none_runs_twice(made)
        if all(is_over(installation.seen(each)) for each in made):
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
    assert storm.kills > len(made) // 2


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
