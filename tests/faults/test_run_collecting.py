"""A command that ended well is not done before its outputs are kept."""

import pytest
from msgspec.structs import replace
from tests.faults.run_installation import RunInstallation
from tests.faults.test_runs import result

from teraflock.base.errors import NotFound, Refused, Unavailable
from teraflock.drivers.simulated.runs import chain
from teraflock.instance.archive import TooLarge
from teraflock.instance.engine_errors import EngineFailed
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.run.guest import GuestState, RunGuest
from teraflock.run.model import Run
from teraflock.run.states import RunPhase


def test_run_whose_guest_is_made_again_before_its_outputs_are_copied_runs_again(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new guest has an empty disk: its missing outputs are not the result."""
    outputs, struck = RunPulls.outputs, list[str]()

    def late(self: RunPulls, run: Run, guest: RunGuest, folder: str) -> int | None:
        if not struck:
            struck.append(run.id)
            installation.trouble.deleted_by_hand(run.instance_id)
            raise Unavailable("the guest is gone", hint="")
        return outputs(self, run, guest, folder)

    monkeypatch.setattr(RunPulls, "outputs", late)
    run = installation.finish(installation.ask("train", "30", "1", "5"))
    assert struck
    assert (run.phase, run.exit_code, run.attempt) == (RunPhase.DONE, 0, 2)
    assert result(installation, run) == chain(30).hex()


def test_done_run_says_which_checkpoint_could_not_be_kept(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted with the instance: nobody would look for it otherwise."""
    monkeypatch.setattr(RunPulls, "checkpoints", lambda *_: "`big`: The folder has more than 10,000 files")
    run = installation.finish(installation.ask("train", "3", "1", "100"))
    assert run.phase == RunPhase.DONE
    assert "`big`" in run.problem


def refused(*_: object) -> str:
    raise Refused("The project stores 64 GB of outputs and checkpoints, which is the limit", hint="")


def test_refused_checkpoint_does_not_keep_the_outputs_from_being_copied(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunPulls, "checkpoints", refused)
    run = installation.finish(installation.ask("train", "3", "1", "100"))
    assert (run.phase, run.keeps_instance) == (RunPhase.DONE, False)
    assert result(installation, run) == chain(3).hex()
    assert "64 GB" in run.problem


def test_failed_run_says_both_why_it_failed_and_which_checkpoint_is_not_kept(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunPulls, "checkpoints", refused)
    run = installation.finish(installation.ask("false"))
    assert run.phase == RunPhase.FAILED
    assert "exit code 1. Checkpoints are not copied: The project stores 64 GB" in run.problem


def test_outputs_over_a_limit_are_read_once_and_stay_on_their_instance(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()

    def large(self: RunPulls, run: Run, guest: RunGuest, folder: str) -> int | None:
        read.append(folder)
        raise TooLarge("The folder has more than 10,000 files, the most that can be fetched at once", hint="")

    monkeypatch.setattr(RunPulls, "outputs", large)
    run = installation.finish(installation.ask("train", "3", "1", "100"))
    assert (run.phase, run.keeps_instance, len(read)) == (RunPhase.FAILED, True, 1)
    assert "more than 10,000 files, the most that can be fetched at once. They are still" in run.problem
    with pytest.raises(NotFound) as told:
        installation.outputs(run)
    assert "still on its instance" in told.value.hint


def test_run_whose_disk_was_full_says_so(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of its log is missing, and with it the reason why the command failed."""
    state = RunGuest.state
    monkeypatch.setattr(
        RunGuest, "state", lambda self, key, offset: replace(state(self, key, offset), is_full=True)
    )
    run = installation.finish(installation.ask("false"))
    assert run.problem.startswith("The command ended with exit code 1. The disk of its instance was full")


def test_copy_of_the_last_checkpoint_is_tried_again(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, failed = RunPulls.checkpoints, list[str]()

    def fails_twice(self: RunPulls, run: Run, guest: RunGuest) -> str:
        if run.phase == RunPhase.COLLECTING and len(failed) < 2:
            failed.append(run.id)
            raise EngineFailed("The engine could not read it")
        return checkpoints(self, run, guest)

    monkeypatch.setattr(RunPulls, "checkpoints", fails_twice)
    run = installation.finish(installation.ask("train", "3", "1", "3"))
    assert (run.phase, run.problem, len(failed)) == (RunPhase.DONE, "", 2)
    assert [each.name for each in installation.runs.checkpoints(run.project_id, run.id)] == ["step-3"]


def test_checkpoint_beyond_the_room_of_the_project_is_left_out_and_others_are_copied(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunPulls, "_check_room", lambda _, run, more: refused() if more else None)
    run = installation.finish(installation.ask("train", "3", "1", "3"))
    assert run.phase == RunPhase.DONE
    assert "`step-3`: The project stores 64 GB" in run.problem
    assert result(installation, run) == chain(3).hex()


def test_problem_that_passed_is_not_told_any_more(
    installation: RunInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, struck = RunGuest.state, list[str]()

    def busy(self: RunGuest, key: str, offset: int) -> GuestState:
        seen = state(self, key, offset)
        if seen.state == "running" and len(struck) < 4:
            struck.append(key)
            raise Unavailable("Its host is busy", hint="")
        return seen

    monkeypatch.setattr(RunGuest, "state", busy)
    run = installation.ask("train", "60", "1", "100")
    installation.until(run, lambda seen: seen.problem == "Its host is busy")
    installation.until(run, lambda seen: seen.phase == RunPhase.RUNNING and not seen.problem)
    assert len(struck) == 4
