"""Loses a host at every point of every operation. It comes back, perhaps after everything is deleted or elsewhere.

While a host is recorded as away, nothing on it counts as running, so nothing is charged, and the operation
waits with everything it holds. When the host is back, with or without a reboot, the operation is completed,
and no card, port, snapshot or image is left over. A delete is accepted at any time, and ends when the host
returns. If the host stays lost, an instance that should run is created again elsewhere, whatever it was doing.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from operator import attrgetter

import pytest
from tests.faults.checker import charged_on_lost_hosts, faults
from tests.faults.installation import Installation
from tests.long import sampled

from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault, When
from teraflock.instance.model import Instance, Operation, RestartPolicy
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.rules import COURSES
from teraflock.instance.states import BILLABLE, Phase, Wanted
from teraflock.reconcile.moving import MOVE_AFTER
from teraflock.reconcile.rehearsal import points

ENDINGS = ("back", "rebooted", "deleted", "elsewhere")
ORDER = Order(name="one", shape=ShapeWish(gpu="V100"), restart_policy=RestartPolicy.ELSEWHERE)


def ask(installation: Installation, act: str, *words: object) -> None:
    attrgetter(act)(installation.service)(installation.tenant.actor, installation.tenant.project, *words)


def launched(installation: Installation) -> None:
    ask(installation, "launch", ORDER)
    installation.settle()


def stopped(installation: Installation) -> None:
    launched(installation)
    ask(installation, "stop", "one")
    installation.settle()


def kept(installation: Installation) -> None:
    launched(installation)
    ask(installation, "snapshots.create", "one", "before")
    installation.settle()


def kept_and_stopped(installation: Installation) -> None:
    kept(installation)
    ask(installation, "stop", "one")
    installation.settle()


def limits_changed(installation: Installation) -> None:
    (view,) = installation.service.page(installation.tenant.project.id, limit=9)
    installation.trouble.limits_changed_by_hand(view.instance.id, vcpus=7, ram_bytes=1 << 30)
    installation.workers[0].look()


def publish(installation: Installation) -> None:
    installation.images.from_instance(installation.tenant.actor, installation.tenant.project, "mine", "one")


DOES_NOT_COME_UP = SimulatedFault(call="ready", kind=Kind.DOES_NOT_BOOT)
SCENES: dict[
    Operation, tuple[Callable[[Installation], None], Callable[[Installation], None], SimulatedFault | None]
] = {
    Operation.LAUNCH: (
        lambda installation: None,
        lambda installation: ask(installation, "launch", ORDER),
        DOES_NOT_COME_UP,
    ),
    Operation.START: (stopped, lambda installation: ask(installation, "start", "one"), DOES_NOT_COME_UP),
    Operation.STOP: (launched, lambda installation: ask(installation, "stop", "one"), None),
    Operation.RESTART: (launched, lambda installation: ask(installation, "restart", "one"), DOES_NOT_COME_UP),
    Operation.RESIZE: (
        launched,
        lambda installation: ask(installation, "resize", "one", ShapeWish(vcpus=3, disk_bytes=256 << 30)),
        SimulatedFault(call="resize", when=When.HALF, kind=Kind.REFUSED),
    ),
    Operation.REFIT: (launched, limits_changed, None),
    Operation.RESIZE_RESTART: (
        launched,
        lambda installation: ask(installation, "resize", "one", ShapeWish(gpus=2)),
        DOES_NOT_COME_UP,
    ),
    Operation.SNAPSHOT: (
        launched,
        lambda installation: ask(installation, "snapshots.create", "one", "now"),
        SimulatedFault(call="snapshot", when=When.HALF, kind=Kind.REFUSED),
    ),
    Operation.RESTORE: (
        kept_and_stopped,
        lambda installation: ask(installation, "snapshots.restore", "one", "before"),
        None,
    ),
    Operation.RESTORE_RESTART: (
        kept,
        lambda installation: ask(installation, "snapshots.restore", "one", "before"),
        DOES_NOT_COME_UP,
    ),
    Operation.PUBLISH: (launched, publish, SimulatedFault(call="publish", when=When.HALF, kind=Kind.REFUSED)),
    Operation.DELETE: (kept, lambda installation: ask(installation, "delete", "one"), None),
}
WALK = [(operation, point) for operation in Operation for point in points(operation)]


@pytest.fixture
def installation() -> Iterator[Installation]:
    installation = Installation.in_memory(datetime(2026, 11, 15, tzinfo=UTC))
    yield installation
    installation.database.close()


def one(installation: Installation) -> Instance:
    (view,) = installation.service.page(installation.tenant.project.id, limit=9, gone=True)
    return view.instance


def turn(installation: Installation) -> None:
    installation.workers[0].look()
    installation.workers[0].turn()
    installation.wait(5)


def lose_at(installation: Installation, point: str) -> str:
    """Work until the point is reached, lose the host there, and go on until the loops notice it. Return the
    host."""
    (view,) = installation.service.page(installation.tenant.project.id, limit=9)
    host, reached = view.host_name or "", []

    def befalls(there: str) -> None:
        if there == point:
            reached.append(there)
            installation.trouble.host_goes_away(host)

    installation.workers[0].befalls = befalls
    for _ in range(9):
        turn(installation)
    assert reached, f"{point} was never reached"
    return host


def ends_elsewhere(installation: Installation, host: str) -> None:
    """The host stays lost. An instance that should run does so on another one."""
    installation.wait(MOVE_AFTER.total_seconds())
    for _ in range(4):
        turn(installation)
    (view,) = installation.service.page(installation.tenant.project.id, limit=9, gone=True)
    if view.instance.wanted == Wanted.RUNNING and view.instance.phase != Phase.FAILED:
        assert (view.instance.phase, view.host_name != host) == (Phase.RUNNING, True), view.instance.problem
    assert charged_on_lost_hosts(installation.database) == []


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("operation", "point"), sampled(WALK, every=12, because="every point", id=lambda case: str(case[1]))
)
def test_lost_host_is_not_charged_and_stays_consistent(
    installation: Installation, operation: Operation, point: str, ending: str
) -> None:
    set_up, wish, turn_back = SCENES[operation]
    set_up(installation)
    if ":undo:" in point:
        assert turn_back is not None
        installation.trouble.faults(turn_back)
    wish(installation)
    host = lose_at(installation, point)
    assert charged_on_lost_hosts(installation.database) == []
    assert one(installation).phase not in BILLABLE
    if ending == "deleted" and one(installation).phase != Phase.GONE:
        ask(installation, "delete", "one")
        turn(installation)
        assert one(installation).phase in (Phase.DELETING, Phase.GONE)
    elif ending == "rebooted":
        installation.trouble.host_comes_back(host, rebooted=True)
    elif ending == "elsewhere":
        ends_elsewhere(installation, host)
    installation.settle()
    assert faults(installation.database, installation.world, installation.clock.now()) == []
    found = one(installation)
    if ending != "deleted" and COURSES[operation].during == Phase.CHANGING and ":undo:" not in point:
        assert (found.phase, found.wanted) == (Phase.RUNNING, Wanted.RUNNING), found.problem
    assert str(found.wanted) == found.phase or found.phase == Phase.FAILED


@pytest.mark.parametrize("point", ["launch.ready:after", "restart.ready:after", "snapshot.snapshot:after"])
def test_operation_that_ends_on_a_lost_host_is_away(installation: Installation, point: str) -> None:
    """The engine reports no host, but still does what it is asked. Nobody is charged until it reports the
    host again."""
    set_up, wish, _ = SCENES[Operation(point.partition(".")[0])]
    set_up(installation)
    wish(installation)

    def befalls(there: str) -> None:
        if there == point:
            installation.trouble.faults(SimulatedFault(call="hosts", kind=Kind.ENGINE_DOWN, times=FOREVER))
            for _ in range(2):
                installation.workers[1].hosts.turn()

    installation.workers[0].befalls = befalls
    for _ in range(9):
        turn(installation)
    assert one(installation).phase == Phase.AWAY
    assert one(installation).progress is None, "the engine did it anyway"
    installation.settle()
    assert one(installation).phase == Phase.RUNNING
    assert faults(installation.database, installation.world, installation.clock.now()) == []
