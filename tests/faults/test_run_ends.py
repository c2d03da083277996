"""No end of a run leaves anything behind that somebody would pay for: no queued launch, no instance."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.faults.run_installation import BEGAN, RunInstallation
from tests.faults.test_runs import gone, steps

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Conflict, NotFound
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.queue.service import QueueService
from teraflock.instance.service import InstanceService
from teraflock.instance.states import Wanted
from teraflock.reconcile.run_starts import RunStarts
from teraflock.run.model import Run
from teraflock.run.rules import TRIES_MAX, is_over
from teraflock.run.states import RunPhase
from teraflock.storage.database import Database
from teraflock.tenant.project.store import remove_project

PAIR = ShapeWish(gpu="V100", gpus=2)


@pytest.fixture
def installation(database: Database, tmp_path: Path) -> RunInstallation:
    return RunInstallation(database, MemoryWorld(), FixedClock(BEGAN), tmp_path)


def waiting_run(installation: RunInstallation, nodes: int) -> Run:
    """A run whose launch waits in the queue, because others have the four cards."""
    tenant = installation.tenant
    for number in range(2):
        installation.service.launch(tenant.actor, tenant.project, Order(name=f"busy-{number}", shape=PAIR))
    shape = PAIR if nodes == 1 else ShapeWish(gpu="V100")
    run = installation.ask("train", "5", shape=shape, nodes=nodes)
    run = installation.until(run, lambda seen: seen.problem.startswith("Waiting"))
    assert len(waiting(installation)) == 1
    return run


def waiting(installation: RunInstallation) -> list[str]:
    return [each.id for each in installation.service.queue.page(installation.tenant.project.id, limit=10)]


def make_room(installation: RunInstallation) -> None:
    tenant = installation.tenant
    for number in range(2):
        with suppress(NotFound):  # it is gone already
            installation.service.delete(tenant.actor, tenant.project, f"busy-{number}")


def of_runs(installation: RunInstallation) -> list[str]:
    """The instances that nobody asked to delete, without those of the tenant."""
    views = installation.service.page(installation.tenant.project.id, limit=100)
    return [
        each.instance.name
        for each in views
        if each.instance.wanted != Wanted.GONE and not each.instance.name.startswith("busy")
    ]


def broken(*_: object, **__: object) -> None:
    raise RuntimeError("a bug")


@pytest.mark.parametrize("nodes", [1, 3])
def test_failed_run_leaves_no_queued_launch(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    run = waiting_run(installation, nodes)
    monkeypatch.setattr(RunStarts, "_waited_for", broken)
    run = installation.finish(run, seconds=40)
    assert (run.phase, run.problem) == (RunPhase.FAILED, "Internal error in Teraflock")
    assert waiting(installation) == []
    make_room(installation)
    for _ in range(20):
        installation.turn()
    assert of_runs(installation) == []
    assert gone(installation)


def test_run_that_cannot_be_cleaned_up_is_not_over(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = waiting_run(installation, 1)
    with monkeypatch.context() as patch:
        patch.setattr(RunStarts, "_waited_for", broken)
        patch.setattr(QueueService, "cancel", broken)
        for _ in range(TRIES_MAX + 4):
            installation.turn(60)
        seen = installation.seen(run)
        assert (seen.phase, seen.problem) == (RunPhase.QUEUED, "Internal error in Teraflock")
        assert len(waiting(installation)) == 1
    make_room(installation)
    run = installation.until(run, lambda each: each.phase == RunPhase.DONE, seconds=10)
    assert gone(installation)


def test_deletion_of_an_instance_is_never_given_up(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = installation.until(installation.ask("train", "30"), lambda seen: steps(seen) > 5)
    with monkeypatch.context() as patch:
        patch.setattr(InstanceService, "delete", broken)
        installation.until(run, lambda seen: seen.tries > TRIES_MAX, seconds=60)
        assert installation.seen(run).phase == RunPhase.ENDING
    assert installation.finish(run, seconds=60).phase == RunPhase.DONE
    installation.turn()
    assert of_runs(installation) == []
    assert gone(installation)


def test_process_that_lost_its_run_launches_nothing(installation: RunInstallation) -> None:
    """The other process may have launched already: what this one launches would belong to nobody."""
    run = installation.ask("train", "30")

    def taken(point: str) -> None:
        if point == "queued:unwritten":
            installation.fault = lambda point: None
            installation.database.write(
                lambda tx: tx.run("UPDATE run SET worker = 'other' WHERE id = :id", id=run.id)
            )

    installation.fault = taken
    installation.turn()
    assert of_runs(installation) == []
    installation.loop = installation.new_loop()
    assert installation.finish(run).phase == RunPhase.DONE
    assert gone(installation)


@pytest.mark.parametrize("nodes", [1, 3])
def test_what_the_queue_starts_while_the_run_is_cancelled_is_deleted_with_it(
    installation: RunInstallation, nodes: int
) -> None:
    """The queue starts the launch after the loop has decided that the run ends, and before it writes that."""
    run = waiting_run(installation, nodes)

    def started(point: str) -> None:
        if point == "queued:unwritten":
            installation.fault = lambda point: None
            make_room(installation)
            worker = installation.workers[0]
            for _ in range(20):
                installation.wait(1)
                worker.beat()
                worker.look()
                worker.turn()
            assert len(of_runs(installation)) == nodes

    installation.runs.cancel(installation.tenant.actor, installation.tenant.project, run.id)
    installation.fault = started
    installation.turn()
    run = installation.seen(run)
    assert (run.phase, len(run.instances)) == (RunPhase.CANCELLED, nodes)
    assert of_runs(installation) == []
    installation.settle()
    assert gone(installation)


def test_run_of_a_removed_project_ends_and_leaves_no_queued_launch(installation: RunInstallation) -> None:
    run = waiting_run(installation, 1)
    installation.database.write(lambda tx: remove_project(tx, run.project_id, installation.clock.now()))
    run = installation.finish(run)
    assert (run.phase, run.problem) == (RunPhase.FAILED, "Its project was removed")
    assert waiting(installation) == []


ACTS = ("turn", "turn", "room", "bug", "mended", "cancel", "retry", "kill", "queue")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=st.lists(st.sampled_from(ACTS), min_size=4, max_size=24), nodes=st.sampled_from([1, 3]))
def test_run_that_is_over_has_nothing_left(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str], nodes: int
) -> None:
    installation = RunInstallation.in_memory(BEGAN, tmp_path_factory.mktemp("runs"))
    tenant = installation.tenant
    run = waiting_run(installation, nodes)
    with pytest.MonkeyPatch.context() as patch:
        for act in [*acts, "mended", "cancel", *["turn"] * 8]:
            match act:
                case "room":
                    make_room(installation)
                case "bug":
                    patch.setattr(RunStarts, "_waited_for", broken)
                case "mended":
                    patch.undo()
                case "cancel":
                    installation.runs.cancel(tenant.actor, tenant.project, run.id)
                case "retry":
                    with suppress(Conflict):
                        installation.runs.retry(tenant.actor, tenant.project, run.id)
                case "kill":
                    installation.fault = killed_once(installation)
                case "queue":
                    installation.workers[0].turn()
                case _:
                    installation.turn(60)
            if is_over(installation.seen(run)):
                assert (waiting(installation), of_runs(installation)) == ([], [])
    assert is_over(installation.seen(run))
    installation.database.close()


def killed_once(installation: RunInstallation) -> Callable[[str], None]:
    def fault(point: str) -> None:
        installation.fault = lambda point: None
        raise Killed(point)

    return fault


def test_a_checkpoint_with_too_many_files_is_named_and_the_command_goes_on(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = installation.ask("train", "90", "1", "10")
    with monkeypatch.context() as patch:
        patch.setattr("teraflock.instance.archive.ENTRIES_MAX", 0)
        run = installation.until(
            run, lambda seen: seen.problem.startswith("Checkpoints are not copied: `step-")
        )
        assert run.phase == RunPhase.RUNNING
    run = installation.until(run, lambda seen: not seen.problem)
    assert installation.runs.checkpoints(installation.tenant.project.id, run.id)
    assert installation.finish(run).phase == RunPhase.DONE
