"""Two servers with an account each in their memory, one of which dies now and then: one machine, and its exact cost."""

from copy import copy
from pathlib import Path
from random import Random

import pytest
from tests.contract.cloud.ground import KINDS, MORE, SITE, Ground
from tests.faults.installation import Installation, Worker
from tests.long import sampled

from teraflock.instance.engines import Engines
from teraflock.instance.model import Operation
from teraflock.instance.states import Phase
from teraflock.reconcile.rehearsal import points

ALL = sorted({**KINDS, **MORE})
POINTS = [
    point for each in (Operation.LAUNCH, Operation.DELETE) for point in points(each) if ":undo" not in point
]
ROUNDS = 60


class Second:
    """Another server of the same installation: its own driver, without anything in memory."""

    def __init__(self, ground: Ground) -> None:
        self._first = ground.installation
        other: Installation = copy(ground.installation)
        other.engines = Engines([other.engine])
        ground.installation = other
        ground.open()
        ground.installation = self._first
        self.worker = Worker(other, f"second-{ground.clock.now():%H%M%S}")


def share(ground: Ground, random: Random, rounds: int = ROUNDS) -> None:
    """Let both servers work in turns. Sometimes one dies at a random point and comes back without memory."""
    second = Second(ground)
    for _ in range(rounds):
        first = ground.installation.workers[0]
        for worker in random.sample([first, second.worker], 2):
            worker.dies_at = random.choice(POINTS) if random.random() < 0.2 else ""
            survive = ground.installation.survive
            alive = survive(worker.turn, 0) and survive(worker.look, 0)
            worker.dies_at = ""
            if not alive and worker is second.worker:
                second = Second(ground)
            elif not alive:
                ground.open()
        ground.installation.wait(random.choice([1.0, 3.0, 7.0]))


@pytest.mark.parametrize("kind", sampled(ALL, every=5, because="every cloud"))
def test_two_servers_rent_one_machine_and_record_its_cost(kind: str, tmp_path: Path) -> None:
    random = Random(kind)
    ground = Ground(kind, tmp_path)
    ground.fake.listing_seconds = 15.0
    ground.fake.lost_answers = ["launch", "change"]
    ground.launch()
    share(ground, random)
    ground.settle()
    assert (ground.one().phase, ground.one().problem) == (Phase.RUNNING, "")
    assert len(ground.fake.machines) == 1
    ground.delete()
    share(ground, random)
    ground.settle()
    assert (ground.one().phase, ground.fake.alive) == (Phase.GONE, [])
    assert len(ground.fake.machines) == 1
    assert ground.recorded(SITE) == ground.fake.charged() > 0
