"""An installation whose loops also serve runs. Nothing runs by itself: a test decides what runs next."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.faults.installation import Installation

from teraflock.api.services import Joined
from teraflock.base.clock import FixedClock
from teraflock.bill.floors import card_floors
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.world import World
from teraflock.image.service import ImageService
from teraflock.instance.service import InstanceService
from teraflock.reconcile.run_acts import RunActs
from teraflock.reconcile.runs import RunLoop
from teraflock.run.bucket import RunBucket
from teraflock.run.choice import RunPricing
from teraflock.run.files import RunFiles
from teraflock.run.model import Run, RunSpec
from teraflock.run.rules import is_over
from teraflock.run.service import RunService
from teraflock.storage.database import Database, Transaction

BEGAN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
ROUNDS_MAX = 2000


class OpenVault:
    """Seals by reversing, so that tests see whether a text was sealed."""

    def seal(self, text: str, *, bound_to: str) -> str:
        return f"{bound_to}|{text[::-1]}"

    def open(self, sealed: str, *, bound_to: str) -> str:
        name, _, text = sealed.partition("|")
        assert name == bound_to
        return text[::-1]


class RunInstallation(Installation):
    def __init__(
        self,
        database: Database,
        world: World,
        clock: FixedClock,
        folder: Path,
        *,
        store: RunBucket | None = None,
        **more: Any,
    ) -> None:
        super().__init__(database, world, clock, **more)
        self.folder = folder
        self.files = RunFiles(folder, store)
        self.fault: Callable[[str], None] = lambda point: None
        self.spent: Callable[[Run], int] = lambda run: 0
        self.buckets: dict[str, RunBucket] = {}
        """Of regions. Fill it before the first run."""
        self.pricing: RunPricing | None = RunPricing(spot_micros=1_000_000, steady_micros=3_000_000)
        self.runs = RunService(
            database, clock, self.files, OpenVault(), random_bytes=self.random_bytes, buckets=self.buckets
        )
        self.loop = self.new_loop()

    def die_at(self, point: str, *, times: int) -> list[str]:
        """Kill the process the first times that it reaches a point. Return the list of its deaths, which grows."""
        deaths: list[str] = []

        def die(at: str) -> None:
            if at == point and len(deaths) < times:
                deaths.append(at)
                raise Killed(at)

        self.fault = die
        return deaths

    def new_loop(self) -> RunLoop:
        """The loop of a new process."""
        acts = RunActs(
            self.workers[0].around,
            self,
            self.service,
            self.files,
            OpenVault(),
            spent=lambda run: self.spent(run),
            prices=lambda run: self.pricing,
            buckets=self.buckets,
        )
        self._named += 1
        loop = RunLoop(acts, worker=f"runs-{self._named}", fault=lambda point: self.fault(point))
        loop.take_over()
        return loop

    def instances_in(self, tx: Transaction) -> InstanceService:
        return InstanceService(
            Joined(tx, locking=True),
            self.clock,
            self.engines,
            random_bytes=self.random_bytes,
            read_prices=card_floors,
        )

    def images_in(self, tx: Transaction) -> ImageService:
        publish = InstanceService(
            Joined(tx), self.clock, self.engines, random_bytes=self.random_bytes
        ).publish
        return ImageService(Joined(tx), self.clock, publish=publish, random_bytes=self.random_bytes)

    def ask(self, *command: str, name: str = "job", **more: Any) -> Run:
        secrets = more.pop("secrets", {})
        spec = RunSpec(command=command, **more)
        return self.runs.create(self.tenant.actor, self.tenant.project, name, spec, secrets)

    def seen(self, run: Run) -> Run:
        return self.runs.run(self.tenant.project.id, run.id)

    def turn(self, seconds: float = 1.0) -> None:
        self.wait(seconds)
        worker = self.workers[0]
        worker.beat()
        worker.look()
        worker.turn()
        try:
            self.loop.turn()
        except Killed:
            self.loop = self.new_loop()

    def until(self, run: Run, reached: Callable[[Run], bool], seconds: float = 1.0) -> Run:
        for _ in range(ROUNDS_MAX):
            self.turn(seconds)
            seen = self.seen(run)
            if reached(seen):
                return seen
        raise AssertionError(f"{seen.phase} of attempt {seen.attempt}: {seen.problem}")

    def finish(self, run: Run, seconds: float = 1.0) -> Run:
        return self.until(run, is_over, seconds)

    def outputs(self, run: Run) -> bytes:
        return b"".join(self.runs.outputs(self.tenant.project.id, run.id))

    def text(self, run: Run) -> str:
        return self.runs.log(self.tenant.project.id, run.id, 0).text

    def pass_time(self, seconds: float) -> None:
        self.clock.move(timedelta(seconds=seconds))
