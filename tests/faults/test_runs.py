"""Runs on simulated hosts: each ends with the result of an uninterrupted one, whatever happens on the way."""

import io
import tarfile
from collections.abc import Iterator
from datetime import timedelta
from errno import ENOSPC
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.faults.run_installation import BEGAN, RunInstallation

from teraflock.base.errors import BadInput, Conflict, Forbidden
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.run_owner import owner_of
from teraflock.run.files import RunFiles
from teraflock.run.model import Run, RunEstimate
from teraflock.run.states import RunPhase, RunWanted
from teraflock.run.store import sealed_secrets
from teraflock.storage.events import events_of_project
from teraflock.tenant.model import MemberId


def result(installation: RunInstallation, run: Run) -> str:
    with tarfile.open(fileobj=io.BytesIO(installation.outputs(run))) as archive:
        content = archive.extractfile("outputs/result")
        assert content is not None
        return content.read().decode()


def test_run_leads_from_the_command_to_its_outputs(installation: RunInstallation) -> None:
    run = installation.finish(installation.ask("train", "20", "1", "5"))
    assert (run.phase, run.exit_code, run.attempt, run.problem) == (RunPhase.DONE, 0, 1, "")
    assert result(installation, run) == chain(20).hex()
    assert installation.text(run) == "".join(f"step {each}\n" for each in range(1, 21))
    instance = installation.service.view(installation.tenant.project.id, run.instance_id).instance
    assert (instance.phase, instance.wanted) == (Phase.GONE, Wanted.GONE)


def test_command_fails_the_run_and_its_exit_code_is_kept(installation: RunInstallation) -> None:
    run = installation.finish(installation.ask("false"))
    assert (run.phase, run.exit_code) == (RunPhase.FAILED, 1)
    assert run.problem == "The command ended with exit code 1"
    assert gone(installation)


@pytest.mark.parametrize("trouble", ["dies", "stopped_by_hand", "deleted_by_hand"])
def test_run_continues_from_its_checkpoint_when_the_guest_is_lost(
    installation: RunInstallation, trouble: str
) -> None:
    run = installation.until(installation.ask("train", "60", "1", "5"), lambda seen: steps(seen) > 30)
    getattr(installation.trouble, trouble)(run.instance_id)
    run = installation.finish(run)
    assert (run.phase, run.exit_code) == (RunPhase.DONE, 0)
    assert run.attempt == 2
    assert result(installation, run) == chain(60).hex()
    assert installation.text(run).count("step 1\n") == 1, "it did not begin again"
    assert gone(installation)


def test_run_moves_to_another_host_when_its_host_stays_away(installation: RunInstallation) -> None:
    run = installation.until(
        installation.ask("train", "420", "1", "5"), lambda seen: steps(seen) > 40, seconds=4
    )
    before = installation.service.view(installation.tenant.project.id, run.instance_id)
    installation.trouble.host_goes_away(before.host_name or "")
    run = installation.until(
        run, lambda seen: seen.attempt == 2 and seen.phase == RunPhase.RUNNING, seconds=10
    )
    after = installation.service.view(installation.tenant.project.id, run.instance_id)
    assert after.host_name != before.host_name
    installation.trouble.host_comes_back(before.host_name or "", rebooted=False)
    run = installation.finish(run, seconds=10)
    assert (run.phase, len(run.instances)) == (RunPhase.DONE, 2)
    assert result(installation, run) == chain(420).hex()
    installation.settle()
    assert gone(installation), "the copy on the lost host is deleted when the host is back"


def test_run_waits_while_its_host_is_away_for_a_moment(installation: RunInstallation) -> None:
    run = installation.until(installation.ask("train", "300", "1", "5"), lambda seen: steps(seen) > 20)
    host = installation.service.view(installation.tenant.project.id, run.instance_id).host_name or ""
    installation.trouble.host_goes_away(host)
    for _ in range(20):
        installation.turn(5)
    assert installation.seen(run).problem == "Its host does not answer. Waiting"
    installation.trouble.host_comes_back(host, rebooted=False)
    run = installation.finish(run, seconds=5)
    assert (run.phase, run.attempt, run.problem) == (RunPhase.DONE, 1, "")


def test_lost_runs_end_after_their_attempts(installation: RunInstallation) -> None:
    run = installation.ask("train", "1000", "1", "5000", attempts_max=2)
    for _ in range(2):
        run = installation.until(run, lambda seen: seen.phase == RunPhase.RUNNING and steps(seen) > 3)
        installation.trouble.deleted_by_hand(run.instance_id)
        run = installation.until(run, lambda seen: seen.phase != RunPhase.RUNNING)
    run = installation.finish(run)
    assert run.phase == RunPhase.FAILED
    assert run.problem.endswith("It used all of its 2 attempts")
    assert gone(installation)


def test_cancelled_run_saves_before_it_ends_and_can_be_continued(installation: RunInstallation) -> None:
    run = installation.until(installation.ask("train", "100", "1", "1000"), lambda seen: steps(seen) > 30)
    installation.runs.cancel(installation.tenant.actor, installation.tenant.project, run.name)
    run = installation.finish(run)
    assert (run.phase, run.wanted) == (RunPhase.CANCELLED, RunWanted.CANCELLED)
    (saved,) = installation.runs.checkpoints(installation.tenant.project.id, run.id)
    assert saved.name.startswith("step-3")
    assert gone(installation)
    installation.runs.retry(installation.tenant.actor, installation.tenant.project, run.name)
    run = installation.finish(run)
    assert (run.phase, run.attempt, result(installation, run)) == (RunPhase.DONE, 2, chain(100).hex())
    assert installation.text(run).count("step 1\n") == 1


def test_queued_run_can_be_cancelled(installation: RunInstallation) -> None:
    run = installation.ask("train", "10")
    installation.runs.cancel(installation.tenant.actor, installation.tenant.project, run.id)
    assert installation.finish(run).phase == RunPhase.CANCELLED
    assert installation.seen(run).instances == ()


def test_run_waits_for_room(installation: RunInstallation) -> None:
    shape = ShapeWish(gpu="V100", gpus=2)
    runs = [installation.ask("train", "30", name=f"job-{each}", shape=shape) for each in range(3)]
    for _ in range(4):
        installation.turn()
    seen = [installation.seen(run) for run in runs]
    assert sorted(each.phase for each in seen) == [RunPhase.QUEUED, RunPhase.RUNNING, RunPhase.RUNNING]
    (waiting,) = [each for each in seen if each.phase == RunPhase.QUEUED]
    assert waiting.problem.startswith("Waiting: There is no room now")
    assert [installation.finish(each).phase for each in runs] == [RunPhase.DONE] * 3


def test_runs_that_wait_start_in_the_order_of_the_queue(installation: RunInstallation) -> None:
    """A run with a higher priority starts before an older one."""
    shape = ShapeWish(gpu="V100", gpus=2)
    first = [installation.ask("train", f"{each}0", name=f"first-{each}", shape=shape) for each in (3, 9)]
    for _ in range(4):
        installation.turn()
    low = installation.ask("train", "5", name="low", shape=shape)
    high = installation.ask("train", "5", name="high", shape=shape, priority=5)
    for _ in range(3):
        installation.turn()
    queue = installation.service.queue.page(installation.tenant.project.id, limit=10)
    assert {each.name for each in queue} == {"low-1", "high-1"}
    done = [installation.finish(each) for each in (*first, low, high)]
    assert {each.phase for each in done} == {RunPhase.DONE}
    began = {each.name: installation.seen(each).running_since for each in done}
    assert (began["high"] or BEGAN) < (began["low"] or BEGAN)


def test_waiting_run_whose_instance_has_a_taken_name_waits_once(installation: RunInstallation) -> None:
    tenant, service = installation.tenant, installation.service
    shape = ShapeWish(gpu="V100", gpus=2)
    for name in ("job-1", "busy"):
        service.launch(tenant.actor, tenant.project, Order(name=name, shape=shape))
    run = installation.ask("train", "5", shape=shape)
    for _ in range(10):
        installation.turn()
    assert len(service.queue.page(tenant.project.id, limit=10)) == 1
    service.delete(tenant.actor, tenant.project, "busy")
    assert installation.finish(run).phase == RunPhase.DONE


def test_run_that_no_host_could_hold_fails_at_once(installation: RunInstallation) -> None:
    run = installation.finish(installation.ask("train", "30", shape=ShapeWish(gpu="V100", gpus=3)))
    assert (run.phase, run.instances) == (RunPhase.FAILED, ())
    assert "GPU" in run.problem


def test_deleting_the_instance_ends_the_run(installation: RunInstallation) -> None:
    run = installation.until(installation.ask("train", "100"), lambda seen: steps(seen) > 10)
    installation.service.delete(installation.tenant.actor, installation.tenant.project, run.instance_id)
    run = installation.finish(run)
    assert (run.phase, run.problem) == (
        RunPhase.FAILED,
        "Its instance was deleted. `tera run retry` continues it",
    )


def test_run_stops_at_its_budget(installation: RunInstallation) -> None:
    installation.spent = lambda run: 10 * steps(run)
    run = installation.finish(installation.ask("train", "100", "1", "5", budget_micros=300))
    assert run.phase == RunPhase.FAILED
    assert run.problem.startswith("It reached its budget")
    assert installation.runs.checkpoints(installation.tenant.project.id, run.id)
    assert gone(installation)


def test_run_that_reached_its_budget_continues_with_a_larger_one(installation: RunInstallation) -> None:
    installation.spent = lambda run: 10 * steps(run)
    run, tenant = installation.ask("train", "60", "1", "5", budget_micros=300), installation.tenant
    stopped = installation.finish(run)
    installation.runs.retry(tenant.actor, tenant.project, run.id)
    again = installation.finish(run)
    assert again.problem == stopped.problem
    assert again.instances == stopped.instances, "with the old budget it costs nothing more"
    installation.runs.retry(tenant.actor, tenant.project, run.id, 1000)
    assert installation.finish(run).phase == RunPhase.DONE


def test_setup_runs_once_and_the_next_run_starts_from_its_image(installation: RunInstallation) -> None:
    first = installation.finish(
        installation.ask("cat", "/opt/tool", setup="tee /opt/tool\nsleep 30\necho ready")
    )
    assert (first.phase, installation.text(first)) == (RunPhase.DONE, "ready\n")
    second = installation.finish(
        installation.ask("cat", "/opt/tool", setup="tee /opt/tool\nsleep 30\necho ready")
    )
    assert (second.phase, installation.text(second)) == (RunPhase.DONE, "")
    assert (second.ended_at or BEGAN) - second.created_at < timedelta(seconds=20)
    other = installation.finish(installation.ask("true", setup="tee /opt/tool\nsleep 31\necho ready"))
    assert installation.text(other) == "ready\n", "another setup has another image"


def test_failed_setup_fails_the_run(installation: RunInstallation) -> None:
    run = installation.finish(installation.ask("true", setup="false"))
    assert (run.phase, run.exit_code, run.problem) == (
        RunPhase.FAILED,
        1,
        "The setup failed with exit code 1",
    )
    assert gone(installation)


def test_name_of_an_active_run_cannot_be_used_again(installation: RunInstallation) -> None:
    run = installation.ask("train", "5")
    with pytest.raises(Conflict, match="a run `job` that is not over"):
        installation.ask("train", "5")
    installation.finish(run)
    assert installation.finish(installation.ask("train", "5")).phase == RunPhase.DONE


def test_run_with_a_bid_is_stopped_by_a_higher_one_and_returns(installation: RunInstallation) -> None:
    tenant, service = installation.tenant, installation.service
    card = ShapeWish(gpu="V100")
    with pytest.raises(BadInput, match="needs a price per hour"):
        installation.ask("train", "5", shape=card, mode="bid")
    run = installation.ask("train", "120", "1", "5", shape=card, mode="bid", bid_micros_per_hour=2_000_000)
    run = installation.until(run, lambda seen: steps(seen) > 20)
    instance = service.view(tenant.project.id, run.instance_id).instance
    assert (instance.spec.mode, instance.preemptible is not None) == ("bid", True)
    for number in range(4):
        service.launch_or_queue(tenant.actor, tenant.project, Order(name=f"urgent-{number}", shape=card))
    run = installation.until(run, lambda seen: seen.attempt == 2)
    for _ in range(70):
        installation.turn()
    service.delete(tenant.actor, tenant.project, "urgent-0")
    run = installation.finish(run)
    assert (run.phase, result(installation, run)) == (RunPhase.DONE, chain(120).hex())


def test_run_goes_on_while_the_disk_of_the_server_is_full(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot keep logs and checkpoints for a while, but can be cancelled, and nothing is lost when there is room."""
    run = installation.until(installation.ask("train", "90", "1", "5"), lambda seen: steps(seen) > 5)
    with monkeypatch.context() as patch:
        patch.setattr(RunFiles, "append_log", full)
        patch.setattr(RunFiles, "keep", full)
        for _ in range(60):
            installation.turn()
        seen = installation.seen(run)
        assert (seen.phase, seen.attempt) == (RunPhase.RUNNING, 1)
        assert seen.problem == "Checkpoints are not copied: the server cannot write files now"
    run = installation.finish(run)
    assert (run.phase, run.attempt, run.problem) == (RunPhase.DONE, 1, "")
    assert installation.text(run) == "".join(f"step {each}\n" for each in range(1, 91))


def full(*_: object, **__: object) -> None:
    raise OSError(ENOSPC, "No space left on device")


def test_secrets_reach_the_command_and_nothing_else(installation: RunInstallation) -> None:
    secrets = {"TOKEN": "very-secret-text"}
    run = installation.until(installation.ask("train", "50", secrets=secrets), lambda seen: steps(seen) > 5)
    with installation.world.read() as turn:
        (guest,) = turn.every(Guest)
    assert guest.disk.programs[run.key].environment["TOKEN"] == "very-secret-text"
    assert "very-secret-text" not in repr(guest.machine)
    with installation.database.read() as tx:
        events = events_of_project(tx, installation.tenant.project.id, None, limit=1000)
        sealed = sealed_secrets(tx, run.id)
    assert "very-secret-text" not in repr(events) + repr(installation.seen(run)) + repr(sealed)


def test_files_are_copied_into_the_working_folder(installation: RunInstallation) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("deep/note.txt")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"hello"))
    content = buffer.getvalue()
    digest = sha256(content).hexdigest()
    installation.files.receive(installation.tenant.project.id, digest, 0, content, len(content))
    run = installation.finish(installation.ask("cat", "/root/work/deep/note.txt", workdir=digest))
    assert installation.text(run) == "hello"


def test_damaged_checkpoint_is_not_used(installation: RunInstallation) -> None:
    run = installation.until(installation.ask("train", "60", "1", "10"), lambda seen: steps(seen) > 45)
    (*_, newest) = installation.runs.checkpoints(installation.tenant.project.id, run.id)
    (installation.folder / "runs" / run.id / f"{newest.id}.tar").write_bytes(b"damaged")
    installation.trouble.deleted_by_hand(run.instance_id)
    run = installation.finish(run)
    assert (run.phase, result(installation, run)) == (RunPhase.DONE, chain(60).hex())


def test_run_whose_files_are_gone_fails_with_the_reason(installation: RunInstallation) -> None:
    digest = sha256(b"x").hexdigest()
    installation.files.receive(installation.tenant.project.id, digest, 0, b"x", 1)
    run = installation.ask("true", workdir=digest)
    installation.files.remove_uploads(2e12, ())
    run = installation.finish(run)
    assert run.phase == RunPhase.FAILED
    assert run.problem.startswith("Its files are no longer on the server")
    assert gone(installation)


def test_removed_member_cannot_launch_again(installation: RunInstallation) -> None:
    run = replace(installation.ask("true"), created_by=MemberId("mem_gone"))
    with installation.database.read() as tx, pytest.raises(Forbidden, match="was removed"):
        owner_of(tx, run)


@pytest.fixture
def cloudy(tmp_path: Path) -> Iterator[RunInstallation]:
    """With a simulated cloud beside the own hosts."""
    made = RunInstallation.in_memory(BEGAN, tmp_path, sky=MemoryWorld())
    yield made
    made.database.close()


def test_run_on_spot_moves_to_on_demand_to_keep_its_deadline(cloudy: RunInstallation) -> None:
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


def test_notice_of_the_provider_saves_and_moves_the_run(cloudy: RunInstallation) -> None:
    installation, clock = cloudy, cloudy.clock
    run = installation.ask("train", "60", "1", "1000", site="sky", type="cpu", mode="on-demand")
    run = installation.until(run, lambda seen: steps(seen) > 30)
    installation.sky_trouble.taken_back(run.instance_id, clock.now() + timedelta(seconds=60))
    run = installation.finish(run)
    assert (run.phase, result(installation, run), len(run.instances)) == (RunPhase.DONE, chain(60).hex(), 2)
    assert installation.text(run).count("step 1\n") == 1, "the checkpoint on notice was used"


POINTS = [
    f"{phase}:{side}"
    for phase in RunPhase
    if phase not in (RunPhase.DONE, RunPhase.FAILED, RunPhase.CANCELLED, RunPhase.STOPPING)
    for side in ("unwritten", "after")
]


@pytest.mark.parametrize("point", POINTS)
def test_crash_at_every_step_changes_nothing(installation: RunInstallation, point: str) -> None:
    deaths = installation.die_at(point, times=3)
    run = installation.finish(installation.ask("train", "6", "1", "2", setup="tee /opt/tool"), seconds=1)
    assert deaths
    assert (run.phase, run.exit_code, run.attempt, len(run.instances)) == (RunPhase.DONE, 0, 1, 1)
    assert result(installation, run) == chain(6).hex()
    assert installation.text(run) == "".join(f"step {each}\n" for each in range(1, 7))
    assert gone(installation)


def steps(run: Run) -> int:
    return run.progress.step if run.progress else 0


def gone(installation: RunInstallation) -> bool:
    """Whether nothing of any run is left on the engine."""
    with installation.world.read() as turn:
        return not turn.every(Guest)


def test_run_leaves_its_card_to_others_with_a_checkpoint_and_continues(installation: RunInstallation) -> None:
    """On notice it saves and goes; when a card is idle again, it continues where it was."""
    one = ShapeWish(gpu="V100")
    tenant, service = installation.tenant, installation.service
    for number in range(3):
        service.launch(tenant.actor, tenant.project, Order(name=f"busy-{number}", shape=one))
    run = installation.until(
        installation.ask("train", "200", "1", "5", mode="spot", shape=one), lambda seen: steps(seen) > 20
    )
    _, queued = service.launch_or_queue(tenant.actor, tenant.project, Order(name="urgent", shape=one))
    assert queued is not None
    run = installation.until(run, lambda seen: seen.attempt == 2)
    for _ in range(60):
        installation.turn()
    assert service.view(tenant.project.id, "urgent").instance.phase == Phase.RUNNING
    assert installation.seen(run).problem.startswith("Waiting: There is no room now")
    service.delete(tenant.actor, tenant.project, "urgent")
    run = installation.finish(run)
    assert (run.phase, run.attempt) == (RunPhase.DONE, 2)
    assert result(installation, run) == chain(200).hex()
    assert installation.text(run).count("step 1\n") == 1, "it did not begin again"


def waits_for_spot(installation: RunInstallation) -> Run:
    """A run that waits for the card of one of four spot instances, which have all cards."""
    one, tenant = ShapeWish(gpu="V100"), installation.tenant
    for number in range(4):
        order = Order(name=f"spot-{number}", shape=one, mode="spot")
        installation.service.launch(tenant.actor, tenant.project, order)
    run = installation.ask("train", "20", "1", "5", shape=one)
    return installation.until(run, lambda seen: "leave their cards" in seen.problem)


def test_run_on_demand_takes_the_card_of_a_spot_instance(installation: RunInstallation) -> None:
    tenant, service = installation.tenant, installation.service
    run = waits_for_spot(installation)
    installation.loop = installation.new_loop()  # another process continues
    run = installation.finish(run)
    assert (run.phase, run.attempt) == (RunPhase.DONE, 1)
    phases = [service.view(tenant.project.id, f"spot-{number}").instance.phase for number in range(4)]
    assert phases.count(Phase.STOPPED) == 1


def test_cancelled_run_takes_no_card(installation: RunInstallation) -> None:
    tenant, service = installation.tenant, installation.service
    run = waits_for_spot(installation)
    installation.runs.cancel(tenant.actor, tenant.project, run.id)
    run = installation.finish(run)
    assert run.phase == RunPhase.CANCELLED
    for _ in range(100):
        installation.turn()
    assert not service.queue.page(tenant.project.id, limit=10)
    phases = {service.view(tenant.project.id, f"spot-{number}").instance.phase for number in range(4)}
    assert phases == {Phase.RUNNING}
