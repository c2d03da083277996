"""Crashes, lost messages, late listings and refusals at every cloud: nothing doubled or leaked, every cost recorded."""

from pathlib import Path

import pytest
from tests.contract.cloud.ground import KINDS, MORE, Ground
from tests.long import sampled

from teraflock.drivers.simulated.faults import Killed
from teraflock.instance.model import Operation, RestartPolicy
from teraflock.instance.states import Phase
from teraflock.reconcile.rehearsal import points

ALL = sorted({**KINDS, **MORE})
LAUNCH_POINTS = [point for point in points(Operation.LAUNCH) if ":undo" not in point]
POINTS = [*LAUNCH_POINTS, *points(Operation.DELETE)]
TROUBLES = ("over_quota", "broke", "born_dead", "locked_out")
BECAUSE = "every fault at every cloud"
LOST = [(lost, act) for lost in ("lost_answers", "lost_requests") for act in ("launch", "change", "read")]


@pytest.fixture
def ground(kind: str, tmp_path: Path) -> Ground:
    return Ground(kind, tmp_path)


def dies_once(ground: Ground, point: str, lost: str = "") -> None:
    """The worker dies at a point, once, and messages are lost from then on."""
    died: list[str] = []

    def befalls(reached: str) -> None:
        if reached == point and not died:
            died.append(reached)
            if lost:
                setattr(ground.fake, lost, ["launch"])
            raise Killed(point)

    for worker in ground.installation.workers:
        worker.befalls = befalls


def check_running(ground: Ground) -> None:
    ground.settle()
    assert (ground.one().phase, ground.one().problem) == (Phase.RUNNING, "")
    assert len(ground.fake.alive) == 1


def check_gone(ground: Ground, machines: int = 1) -> None:
    ground.settle()
    assert ground.one().phase == Phase.GONE
    assert ground.fake.alive == []
    assert len(ground.fake.machines) == machines
    assert ground.recorded() == ground.fake.charged() > 0
    tokens = [each for each in ground.driver.leftovers() if each.token]
    assert tokens == [], "disks and addresses of a launch are removed with its machine"


@pytest.mark.parametrize("kind", sampled(ALL, every=5, because=BECAUSE))
def test_a_launch_survives_everything_at_once(ground: Ground) -> None:
    """No capacity at first, a storm of refusals, a crash, a lost answer, a late listing, another crash."""
    ground.fake.listing_seconds = 20.0
    ground.fake.sold_out = {ground.kind.first_region}
    ground.fake.refusals = 4
    ground.fake.lost_answers = ["launch"]
    ground.launch()
    dies_once(ground, "launch.create:after")
    ground.work(rounds=120)
    check_running(ground)
    assert ground.fake.alive[0].region.startswith(ground.kind.other_region)
    ground.delete()
    dies_once(ground, "delete.delete:after")
    ground.work(rounds=40)
    check_gone(ground)


@pytest.mark.parametrize(
    ("kind", "trouble"),
    sampled([(kind, trouble) for trouble in TROUBLES for kind in ALL], every=11, because=BECAUSE),
)
def test_a_launch_that_cannot_succeed_leaves_nothing(ground: Ground, trouble: str) -> None:
    if trouble in ("over_quota", "broke") and trouble not in ground.fake.troubles:
        pytest.skip("this API does not report it")
    setattr(ground.fake, trouble, 9 if trouble == "born_dead" else True)
    ground.launch()
    ground.work(rounds=30, seconds=10)
    if trouble == "locked_out":
        assert (ground.one().phase, ground.fake.machines) == (Phase.STARTING, {})
        ground.fake.locked_out = False
        check_running(ground)
        return
    ground.settle()
    assert ground.one().phase == Phase.FAILED
    assert ground.one().problem_operator or trouble == "born_dead"
    assert ground.fake.alive == []
    assert ground.recorded() == ground.fake.charged()


@pytest.mark.parametrize(
    ("kind", "point"),
    sampled([(ALL[n % len(ALL)], point) for n, point in enumerate(2 * POINTS)], every=100, because=BECAUSE),
)
def test_a_dead_worker_doubles_and_leaks_nothing(ground: Ground, point: str) -> None:
    ground.fake.listing_seconds = 15.0
    ends = point.startswith("delete")
    ground.launch()
    if not ends:
        dies_once(ground, point, "lost_answers")
    ground.work(rounds=50)
    check_running(ground)
    ground.delete()
    if ends:
        dies_once(ground, point, "lost_answers")
    ground.work(rounds=30)
    check_gone(ground)


@pytest.mark.parametrize(
    ("kind", "lost", "act"),
    sampled([(ALL[n % len(ALL)], *lost) for n, lost in enumerate(3 * LOST)], every=100, because=BECAUSE),
)
def test_lost_messages_double_and_leak_nothing(ground: Ground, lost: str, act: str) -> None:
    ground.fake.listing_seconds = 30.0
    setattr(ground.fake, lost, [act, act])
    ground.launch()
    ground.work(rounds=100)
    check_running(ground)
    setattr(ground.fake, lost, [act])
    ground.delete()
    ground.work(rounds=30)
    check_gone(ground)


@pytest.mark.parametrize("kind", sampled(ALL, every=6, because=BECAUSE))
def test_a_machine_that_is_taken_back_is_replaced_once(ground: Ground) -> None:
    ground.launch(restart_policy=RestartPolicy.ELSEWHERE)
    ground.settle()
    ground.installation.workers[0].look()  # a machine that is lost costs nothing since it was last listed
    ground.fake.end(ground.fake.alive[0].id)
    ground.work(rounds=40)
    check_running(ground)
    for (
        each
    ) in ground.driver.leftovers():  # what the provider left of the first one, as `tera account sweep` does
        ground.driver.remove_leftover(each)
    ground.delete()
    check_gone(ground, machines=2)


@pytest.mark.parametrize(
    ("kind", "seconds"),
    sampled([(kind, seconds) for seconds in (-900.0, 900.0) for kind in ALL], every=12, because=BECAUSE),
)
def test_a_clock_that_is_wrong_at_the_provider_changes_nothing(ground: Ground, seconds: float) -> None:
    ground.fake.skew_seconds = seconds
    ground.launch()
    ground.work(rounds=40)
    check_running(ground)
    ground.delete()
    check_gone(ground)
