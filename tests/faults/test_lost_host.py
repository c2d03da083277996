"""Loses a host at every point of every operation. The host comes back, or not before everything is deleted.

While a host is recorded as away, nothing on it counts as running, so nothing is charged, and the operation
waits with everything it holds. When the host is back, with or without a reboot, the operation is completed,
and no card, port, snapshot or image is left over. A delete is accepted at any time, and ends when the host
returns.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from operator import attrgetter

import pytest
from tests.faults.checker import charged_on_lost_hosts, faults
from tests.faults.house import House
from tests.long import sampled

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.faults import FOREVER, Kind, SimulatedFault, When
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.model import Instance, Operation
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.rules import COURSES
from teraflock.instance.states import BILLABLE, Phase, Wanted
from teraflock.reconcile.rehearsal import points
from teraflock.storage.memory import MemoryDatabase
from teraflock.storage.migrate import migrate

ENDINGS = ("back", "rebooted", "deleted")


def ask(house: House, act: str, *words: object) -> None:
    attrgetter(act)(house.service)(house.tenant.actor, house.tenant.project, *words)


def launched(house: House) -> None:
    ask(house, "launch", Order(name="one", shape=ShapeWish(gpu="V100")))
    house.settle()


def stopped(house: House) -> None:
    launched(house)
    ask(house, "stop", "one")
    house.settle()


def kept(house: House) -> None:
    launched(house)
    ask(house, "snapshots.create", "one", "before")
    house.settle()


def kept_and_stopped(house: House) -> None:
    kept(house)
    ask(house, "stop", "one")
    house.settle()


def limits_changed(house: House) -> None:
    house.trouble.limits_changed_by_hand(one(house).id, vcpus=7, ram_bytes=1 << 30)
    house.workers[0].look()


def publish(house: House) -> None:
    house.images.from_instance(house.tenant.actor, house.tenant.project, "mine", "one")


DOES_NOT_COME_UP = SimulatedFault(call="ready", kind=Kind.DOES_NOT_BOOT)
SCENES: dict[Operation, tuple[Callable[[House], None], Callable[[House], None], SimulatedFault | None]] = {
    Operation.LAUNCH: (
        lambda house: None,
        lambda house: ask(house, "launch", Order(name="one", shape=ShapeWish(gpu="V100"))),
        DOES_NOT_COME_UP,
    ),
    Operation.START: (stopped, lambda house: ask(house, "start", "one"), DOES_NOT_COME_UP),
    Operation.STOP: (launched, lambda house: ask(house, "stop", "one"), None),
    Operation.RESTART: (launched, lambda house: ask(house, "restart", "one"), DOES_NOT_COME_UP),
    Operation.RESIZE: (
        launched,
        lambda house: ask(house, "resize", "one", ShapeWish(vcpus=3, disk_bytes=256 << 30)),
        SimulatedFault(call="resize", when=When.HALF, kind=Kind.REFUSED),
    ),
    Operation.REFIT: (launched, limits_changed, None),
    Operation.RESIZE_RESTART: (
        launched,
        lambda house: ask(house, "resize", "one", ShapeWish(gpus=2)),
        DOES_NOT_COME_UP,
    ),
    Operation.SNAPSHOT: (
        launched,
        lambda house: ask(house, "snapshots.create", "one", "now"),
        SimulatedFault(call="snapshot", when=When.HALF, kind=Kind.REFUSED),
    ),
    Operation.RESTORE: (
        kept_and_stopped,
        lambda house: ask(house, "snapshots.restore", "one", "before"),
        None,
    ),
    Operation.RESTORE_RESTART: (
        kept,
        lambda house: ask(house, "snapshots.restore", "one", "before"),
        DOES_NOT_COME_UP,
    ),
    Operation.PUBLISH: (launched, publish, SimulatedFault(call="publish", when=When.HALF, kind=Kind.REFUSED)),
    Operation.DELETE: (kept, lambda house: ask(house, "delete", "one"), None),
}
WALK = [(operation, point) for operation in Operation for point in points(operation)]


@pytest.fixture
def house() -> Iterator[House]:
    clock, database = FixedClock(datetime(2026, 11, 15, tzinfo=UTC)), MemoryDatabase()
    migrate(database, clock)
    house = House(database, MemoryWorld(), clock)
    yield house
    database.close()


def one(house: House) -> Instance:
    (view,) = house.service.page(house.tenant.project.id, limit=9, gone=True)
    return view.instance


def turn(house: House) -> None:
    house.workers[0].look()
    house.workers[0].turn()
    house.wait(5)


def lose_at(house: House, point: str) -> str:
    """Work until the point is reached, lose the host there, and go on until the loops notice it. Return the
    host."""
    (view,) = house.service.page(house.tenant.project.id, limit=9)
    host, reached = view.host_name or "", []

    def befalls(there: str) -> None:
        if there == point:
            reached.append(there)
            house.trouble.host_goes_away(host)

    house.workers[0].befalls = befalls
    for _ in range(9):
        turn(house)
    assert reached, f"{point} was never reached"
    return host


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("operation", "point"), sampled(WALK, every=12, because="every point", id=lambda case: str(case[1]))
)
def test_lost_host_is_not_charged_and_stays_consistent(
    house: House, operation: Operation, point: str, ending: str
) -> None:
    set_up, wish, turn_back = SCENES[operation]
    set_up(house)
    if ":undo:" in point:
        assert turn_back is not None
        house.trouble.faults(turn_back)
    wish(house)
    host = lose_at(house, point)
    assert charged_on_lost_hosts(house.database) == []
    assert one(house).phase not in BILLABLE
    if ending == "deleted" and one(house).phase != Phase.GONE:
        ask(house, "delete", "one")
        turn(house)
        assert one(house).phase in (Phase.DELETING, Phase.GONE)
    elif ending == "rebooted":
        house.trouble.host_comes_back(host, rebooted=True)
    house.settle()
    assert faults(house.database, house.world, house.clock.now()) == []
    found = one(house)
    if ending != "deleted" and COURSES[operation].during == Phase.CHANGING and ":undo:" not in point:
        assert (found.phase, found.wanted) == (Phase.RUNNING, Wanted.RUNNING), found.problem
    assert str(found.wanted) == found.phase or found.phase == Phase.FAILED


@pytest.mark.parametrize("point", ["launch.ready:after", "restart.ready:after", "snapshot.snapshot:after"])
def test_operation_that_ends_on_a_lost_host_is_away(house: House, point: str) -> None:
    """The engine reports no host, but still does what it is asked. Nobody is charged until it reports the
    host again."""
    set_up, wish, _ = SCENES[Operation(point.partition(".")[0])]
    set_up(house)
    wish(house)

    def befalls(there: str) -> None:
        if there == point:
            house.trouble.faults(SimulatedFault(call="hosts", kind=Kind.ENGINE_DOWN, times=FOREVER))
            for _ in range(2):
                house.workers[1].hosts.turn()

    house.workers[0].befalls = befalls
    for _ in range(9):
        turn(house)
    assert one(house).phase == Phase.AWAY
    assert one(house).progress is None, "the engine did it anyway"
    house.settle()
    assert one(house).phase == Phase.RUNNING
    assert faults(house.database, house.world, house.clock.now()) == []
