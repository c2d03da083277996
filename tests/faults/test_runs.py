"""Runs on simulated hosts: each ends with the result of an uninterrupted one, whatever happens on the way."""

import io
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.faults.run_house import RunHouse

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Forbidden
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import ShapeWish
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.run_owner import owner_of
from teraflock.run.model import Run, RunEstimate
from teraflock.run.states import RunPhase, RunWanted
from teraflock.run.store import sealed_secrets
from teraflock.storage.events import events_of_project
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate
from teraflock.tenant.model import MemberId

BEGAN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[RunHouse]:
    clock = FixedClock(BEGAN)
    database = MemoryDatabase()
    migrate(database, clock)
    made = RunHouse(database, MemoryWorld(), clock, tmp_path)
    yield made
    made.database.close()


def result(house: RunHouse, run: Run) -> str:
    with tarfile.open(fileobj=io.BytesIO(house.outputs(run))) as archive:
        content = archive.extractfile("outputs/result")
        assert content is not None
        return content.read().decode()


def test_run_leads_from_the_command_to_its_outputs(house: RunHouse) -> None:
    run = house.finish(house.ask("train", "20", "1", "5"))
    assert (run.phase, run.exit_code, run.attempt, run.problem) == (RunPhase.DONE, 0, 1, "")
    assert result(house, run) == chain(20).hex()
    assert house.text(run) == "".join(f"step {each}\n" for each in range(1, 21))
    instance = house.service.view(house.tenant.project.id, run.instance_id).instance
    assert (instance.phase, instance.wanted) == (Phase.GONE, Wanted.GONE)


def test_command_fails_the_run_and_its_exit_code_is_kept(house: RunHouse) -> None:
    run = house.finish(house.ask("false"))
    assert (run.phase, run.exit_code) == (RunPhase.FAILED, 1)
    assert run.problem == "The command ended with exit code 1"
    assert gone(house)


@pytest.mark.parametrize("trouble", ["dies", "stopped_by_hand", "deleted_by_hand"])
def test_run_continues_from_its_checkpoint_when_the_guest_is_lost(house: RunHouse, trouble: str) -> None:
    run = house.until(house.ask("train", "60", "1", "5"), lambda seen: steps(seen) > 30)
    getattr(house.trouble, trouble)(run.instance_id)
    run = house.finish(run)
    assert (run.phase, run.exit_code) == (RunPhase.DONE, 0)
    assert run.attempt == 2
    assert result(house, run) == chain(60).hex()
    assert house.text(run).count("step 1\n") == 1, "it did not begin again"
    assert gone(house)


def test_run_moves_to_another_host_when_its_host_stays_away(house: RunHouse) -> None:
    run = house.until(house.ask("train", "420", "1", "5"), lambda seen: steps(seen) > 40, seconds=4)
    before = house.service.view(house.tenant.project.id, run.instance_id)
    house.trouble.host_goes_away(before.host_name or "")
    run = house.until(run, lambda seen: seen.attempt == 2 and seen.phase == RunPhase.RUNNING, seconds=10)
    after = house.service.view(house.tenant.project.id, run.instance_id)
    assert after.host_name != before.host_name
    house.trouble.host_comes_back(before.host_name or "", rebooted=False)
    run = house.finish(run, seconds=10)
    assert (run.phase, len(run.instances)) == (RunPhase.DONE, 2)
    assert result(house, run) == chain(420).hex()
    house.settle()
    assert gone(house), "the copy on the lost host is deleted when the host is back"


def test_run_waits_while_its_host_is_away_for_a_moment(house: RunHouse) -> None:
    run = house.until(house.ask("train", "300", "1", "5"), lambda seen: steps(seen) > 20)
    host = house.service.view(house.tenant.project.id, run.instance_id).host_name or ""
    house.trouble.host_goes_away(host)
    for _ in range(20):
        house.turn(5)
    assert house.seen(run).problem == "Its host does not answer. Waiting"
    house.trouble.host_comes_back(host, rebooted=False)
    run = house.finish(run, seconds=5)
    assert (run.phase, run.attempt, run.problem) == (RunPhase.DONE, 1, "")


def test_lost_runs_end_after_their_attempts(house: RunHouse) -> None:
    run = house.ask("train", "1000", "1", "5000", attempts_max=2)
    for _ in range(2):
        run = house.until(run, lambda seen: seen.phase == RunPhase.RUNNING and steps(seen) > 3)
        house.trouble.deleted_by_hand(run.instance_id)
        run = house.until(run, lambda seen: seen.phase != RunPhase.RUNNING)
    run = house.finish(run)
    assert run.phase == RunPhase.FAILED
    assert run.problem.endswith("It used all of its 2 attempts")
    assert gone(house)


def test_cancelled_run_saves_before_it_ends_and_can_be_continued(house: RunHouse) -> None:
    run = house.until(house.ask("train", "100", "1", "1000"), lambda seen: steps(seen) > 30)
    house.runs.cancel(house.tenant.actor, house.tenant.project, run.name)
    run = house.finish(run)
    assert (run.phase, run.wanted) == (RunPhase.CANCELLED, RunWanted.CANCELLED)
    (saved,) = house.runs.checkpoints(house.tenant.project.id, run.id)
    assert saved.name.startswith("step-3")
    assert gone(house)
    house.runs.retry(house.tenant.actor, house.tenant.project, run.name)
    run = house.finish(run)
    assert (run.phase, run.attempt, result(house, run)) == (RunPhase.DONE, 2, chain(100).hex())
    assert house.text(run).count("step 1\n") == 1


def test_queued_run_can_be_cancelled(house: RunHouse) -> None:
    run = house.ask("train", "10")
    house.runs.cancel(house.tenant.actor, house.tenant.project, run.id)
    assert house.finish(run).phase == RunPhase.CANCELLED
    assert house.seen(run).instances == ()


def test_run_waits_for_room(house: RunHouse) -> None:
    shape = ShapeWish(gpu="V100", gpus=2)
    runs = [house.ask("train", "30", name=f"job-{each}", shape=shape) for each in range(3)]
    for _ in range(4):
        house.turn()
    seen = [house.seen(run) for run in runs]
    assert sorted(each.phase for each in seen) == [RunPhase.QUEUED, RunPhase.RUNNING, RunPhase.RUNNING]
    (waiting,) = [each for each in seen if each.phase == RunPhase.QUEUED]
    assert waiting.problem.startswith("Waiting: There is no room now")
    assert [house.finish(each).phase for each in runs] == [RunPhase.DONE] * 3


def test_run_that_no_host_could_hold_fails_at_once(house: RunHouse) -> None:
    run = house.finish(house.ask("train", "30", shape=ShapeWish(gpu="V100", gpus=3)))
    assert (run.phase, run.instances) == (RunPhase.FAILED, ())
    assert "GPU" in run.problem


def test_deleting_the_instance_ends_the_run(house: RunHouse) -> None:
    run = house.until(house.ask("train", "100"), lambda seen: steps(seen) > 10)
    house.service.delete(house.tenant.actor, house.tenant.project, run.instance_id)
    run = house.finish(run)
    assert (run.phase, run.problem) == (
        RunPhase.FAILED,
        "Its instance was deleted. `tera run retry` continues it",
    )


def test_run_stops_at_its_budget(house: RunHouse) -> None:
    house.spent = lambda run: 10 * steps(run)
    run = house.finish(house.ask("train", "100", "1", "5", budget_micros=300))
    assert run.phase == RunPhase.FAILED
    assert run.problem.startswith("It reached its budget")
    assert house.runs.checkpoints(house.tenant.project.id, run.id)
    assert gone(house)


def test_setup_runs_once_and_the_next_run_starts_from_its_image(house: RunHouse) -> None:
    first = house.finish(house.ask("cat", "/opt/tool", setup="tee /opt/tool\nsleep 30\necho ready"))
    assert (first.phase, house.text(first)) == (RunPhase.DONE, "ready\n")
    second = house.finish(house.ask("cat", "/opt/tool", setup="tee /opt/tool\nsleep 30\necho ready"))
    assert (second.phase, house.text(second)) == (RunPhase.DONE, "")
    assert (second.ended_at or BEGAN) - second.created_at < timedelta(seconds=20)
    other = house.finish(house.ask("true", setup="tee /opt/tool\nsleep 31\necho ready"))
    assert house.text(other) == "ready\n", "another setup has another image"


def test_failed_setup_fails_the_run(house: RunHouse) -> None:
    run = house.finish(house.ask("true", setup="false"))
    assert (run.phase, run.exit_code, run.problem) == (
        RunPhase.FAILED,
        1,
        "The setup failed with exit code 1",
    )
    assert gone(house)


def test_secrets_reach_the_command_and_nothing_else(house: RunHouse) -> None:
    secrets = {"TOKEN": "very-secret-text"}
    run = house.until(house.ask("train", "50", secrets=secrets), lambda seen: steps(seen) > 5)
    with house.world.read() as turn:
        (guest,) = turn.every(Guest)
    assert guest.disk.programs[run.key].environment["TOKEN"] == "very-secret-text"
    assert "very-secret-text" not in repr(guest.machine)
    with house.database.read() as tx:
        events = events_of_project(tx, house.tenant.project.id, None, limit=1000)
        sealed = sealed_secrets(tx, run.id)
    assert "very-secret-text" not in repr(events) + repr(house.seen(run)) + repr(sealed)


def test_files_are_copied_into_the_working_folder(house: RunHouse) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("deep/note.txt")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"hello"))
    content = buffer.getvalue()
    digest = sha256(content).hexdigest()
    house.files.receive(house.tenant.project.id, digest, 0, content, len(content))
    run = house.finish(house.ask("cat", "/root/work/deep/note.txt", workdir=digest))
    assert house.text(run) == "hello"


def test_damaged_checkpoint_is_not_used(house: RunHouse) -> None:
    run = house.until(house.ask("train", "60", "1", "10"), lambda seen: steps(seen) > 45)
    (*_, newest) = house.runs.checkpoints(house.tenant.project.id, run.id)
    (house.folder / "runs" / run.id / f"{newest.id}.tar").write_bytes(b"damaged")
    house.trouble.deleted_by_hand(run.instance_id)
    run = house.finish(run)
    assert (run.phase, result(house, run)) == (RunPhase.DONE, chain(60).hex())


def test_run_whose_files_are_gone_fails_with_the_reason(house: RunHouse) -> None:
    digest = sha256(b"x").hexdigest()
    house.files.receive(house.tenant.project.id, digest, 0, b"x", 1)
    run = house.ask("true", workdir=digest)
    house.files.remove_uploads(2e12, ())
    run = house.finish(run)
    assert run.phase == RunPhase.FAILED
    assert run.problem.startswith("Its files are no longer on the server")
    assert gone(house)


def test_removed_member_cannot_launch_again(house: RunHouse) -> None:
    run = replace(house.ask("true"), created_by=MemberId("mem_gone"))
    with house.database.read() as tx, pytest.raises(Forbidden, match="was removed"):
        owner_of(tx, run)


@pytest.fixture
def cloudy(tmp_path: Path) -> Iterator[RunHouse]:
    """With a simulated cloud beside the own hosts."""
    clock = FixedClock(BEGAN)
    database = MemoryDatabase()
    migrate(database, clock)
    yield RunHouse(database, MemoryWorld(), clock, tmp_path, sky=MemoryWorld())
    database.close()


def test_run_on_spot_moves_to_on_demand_to_keep_its_deadline(cloudy: RunHouse) -> None:
    hours = RunEstimate(hours=(0.5, 0.5, 0.5))
    soon = BEGAN + timedelta(hours=1.35)
    run = cloudy.ask(
        "train", "100", "36", "1000", site="sky", type="gpu", mode="spot", deadline=soon, estimate=hours
    )
    run = cloudy.finish(run, seconds=20)
    assert (run.phase, result(cloudy, run)) == (RunPhase.DONE, chain(100).hex())
    assert (run.ended_at or soon) < soon
    views = [cloudy.service.view(cloudy.tenant.project.id, each) for each in run.instances]
    modes = [each.instance.spec.mode for each in views]
    assert modes == ["spot", "on-demand"], "the measured steps are slower than the estimate"


def test_notice_of_the_provider_saves_and_moves_the_run(cloudy: RunHouse) -> None:
    house, clock = cloudy, cloudy.clock
    run = house.ask("train", "60", "1", "1000", site="sky", type="cpu", mode="on-demand")
    run = house.until(run, lambda seen: steps(seen) > 30)
    house.sky_trouble.taken_back(run.instance_id, clock.now() + timedelta(seconds=60))
    run = house.finish(run)
    assert (run.phase, result(house, run), len(run.instances)) == (RunPhase.DONE, chain(60).hex(), 2)
    assert house.text(run).count("step 1\n") == 1, "the checkpoint on notice was used"


POINTS = [
    f"{phase}:{side}"
    for phase in RunPhase
    if phase not in (RunPhase.DONE, RunPhase.FAILED, RunPhase.CANCELLED, RunPhase.STOPPING)
    for side in ("unwritten", "after")
]


@pytest.mark.parametrize("point", POINTS)
def test_crash_at_every_step_changes_nothing(house: RunHouse, point: str) -> None:
    deaths: list[str] = []

    def die(at: str) -> None:
        if at == point and len(deaths) < 3:
            deaths.append(at)
            raise Killed(at)

    house.fault = die
    run = house.finish(house.ask("train", "6", "1", "2", setup="tee /opt/tool"), seconds=1)
    assert deaths
    assert (run.phase, run.exit_code, run.attempt, len(run.instances)) == (RunPhase.DONE, 0, 1, 1)
    assert result(house, run) == chain(6).hex()
    assert house.text(run) == "".join(f"step {each}\n" for each in range(1, 7))
    assert gone(house)


def steps(run: Run) -> int:
    return run.progress.step if run.progress else 0


def gone(house: RunHouse) -> bool:
    """Whether nothing of any run is left on the engine."""
    with house.world.read() as turn:
        return not turn.every(Guest)
