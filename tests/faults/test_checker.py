"""The checker reports every kind of damage to a consistent installation, and nothing without damage."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from tests.faults.checker import charged_on_lost_hosts, faults
from tests.faults.installation import Installation
from tests.faults.machine import fresh_sqlite

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.model import AddressTaken, Guest, SimulatedImage
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.orders import Order, ShapeWish


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation with one running, one stopped and one deleted instance."""
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    installation = Installation(fresh_sqlite(clock), MemoryWorld(), clock)
    tenant = installation.tenant
    for name, gpus in (("runs", 1), ("rests", 0), ("gone", 0)):
        order = Order(name=name, shape=ShapeWish(gpu="V100" if gpus else "", gpus=gpus))
        installation.service.launch(tenant.actor, tenant.project, order)
    installation.settle()
    installation.service.snapshots.create(tenant.actor, tenant.project, "runs", "kept")
    installation.service.stop(tenant.actor, tenant.project, "rests")
    installation.service.delete(tenant.actor, tenant.project, "gone")
    installation.settle()
    assert faults(installation.database, installation.world, clock.now()) == []
    yield installation
    installation.database.close()


def by_name(installation: Installation, name: str) -> str:
    pages = installation.service.page(installation.tenant.project.id, limit=9, gone=True)
    return next(view.instance.id for view in pages if view.instance.name == name)


def on_engine(installation: Installation, name: str, **changes: object) -> None:
    with installation.world.write() as turn:
        found = turn.get(Guest, by_name(installation, name))
        assert found is not None
        turn.put(replace(found, **changes))


def in_rows(installation: Installation, sql: str, **values: object) -> None:
    assert installation.database.write(lambda tx: tx.run(sql, **values)) > 0


def stray(installation: Installation) -> None:
    with installation.world.write() as turn:
        found = turn.get(Guest, by_name(installation, "runs"))
        assert found is not None
        handle = replace(found.machine.handle, instance_id="ins_stray")
        turn.put(replace(found, machine=replace(found.machine, handle=handle)))


def put(installation: Installation, thing: AddressTaken | SimulatedImage) -> None:
    with installation.world.write() as turn:
        turn.put(thing)


def other_limits(installation: Installation) -> None:
    installation.trouble.limits_changed_by_hand(by_name(installation, "runs"), vcpus=99, ram_bytes=1 << 40)


DAMAGE: dict[str, tuple[Callable[[Installation], object], str]] = {
    "a guest lost": (lambda h: h.trouble.deleted_by_hand(by_name(h, "runs")), "does not run"),
    "a disk lost": (lambda h: h.trouble.deleted_by_hand(by_name(h, "rests")), "disk is not on the engine"),
    "a guest stopped": (lambda h: h.trouble.stopped_by_hand(by_name(h, "runs")), "does not run"),
    "an incomplete guest": (lambda h: on_engine(h, "rests", whole=False), "incomplete"),
    "a running guest": (lambda h: on_engine(h, "rests", running=True), "is running or"),
    "a stray guest": (stray, "in no row"),
    "ports closed": (lambda h: on_engine(h, "runs", ports=()), "open ports"),
    "a snapshot lost": (lambda h: on_engine(h, "runs", snapshots={}), "its snapshots are"),
    "snapshot bytes": (
        lambda h: in_rows(h, "UPDATE instance SET held_snapshots_bytes = 1 WHERE name = 'runs'"),
        "its snapshots keep",
    ),
    "snapshot bytes of a deleted instance": (
        lambda h: in_rows(h, "UPDATE instance SET held_snapshots_bytes = 1 WHERE name = 'gone'"),
        "still has snapshots",
    ),
    "other limits": (other_limits, "has the limits"),
    "an address": (
        lambda h: put(h, AddressTaken(key="x/y/10.0.0.1", instance_id="i")),
        "in use by no instance",
    ),
    "an image": (
        lambda h: put(h, SimulatedImage(key="i", mark="m", recipe="", size_bytes=1)),
        "image in no row",
    ),
    "an image lost": (
        lambda h: in_rows(h, "UPDATE image SET state = 'failed'"),
        "that is still on the engine",
    ),
    "a card assigned twice": (
        lambda h: in_rows(h, "UPDATE host_gpu SET instance_id = :id", id=by_name(h, "runs")),
        "has the cards",
    ),
    "a card of a deleted instance": (
        lambda h: in_rows(
            h, "UPDATE host_gpu SET instance_id = :id WHERE instance_id IS NULL", id=by_name(h, "gone")
        ),
        "still holds",
    ),
    "a port of no instance": (
        lambda h: in_rows(h, "UPDATE host_port SET instance_id = 'ins_x'"),
        "in no row",
    ),
    "a phase": (
        lambda h: in_rows(h, "UPDATE instance SET phase = 'starting' WHERE name = 'runs'"),
        "not idle",
    ),
    "a wish": (lambda h: in_rows(h, "UPDATE instance SET wanted = 'gone' WHERE name = 'runs'"), "is wanted"),
    "a lease": (
        lambda h: in_rows(h, "UPDATE instance SET lease_owner = 'w' WHERE name = 'rests'"),
        "still has an operation",
    ),
    "memory held": (
        lambda h: in_rows(h, "UPDATE instance SET held_ram_bytes = 1 WHERE name = 'rests'"),
        "holds cards, processors or memory",
    ),
    "too much memory reserved": (
        lambda h: in_rows(h, "UPDATE instance SET held_ram_bytes = 1000000000000000 WHERE name = 'runs'"),
        "of memory reserved",
    ),
    "an event": (
        lambda h: in_rows(h, "DELETE FROM event WHERE kind = 'instance.moved'"),
        "but its row counts",
    ),
}


def test_checker_reports_running_instances_on_lost_hosts(installation: Installation) -> None:
    assert charged_on_lost_hosts(installation.database) == []
    in_rows(installation, "UPDATE host SET state = 'away'")
    (told,) = charged_on_lost_hosts(installation.database)
    assert told.startswith(by_name(installation, "runs"))


@pytest.mark.parametrize("kind", DAMAGE)
def test_checker_reports_damage(installation: Installation, kind: str) -> None:
    damage, words = DAMAGE[kind]
    damage(installation)
    told = faults(installation.database, installation.world, installation.clock.now())
    assert any(words in sentence for sentence in told), told
