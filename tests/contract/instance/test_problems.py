"""What a tenant and the operator read when something fails, and that it disappears afterwards. On both databases."""

import logging

import pytest
from tests.faults.installation import Installation

from teraflock.base.errors import TeraflockError
from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault
from teraflock.fleet import store as fleet
from teraflock.instance.claims import NoCapacity
from teraflock.instance.engine_errors import (
    DoesNotBoot,
    EngineBusy,
    EngineDown,
    EngineMissing,
    EngineRefused,
    NoRoom,
)
from teraflock.instance.events import problem_texts
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase

CHORES = ("make up", "tera doctor", "server's log", "engine", "enlarge the pool")


def launched(installation: Installation) -> Instance:
    order = Order(name="web", shape=ShapeWish(vcpus=1))
    (made,) = installation.service.launch(installation.tenant.actor, installation.tenant.project, order)
    return made


def seen(installation: Installation) -> Instance:
    return installation.service.view(installation.tenant.project.id, "web").instance


def test_problem_is_shown_to_both_and_cleared_when_it_is_over(installation: Installation) -> None:
    launched(installation)
    installation.trouble.faults(SimulatedFault(call="create", kind=Kind.ENGINE_DOWN, times=50))
    for _ in range(4):
        installation.workers[0].turn()
        installation.wait(3)
    waiting = seen(installation)
    assert waiting.problem.startswith("Its host does not answer now")
    assert "The simulated engine does not answer" in waiting.problem_operator
    installation.settle()
    assert (seen(installation).phase, seen(installation).problem, seen(installation).problem_operator) == (
        Phase.RUNNING,
        "",
        "",
    )


@pytest.mark.parametrize(
    ("kind", "minutes", "phase"),
    [
        (Kind.BUSY, 10, Phase.RUNNING),
        (Kind.BUSY, 30, Phase.FAILED),
        (Kind.ENGINE_DOWN, 1, Phase.RUNNING),
        (Kind.ENGINE_DOWN, 10, Phase.FAILED),
    ],
)
def test_launch_waits_longer_for_a_busy_engine_than_for_one_that_is_down(
    installation: Installation, kind: Kind, minutes: int, phase: Phase
) -> None:
    launched(installation)
    installation.trouble.faults(SimulatedFault(call="create", kind=kind, times=FOREVER))
    for _ in range(minutes * 12):
        installation.workers[0].turn()
        installation.wait(5)
    installation.settle()
    assert seen(installation).phase == phase


@pytest.mark.parametrize(
    ("kind", "times", "phase"),
    [
        (Kind.FAILED, 2, Phase.RUNNING),
        (Kind.FAILED, FOREVER, Phase.FAILED),
        (Kind.REFUSED, 1, Phase.FAILED),
    ],
)
@pytest.mark.parametrize("call", ["create", "start"])
def test_launch_is_tried_again_where_the_engine_failed_and_not_where_it_refused(
    installation: Installation,
    call: str,
    kind: Kind,
    times: int,
    phase: Phase,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "teraflock.reconcile")
    launched(installation)
    installation.trouble.faults(SimulatedFault(call=call, kind=kind, times=times))
    for _ in range(60):
        installation.workers[0].turn()
        installation.wait(5)
    assert seen(installation).phase == phase
    assert f"{call} failed" in caplog.text, "the operator is told to look here for the engine's reason"


@pytest.mark.parametrize("kind", [EngineDown, EngineBusy, EngineRefused, EngineMissing, NoRoom])
def test_tenants_do_not_read_operator_details(kind: type[TeraflockError]) -> None:
    tenant, operator = problem_texts(kind("The container engine failed", hint="`make up` starts it"))
    assert operator == "The container engine failed. `make up` starts it"
    assert tenant
    assert not any(chore in tenant for chore in CHORES)


def test_tenant_reads_a_problem_that_the_tenant_can_fix() -> None:
    sentence, hint = "The guest did not answer within 90 seconds", "`tera logs` shows its console"
    assert problem_texts(DoesNotBoot(sentence, hint=hint)) == (f"{sentence}. {hint}", "")
    assert "ValueError" not in problem_texts(ValueError("secret"))[0]


def test_failed_snapshot_has_a_reason_and_frees_its_name(installation: Installation) -> None:
    launched(installation)
    installation.settle()
    installation.trouble.faults(SimulatedFault(call="snapshot", kind=Kind.NO_ROOM))
    installation.service.snapshots.create(
        installation.tenant.actor, installation.tenant.project, "web", "before"
    )
    for _ in range(3):
        installation.workers[0].turn()
        installation.wait(1)
    (failed,) = installation.service.snapshots.page(installation.tenant.project.id, "web")
    assert failed.state == "failed"
    assert "disks of its host are full" in failed.problem
    assert seen(installation).problem == "", "the instance itself has no problem"
    installation.service.snapshots.create(
        installation.tenant.actor, installation.tenant.project, "web", "before"
    )
    installation.settle()
    (made,) = installation.service.snapshots.page(installation.tenant.project.id, "web")
    assert (made.state, made.problem) == ("ready", "")


def test_lost_disk_is_shown_until_it_is_acknowledged(installation: Installation) -> None:
    instance = launched(installation)
    installation.settle()
    installation.trouble.deleted_by_hand(instance.id)
    installation.settle()
    assert seen(installation).phase == Phase.RUNNING
    assert seen(installation).notice.startswith("Its disk and snapshots were lost at 2026-11-15")
    installation.service.stop(installation.tenant.actor, installation.tenant.project, "web")
    installation.settle()
    assert seen(installation).notice
    installation.service.acknowledge(installation.tenant.actor, installation.tenant.project, "web")
    assert seen(installation).notice == ""


def drain(installation: Installation, *, but: int = 0) -> None:
    def work(tx: object) -> None:
        for host in fleet.outlines(tx)[but:]:  # type: ignore[arg-type]
            fleet.set_drained(tx, host.id, True)  # type: ignore[arg-type]

    installation.database.write(work)


def test_error_counts_drained_hosts(installation: Installation) -> None:
    drain(installation)
    with pytest.raises(NoCapacity, match="No host accepts new instances now: 3 are drained") as refused:
        launched(installation)
    assert "Stop or delete" not in refused.value.hint
    with installation.database.read() as tx:
        name = fleet.outlines(tx)[0].name
    with pytest.raises(NoCapacity, match=f"The host `{name}` accepts no new instances now: it is drained"):
        installation.service.launch(
            installation.tenant.actor, installation.tenant.project, Order(shape=ShapeWish(vcpus=1), host=name)
        )
