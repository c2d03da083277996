"""Kills a server with `kill -9` at every point of every operation, forwards and while undoing.

The points come from the step lists of the code, so new steps are covered without a change here. After the
restart, the database and the engine agree within the documented time, and nothing is left over.
"""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.faults.servers import HOMES, Site
from tests.long import sampled

from teraflock.drivers.simulated.faults import Kind, SimulatedFault, When
from teraflock.instance.model import Operation
from teraflock.instance.orders import Order, ShapeWish
from teraflock.reconcile.rehearsal import points
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.shape import ShapeRequest

ORDER = Order(name="one", shape=ShapeWish(gpu="V100"))


def launched(site: Site) -> None:
    site.ask("launch", ORDER)
    site.work()


def stopped(site: Site) -> None:
    launched(site)
    site.ask("stop", "one")
    site.work()


def kept(site: Site) -> None:
    launched(site)
    site.ask("snapshots.create", "one", "before")
    site.work()


def kept_and_stopped(site: Site) -> None:
    kept(site)
    site.ask("stop", "one")
    site.work()


def publish(site: Site) -> None:
    tenant = site.tenant
    site.cloud.services.nouns.images.from_instance(tenant.actor, tenant.project, "mine", "one")


def launch(site: Site, key: str = "one-key") -> str:
    return site.launch_once(key, LaunchRequest(name="one", shape=ShapeRequest(gpu="V100")))


def limits_changed(site: Site) -> None:
    """Change limits manually, and let a loop notice it before the server that will die starts."""
    (sighting,) = site.engine.sightings()
    site.trouble.limits_changed_by_hand(sighting.instance_id, vcpus=7, ram_bytes=1 << 30)
    site.cloud.loops.drift.turn()


DOES_NOT_COME_UP = SimulatedFault(call="ready", kind=Kind.DOES_NOT_BOOT)

SCENES: dict[Operation, tuple[Callable[[Site], None], Callable[[Site], object], SimulatedFault | None]] = {
    Operation.LAUNCH: (lambda site: None, launch, DOES_NOT_COME_UP),
    Operation.START: (stopped, lambda site: site.ask("start", "one"), DOES_NOT_COME_UP),
    Operation.STOP: (launched, lambda site: site.ask("stop", "one"), None),
    Operation.RESTART: (launched, lambda site: site.ask("restart", "one"), DOES_NOT_COME_UP),
    Operation.RESIZE: (
        launched,
        lambda site: site.ask("resize", "one", ShapeWish(vcpus=3, disk_bytes=256 << 30)),
        SimulatedFault(call="resize", when=When.HALF, kind=Kind.REFUSED),
    ),
    Operation.REFIT: (launched, limits_changed, None),
    Operation.RESIZE_RESTART: (
        launched,
        lambda site: site.ask("resize", "one", ShapeWish(gpus=3)),
        DOES_NOT_COME_UP,
    ),
    Operation.SNAPSHOT: (
        launched,
        lambda site: site.ask("snapshots.create", "one", "now"),
        SimulatedFault(call="snapshot", when=When.HALF, kind=Kind.REFUSED),
    ),
    Operation.RESTORE: (kept_and_stopped, lambda site: site.ask("snapshots.restore", "one", "before"), None),
    Operation.RESTORE_RESTART: (
        kept,
        lambda site: site.ask("snapshots.restore", "one", "before"),
        DOES_NOT_COME_UP,
    ),
    Operation.PUBLISH: (launched, publish, SimulatedFault(call="publish", when=When.HALF, kind=Kind.REFUSED)),
    Operation.DELETE: (kept, lambda site: site.ask("delete", "one"), None),
}
"""For each operation: the initial state, the request, and the fault that makes it undo."""

CALLS = ("prepare", "create", "start", "expose", "ready", "stop", "resize", "delete")
WALK = [(operation, point) for operation in Operation for point in points(operation)]


@pytest.fixture
def site() -> Iterator[Site]:
    with TemporaryDirectory(prefix="tera-walk-", dir=HOMES) as folder:
        site = Site(Path(folder))
        yield site
        site.close()


def test_walk_covers_every_operation() -> None:
    assert set(SCENES) == set(Operation)
    assert len(WALK) >= 2 * len(Operation)


@pytest.mark.parametrize(
    ("operation", "point"), sampled(WALK, every=16, because="every point", id=lambda case: str(case[1]))
)
def test_server_killed_at_any_point_stays_consistent(site: Site, operation: Operation, point: str) -> None:
    set_up, wish, turn_back = SCENES[operation]
    set_up(site)
    if ":undo:" in point:
        assert turn_back is not None, f"{operation} can be undone: define a fault for it"
        site.trouble.faults(turn_back)
    wish(site)
    assert site.death(site.serve(dies_at=point)) == -signal.SIGKILL, f"{point} was never reached"
    site.serve()
    site.seconds_to_rest()
    if operation == Operation.LAUNCH:
        before = [view.instance.id for view in site.service.page(site.tenant.project.id, limit=9, gone=True)]
        assert [launch(site)] == before, "the same key returns the same instance"
        after = [view.instance.id for view in site.service.page(site.tenant.project.id, limit=9, gone=True)]
        assert before == after, "no second instance is created"
    for view in site.service.page(site.tenant.project.id, limit=9):
        site.ask("delete", view.instance.id)
    site.seconds_to_rest()
    assert list(site.engine.sightings()) == []


RENTED = [point for operation in (Operation.LAUNCH, Operation.DELETE) for point in points(operation)]


@pytest.mark.parametrize("point", sampled(RENTED, every=6, because="every point on a cloud"))
def test_killed_server_rents_one_machine_and_gives_it_back(site: Site, point: str) -> None:
    order = Order(name="one", site="sky", type="gpu")
    if point.startswith("delete"):
        site.ask("launch", order)
        site.work()
        site.ask("delete", "one")
    else:
        if ":undo:" in point:
            site.sky_trouble.faults(DOES_NOT_COME_UP)
        site.ask("launch", order)
    assert site.death(site.serve(dies_at=point)) == -signal.SIGKILL, f"{point} was never reached"
    site.serve()
    site.seconds_to_rest()
    assert len(list(site.sky.sightings())) <= 1
    for view in site.service.page(site.tenant.project.id, limit=9):
        site.ask("delete", view.instance.id)
    site.seconds_to_rest()
    assert list(site.sky.sightings()) == []


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("call", ["create", "delete"])
def test_server_killed_during_a_call_to_a_cloud(site: Site, call: str, when: When) -> None:
    site.ask("launch", Order(name="one", site="sky", type="gpu"))
    if call == "delete":
        site.work()
        site.ask("delete", "one")
    site.sky_trouble.faults(SimulatedFault(call=call, when=when, kind=Kind.KILLED))
    assert site.death(site.serve()) == -signal.SIGKILL
    site.serve()
    site.seconds_to_rest()


@pytest.mark.parametrize("call", sampled(CALLS, every=4, because="every call"))
@pytest.mark.parametrize("when", When)
def test_server_killed_during_a_call(site: Site, call: str, when: When) -> None:
    """The engine has done nothing, half or all of the call, and nothing is recorded."""
    launched(site)
    site.trouble.faults(SimulatedFault(call=call, when=when, kind=Kind.KILLED))
    if call == "resize":
        site.ask("resize", "one", ShapeWish(vcpus=3))
    elif call in ("stop", "delete"):
        site.ask("delete", "one")
    else:
        site.ask("launch", Order(name="two"))
    assert site.death(site.serve()) == -signal.SIGKILL
    site.serve()
    site.seconds_to_rest()
