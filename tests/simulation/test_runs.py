"""Many runs on simulated hosts, with seeded failures: none is lost, none runs twice, and the bill is right."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from tests.faults.run_house import RunHouse
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
from teraflock.instance.states import Wanted
from teraflock.reconcile.bills import BillLoop
from teraflock.run.model import Run, RunId
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
        self.house = RunHouse(database, MemoryWorld(), clock, folder, seed=seed)
        self.bills = BillService(database, clock, RATES, self.house.random_bytes)
        self.bills.prices.take(BOOK, name="prices.yaml", member="mem")
        self.billing = BillLoop(self.bills, clock)
        self.house.fault = self.crash
        self.kills = 0
        self.away: set[str] = set()

    def crash(self, point: str) -> None:
        if self.draw.random() < 0.02:
            self.kills += 1
            raise Killed(point)

    def strike(self, runs: list[Run]) -> None:
        """Something happens to a guest, a host or a run, or nothing."""
        house, lot = self.house, self.draw.random()
        alive = [each for each in map(house.seen, runs) if each.instance_id and not is_over(each)]
        if lot < 0.05 and alive:
            victim = self.draw.choice(alive).instance_id
            acts: list[Callable[[str], None]] = [house.trouble.dies, house.trouble.deleted_by_hand]
            with suppress(TeraflockError):  # it is not there yet, or not any more
                self.draw.choice(acts)(victim)
        elif lot < 0.06:
            self.away.add(host := self.draw.choice(HOSTS))
            house.trouble.host_goes_away(host)
        elif lot < 0.10 and self.away:
            house.trouble.host_comes_back(self.away.pop(), rebooted=self.draw.random() < 0.5)

    def none_runs_twice(self, runs: list[Run]) -> None:
        """A living program belongs to the instance of its run, or to one that is being deleted. One for each."""
        now = {run.id: self.house.seen(run).instance_id for run in runs}
        with self.house.world.read() as turn:
            guests = [each for each in turn.every(Guest) if each.running]
        for guest in guests:
            living = [
                key.rpartition(".")[0]
                for key, program in guest.disk.programs.items()
                if program.exit_code is None and program.start == guest.starts
            ]
            assert len(living) <= 1
            if living and now[RunId(living[0])] != guest.machine.id:
                view = self.house.service.view(self.house.tenant.project.id, guest.machine.id)
                assert view.instance.wanted == Wanted.GONE


@pytest.mark.parametrize("seed", range(8))
def test_no_run_is_lost_or_run_twice_and_the_bill_is_right(seed: int, tmp_path: Path) -> None:
    storm = Storm(seed, tmp_path)
    house, draw = storm.house, storm.draw
    runs: list[Run] = []
    lengths = {}
    for number in range(12):
        length = draw.randint(10, 120)
        run = house.ask(
            "train", str(length), "1", str(draw.randint(1, 20)), name=f"job-{number}", attempts_max=90
        )
        lengths[run.id] = length
        runs.append(run)
    for _ in range(4000):
        house.turn(draw.choice((1, 1, 2, 5)))
        storm.strike(runs)
        storm.none_runs_twice(runs)
        if all(is_over(house.seen(each)) for each in runs):
            break
    for host in storm.away:
        house.trouble.host_comes_back(host, rebooted=False)
    house.fault = lambda point: None
    house.settle()
    for run in map(house.seen, runs):
        assert (run.phase, run.exit_code) == (RunPhase.DONE, 0), run.problem
        assert result(house, run) == chain(lengths[run.id]).hex()
    assert storm.kills > 10
    with house.world.read() as turn:
        assert not turn.every(Guest), "nothing is left on the engine"
    check_bill(storm, runs)
    house.database.close()


def check_bill(storm: Storm, runs: list[Run]) -> None:
    """What the runs cost is what the project pays, and what is computed again from the events."""
    house = storm.house
    for _ in range(5):
        house.wait(60)
        storm.billing.turn()
    project = house.tenant.project.id
    costs = sum(
        each.micros
        for run in map(house.seen, runs)
        for each in storm.bills.costs(project, list(run.instances)).values()
    )
    now = house.clock.now()
    bill = storm.bills.bill(project, f"{now:%Y-%m}")
    assert costs == bill.micros + bill.unbooked_micros > 0
    assert verify(house.database).is_sound
