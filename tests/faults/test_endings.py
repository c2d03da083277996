"""Commands, time limits and user data from start to end: each runs once, is charged exactly and keeps its
log, even if workers die."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.faults.test_quantities import Lab

from teraflock.base.errors import BadInput, Conflict, NotFound
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.model import Guest
from teraflock.instance.model import Access, Instance, Operation
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.reconcile.rehearsal import points
from teraflock.storage.events import events_of_project

JOB = Order(name="job", access=Access.COMMAND, command=("fill", "100"))
FORWARD = [point for point in points(Operation.START) if ":undo:" not in point]


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    made.ask("delete", "one")
    made.installation.settle()
    yield made
    made.installation.database.close()


def view(lab: Lab, name: str) -> Instance:
    return lab.installation.service.view(lab.installation.tenant.project.id, name).instance


def written_bytes(lab: Lab, name: str) -> int:
    """Return how much a guest has written: each run of `JOB` adds 100."""
    with lab.installation.world.read() as turn:
        found = turn.get(Guest, view(lab, name).id)
    assert found is not None
    return found.disk.own_bytes


def kinds(lab: Lab) -> list[str]:
    with lab.installation.database.read() as tx:
        events = events_of_project(tx, lab.installation.tenant.project.id, None, limit=10_000)
    return [each.kind for each in events]


@pytest.mark.parametrize("point", FORWARD)
def test_restarted_command_runs_once_when_a_worker_dies(lab: Lab, point: str) -> None:
    lab.ask("launch", JOB)
    lab.installation.settle()
    done = view(lab, "job")
    assert (done.phase, done.exit_code, done.command_run, written_bytes(lab, "job")) == (
        Phase.STOPPED,
        0,
        0,
        100,
    )
    lab.ask("start", "job")
    assert lab.installation.service.guests.log(lab.installation.tenant.project.id, "job").text == "", (
        "a fresh log"
    )
    lab.installation.workers[0].dies_at = point
    assert not lab.installation.survive(lab.installation.workers[0].turn, 0), f"{point} was never reached"
    lab.installation.settle()
    done = view(lab, "job")
    assert (done.phase, done.exit_code, done.command_run) == (Phase.STOPPED, 0, 1)
    assert written_bytes(lab, "job") == 200, "the command must run exactly once more"
    assert verify(lab.installation.database).is_sound


def test_interrupted_command_runs_again(lab: Lab) -> None:
    lab.ask("launch", replace(JOB, command=("sleep", "1000")))
    lab.installation.settle()
    lab.ask("stop", "job")
    lab.installation.settle()
    assert view(lab, "job").exit_code is None
    lab.ask("start", "job")
    lab.installation.settle()
    assert view(lab, "job").phase == Phase.RUNNING
    lab.installation.wait(1001)
    lab.installation.settle()
    assert (view(lab, "job").exit_code, view(lab, "job").phase) == (0, Phase.STOPPED)


def test_self_deleted_instance_keeps_its_log_for_a_week(lab: Lab) -> None:
    project = lab.installation.tenant.project.id
    lab.ask("launch", replace(JOB, command=("echo", "it is done"), delete_when_done=True))
    lab.installation.settle()
    assert list(lab.installation.engine.sightings()) == []
    gone = view(lab, "job")
    assert (gone.phase, gone.exit_code) == (Phase.GONE, 0)
    assert lab.installation.service.guests.log(project, "job").text == "it is done\n"
    with pytest.raises(NotFound):
        lab.ask("delete", "job")
    lab.ask("launch", Order(name="job"))
    assert view(lab, "job").id != gone.id, "a name refers to a living instance first"
    lab.ask("delete", "job")
    lab.installation.settle()
    with pytest.raises(NotFound):
        view(lab, "job")
    lab.installation.wait(timedelta(days=8).total_seconds())
    lab.installation.settle()
    assert lab.installation.service.guests.log(project, gone.id).text == "", "the log has expired"
    assert view(lab, gone.id).exit_code == 0


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("late_seconds", [0, 7200])
def test_a_time_limit_ends_an_instance_and_its_charge(lab: Lab, late_seconds: int, deleted: bool) -> None:
    """An instance is charged until its limit, even if the server was down for two hours."""
    order = Order(name="job", shape=ShapeWish(gpu="V100"), time_limit_seconds=3600, delete_when_done=deleted)
    lab.ask("launch", order)
    lab.installation.settle()
    since, until = view(lab, "job").running_since, view(lab, "job").stop_at
    assert since is not None
    assert until == since + timedelta(seconds=3600)
    lab.installation.clock.move(until - timedelta(seconds=359) - lab.installation.clock.now())
    lab.installation.workers[0].look()
    lab.installation.workers[0].look()
    assert kinds(lab).count("instance.ends_soon") == 1
    assert view(lab, "job").phase == Phase.RUNNING
    id = view(lab, "job").id
    lab.installation.wait(359 + late_seconds)
    lab.installation.settle()
    assert view(lab, id).phase == (Phase.GONE if deleted else Phase.STOPPED)
    assert kinds(lab).count("instance.time_limit") == 1
    lab.day_over()
    lab.day_over()
    with lab.installation.database.read() as tx:
        rows = tx.all(
            "SELECT SUM(until_us - from_us) FROM meter_interval WHERE instance_id = :id AND gpus = 1", id=id
        )
    assert rows[0][0] == 3600 * 1_000_000
    assert verify(lab.installation.database).is_sound


def test_restart_keeps_the_time_limit_and_start_resets_it(lab: Lab) -> None:
    lab.ask("launch", Order(name="job", time_limit_seconds=3600))
    lab.installation.settle()
    first = view(lab, "job").stop_at
    lab.ask("restart", "job")
    lab.installation.settle()
    assert view(lab, "job").stop_at == first
    lab.ask("stop", "job")
    lab.installation.settle()
    lab.ask("start", "job")
    lab.installation.settle()
    again = view(lab, "job")
    assert again.running_since is not None
    assert again.stop_at == again.running_since + timedelta(seconds=3600)


def test_rm_without_an_end_and_a_limit_out_of_range_are_refused(lab: Lab) -> None:
    for order in (Order(delete_when_done=True), Order(time_limit_seconds=0), Order(time_limit_seconds=10**9)):
        with pytest.raises(BadInput):
            lab.ask("launch", order)


def test_exit_code_of_user_data_is_kept_and_recorded(lab: Lab) -> None:
    project = lab.installation.tenant.project.id
    lab.ask("launch", Order(name="web", user_data="#!/bin/sh\necho hello\nexit 5\n"))
    lab.installation.settle()
    found = view(lab, "web")
    assert (found.phase, found.user_data_waits, found.user_data_exit_code) == (Phase.RUNNING, False, 5)
    assert kinds(lab).count("instance.user_data") == 1
    log = lab.installation.service.guests.log(project, "web", "user-data")
    assert (log.source, log.text, log.exit_code) == ("user-data", "hello\n", 5)
    lab.ask("launch", Order(name="bare"))
    lab.installation.settle()
    with pytest.raises(Conflict, match="without user-data"):
        lab.installation.service.guests.log(project, "bare", "user-data")


@pytest.mark.parametrize("data", ["#cloud-config\npackages: [git]\n", "echo hello\n", " #!/bin/sh\n"])
def test_user_data_that_is_not_a_script_is_refused(lab: Lab, data: str) -> None:
    with pytest.raises(BadInput, match="must start with `#!`"):
        lab.ask("launch", Order(user_data=data))
