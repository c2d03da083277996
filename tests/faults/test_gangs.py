"""Runs with several nodes on simulated hosts: all nodes run, or none, and a lost one is replaced."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.faults.run_installation import BEGAN, RunInstallation
from tests.faults.test_runs import POINTS, gone, result, steps

from teraflock.base.errors import BadInput, NotFound
from teraflock.drivers.simulated.model import Guest, SimulatedProgram
from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase, Wanted
from teraflock.run.guest import CHECKPOINTS
from teraflock.run.model import Run
from teraflock.run.nodes import nodes_of
from teraflock.run.states import RunPhase

CARD = ShapeWish(gpu="V100")
HOST = ShapeWish(gpu="V100", gpus=2)
"""All cards of a host."""


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[RunInstallation]:
    made = RunInstallation.in_memory(BEGAN, tmp_path, sky=MemoryWorld())
    yield made
    made.database.close()


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RunInstallation]:
    """An installation with three hosts."""
    monkeypatch.setattr("tests.faults.installation.HOSTS", "3x2xV100")
    made = RunInstallation.in_memory(BEGAN, tmp_path)
    yield made
    made.database.close()


def programs(installation: RunInstallation, run: Run) -> list[SimulatedProgram]:
    """The programs of this attempt, by node."""
    with installation.world.read() as turn:
        guests = {each.machine.id: each for each in turn.every(Guest)}
    return [guests[node.instance_id].disk.programs[run.key] for node in nodes_of(run)]  # type: ignore[index]


def log(installation: RunInstallation, run: Run, node: int) -> str:
    return installation.runs.log(installation.tenant.project.id, run.id, 0, node).text


def test_all_nodes_run_the_command_with_the_variables_of_torchrun(installation: RunInstallation) -> None:
    run = installation.ask(
        "train", "30", "1", "5", nodes=3, shape=CARD, environment={"NCCL_SOCKET_IFNAME": "ib0"}
    )
    run = installation.until(run, lambda seen: steps(seen) > 5)
    found = [each.environment for each in programs(installation, run)]
    views = [installation.service.view(installation.tenant.project.id, id).instance for id in run.instances]
    assert [each["RANK"] for each in found] == [each["NODE_RANK"] for each in found] == ["0", "1", "2"]
    assert {each["MASTER_ADDR"] for each in found} == {views[0].address}
    assert {(each["WORLD_SIZE"], each["MASTER_PORT"], each["PET_NNODES"]) for each in found} == {
        ("3", "29500", "3")
    }
    assert {each["TERA_NODES"] for each in found} == {",".join(each.address or "" for each in views)}
    assert {each["NCCL_SOCKET_IFNAME"] for each in found} == {"ib0"}, "the user's value wins"
    run = installation.finish(run)
    assert (run.phase, run.exit_code, run.attempt, len(run.instances)) == (RunPhase.DONE, 0, 1, 3)
    assert result(installation, run) == chain(30).hex()
    assert [log(installation, run, node).count("step ") for node in range(3)] == [30, 30, 30]
    with pytest.raises(NotFound, match="has no node 3"):
        log(installation, run, 3)
    assert gone(installation)


def test_run_with_one_node_has_none_of_these_variables(installation: RunInstallation) -> None:
    run = installation.until(installation.ask("train", "30"), lambda seen: steps(seen) > 2)
    (program,) = programs(installation, run)
    assert not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "TERA_NODES"} & set(program.environment)


@pytest.mark.parametrize("trouble", ["dies", "stopped_by_hand", "deleted_by_hand"])
@pytest.mark.parametrize("node", [0, 1])
def test_loss_of_one_node_starts_all_of_them_again_from_the_checkpoint(
    installation: RunInstallation, trouble: str, node: int
) -> None:
    run = installation.ask("train", "80", "1", "5", nodes=2, shape=CARD)
    run = installation.until(run, lambda seen: steps(seen) > 41)
    getattr(installation.trouble, trouble)(nodes_of(run)[node].instance_id)
    run = installation.finish(run)
    assert (run.phase, run.exit_code, run.attempt) == (RunPhase.DONE, 0, 2)
    assert len(run.instances) == 2, "the engine made it again, so none had to be replaced"
    assert result(installation, run) == chain(80).hex()
    assert [log(installation, run, each).count("step 1\n") for each in (0, 1)] == [1, 1], "none began again"
    assert gone(installation)


def host_of(installation: RunInstallation, run: Run, node: int) -> str:
    id = nodes_of(run)[node].instance_id
    return installation.service.view(installation.tenant.project.id, id).host_name or ""


def on_two_hosts(installation: RunInstallation, **more: Any) -> Run:
    """A gang of two, each with all cards of a host, of which there is one more."""
    run = installation.ask("train", "900", "1", "5", nodes=2, shape=HOST, **more)
    run = installation.until(run, lambda seen: steps(seen) > 41)
    assert host_of(installation, run, 0) != host_of(installation, run, 1)
    return run


@pytest.mark.parametrize("node", [0, 1])
def test_only_the_lost_node_is_replaced(three: RunInstallation, node: int) -> None:
    run = on_two_hosts(three)
    before = [each.instance_id for each in nodes_of(run)]
    lost = host_of(three, run, node)
    three.trouble.host_goes_away(lost)
    run = three.until(run, lambda seen: seen.attempt == 2 and seen.phase == RunPhase.RUNNING, seconds=5)
    after = [each.instance_id for each in nodes_of(run)]
    assert after[1 - node] == before[1 - node], "it is kept"
    assert after[node] not in before
    first = [each.first_step for each in programs(three, run)]
    assert first[0] == first[1] > 0, "all continue from the same checkpoint"
    three.trouble.host_comes_back(lost, rebooted=False)
    run = three.finish(run, seconds=5)
    assert (run.phase, run.exit_code, len(run.instances)) == (RunPhase.DONE, 0, 3)
    assert result(three, run) == chain(900).hex()
    three.settle()
    assert gone(three)


def test_checkpoints_that_only_another_node_has_are_not_used(three: RunInstallation) -> None:
    """The nodes would continue from different steps."""
    run = on_two_hosts(three)
    save(three, run, node=1, step=500)
    three.trouble.host_goes_away(host_of(three, run, 0))
    run = three.until(run, lambda seen: seen.attempt == 2 and seen.phase == RunPhase.RUNNING, seconds=5)
    first = [each.first_step for each in programs(three, run)]
    assert first[0] == first[1] < 500


def save(installation: RunInstallation, run: Run, *, node: int, step: int) -> None:
    with installation.world.write() as turn:
        (guest,) = (each for each in turn.every(Guest) if each.machine.id == nodes_of(run)[node].instance_id)
        saved = {f"{CHECKPOINTS}/step-{step}": chain(step).hex().encode()}
        turn.put(replace(guest, disk=replace(guest.disk, files={**guest.disk.files, **saved})))


@pytest.mark.parametrize("why", ["no room", "another folder", "no attempts left"])
def test_all_nodes_end_where_one_cannot_be_replaced(three: RunInstallation, why: str) -> None:
    cases: dict[str, dict[str, Any]] = {
        "another folder": {"checkpoints": "/srv/saved"},
        "no attempts left": {"attempts_max": 1},
    }
    run = on_two_hosts(three, **cases.get(why, {}))
    tenant, service = three.tenant, three.service
    if why == "no room":
        service.launch(tenant.actor, tenant.project, Order(name="busy", shape=HOST))
    three.trouble.host_goes_away(host_of(three, run, 1))
    ended = (RunPhase.QUEUED, RunPhase.FAILED)
    run = three.until(run, lambda seen: seen.phase in ended, seconds=5)
    assert (run.phase == RunPhase.FAILED) == (why == "no attempts left")
    three.turn()
    assert service.view(tenant.project.id, run.instances[0]).instance.wanted == Wanted.GONE


@pytest.mark.parametrize("point", ["running:before", "running:unwritten", "running:after", "starting:unwritten",
                                   "copying:before", "copying:unwritten", "copying:after"])  # fmt: skip
def test_crash_while_a_node_is_replaced_changes_nothing(three: RunInstallation, point: str) -> None:
    run = on_two_hosts(three)
    three.trouble.host_goes_away(host_of(three, run, 1))
    for _ in range(62):  # until just before it counts as lost
        three.turn(4.75)
    deaths = three.die_at(point, times=9)
    run = three.until(run, lambda seen: seen.attempt == 2 and seen.phase == RunPhase.RUNNING, seconds=2)
    assert deaths
    assert len(run.instances) == 3, "one was launched"
    run = three.finish(run, seconds=5)
    assert (run.phase, run.attempt, result(three, run)) == (RunPhase.DONE, 2, chain(900).hex())


def test_gang_waits_until_there_is_room_for_all_of_it(installation: RunInstallation) -> None:
    tenant, service = installation.tenant, installation.service
    service.launch(tenant.actor, tenant.project, Order(name="busy", shape=CARD))
    run = installation.ask("train", "20", nodes=4, shape=CARD)
    for _ in range(10):
        installation.turn()
    run = installation.seen(run)
    assert (run.phase, run.instances) == (RunPhase.QUEUED, ())
    assert run.problem.startswith("Waiting: ")
    service.delete(tenant.actor, tenant.project, "busy")
    run = installation.finish(run)
    assert (run.phase, len(run.instances)) == (RunPhase.DONE, 4)


def test_error_on_one_node_stops_the_others_and_fails_the_run(installation: RunInstallation) -> None:
    run = installation.ask("train", "500", "1", "5", nodes=2, shape=CARD)
    run = installation.until(run, lambda seen: steps(seen) > 12)
    fail(installation, run, 1, 3)
    run = installation.finish(run)
    assert (run.phase, run.exit_code, run.attempt) == (RunPhase.FAILED, 3, 1)
    assert run.problem == "The command ended with exit code 3 on node 1"
    assert installation.runs.checkpoints(installation.tenant.project.id, run.id)
    assert gone(installation)


def test_error_that_follows_the_loss_of_another_node_starts_the_gang_again(
    installation: RunInstallation,
) -> None:
    run = installation.ask("train", "60", "1", "5", nodes=2, shape=CARD)
    run = installation.until(run, lambda seen: steps(seen) > 12)
    fail(installation, run, 0, 1)
    installation.trouble.dies(nodes_of(run)[1].instance_id)
    run = installation.finish(run)
    assert (run.phase, run.attempt, result(installation, run)) == (RunPhase.DONE, 2, chain(60).hex())


def fail(installation: RunInstallation, run: Run, node: int, code: int) -> None:
    """Let the command of a node end with an error."""
    with installation.world.write() as turn:
        (guest,) = (each for each in turn.every(Guest) if each.machine.id == nodes_of(run)[node].instance_id)
        ended = replace(guest.disk.programs[run.key], exit_code=code)
        turn.put(replace(guest, disk=replace(guest.disk, programs={**guest.disk.programs, run.key: ended})))


def test_cancelled_gang_saves_and_all_of_its_instances_are_deleted(installation: RunInstallation) -> None:
    run = installation.ask("train", "100", "1", "1000", nodes=2, shape=CARD)
    run = installation.until(run, lambda seen: steps(seen) > 30)
    installation.runs.cancel(installation.tenant.actor, installation.tenant.project, run.name)
    run = installation.finish(run)
    assert run.phase == RunPhase.CANCELLED
    assert installation.runs.checkpoints(installation.tenant.project.id, run.id)
    assert gone(installation)
    installation.runs.retry(installation.tenant.actor, installation.tenant.project, run.name)
    run = installation.finish(run)
    assert (run.phase, result(installation, run)) == (RunPhase.DONE, chain(100).hex())


def test_gang_leaves_all_of_its_cards_when_one_is_needed(installation: RunInstallation) -> None:
    tenant, service = installation.tenant, installation.service
    run = installation.ask("train", "100", "1", "5", nodes=4, shape=CARD, mode="spot")
    run = installation.until(run, lambda seen: steps(seen) > 12)
    service.launch_or_queue(tenant.actor, tenant.project, Order(name="urgent", shape=CARD))
    run = installation.until(run, lambda seen: seen.attempt == 2)
    for _ in range(60):
        installation.turn()
    assert service.view(tenant.project.id, "urgent").instance.phase == Phase.RUNNING
    assert installation.seen(run).phase == RunPhase.QUEUED
    service.delete(tenant.actor, tenant.project, "urgent")
    run = installation.finish(run)
    assert (run.phase, result(installation, run), len(run.instances)) == (RunPhase.DONE, chain(100).hex(), 8)


def test_gang_on_rented_machines_is_refused(installation: RunInstallation) -> None:
    with pytest.raises(BadInput, match="no private network"):
        installation.ask("train", "5", nodes=2, site="sky", type="cpu")
    run = installation.finish(
        installation.ask("train", "5", nodes=2, site="sky", shape=ShapeWish(gpu="V100"))
    )
    assert (run.phase, run.instances) == (RunPhase.FAILED, ())
    assert "no private network" in run.problem


@pytest.mark.parametrize("point", POINTS)
def test_crash_at_every_step_of_a_gang_changes_nothing(installation: RunInstallation, point: str) -> None:
    deaths = installation.die_at(point, times=3)
    run = installation.ask("train", "6", "1", "2", setup="tee /opt/tool", nodes=2, shape=CARD)
    run = installation.finish(run)
    assert deaths
    assert (run.phase, run.exit_code, run.attempt, len(run.instances)) == (RunPhase.DONE, 0, 1, 2)
    assert result(installation, run) == chain(6).hex()
    expected = "".join(f"step {each}\n" for each in range(1, 7))
    assert [log(installation, run, node) for node in (0, 1)] == [expected, expected]
    assert gone(installation)
