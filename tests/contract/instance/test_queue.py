"""Launches that wait for room start once, when there is room and quota, and leave nothing behind. On both databases."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from tests.faults.house import House

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.reservation import store as reservations
from teraflock.instance.claims import NoCapacity
from teraflock.instance.model import Instance, PlaceWish
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.queue.model import QueuedLaunch, QueueState
from teraflock.instance.queue.service import WAITING_MAX
from teraflock.reconcile.queue import BLOCKED_FOR, QueueLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import ProjectId, Quota
from teraflock.tenant.project.store import remove_project, set_quota

CARD = ShapeWish(gpu="V100")
HOST = ShapeWish(gpu="V100", gpus=2)


@pytest.fixture
def house(database: Database) -> House:
    """Two hosts with two cards each, and one without."""
    return House(database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC)))


def launch(house: House, **order: object) -> tuple[tuple[Instance, ...], QueuedLaunch | None]:
    wanted = Order(**{"shape": CARD, "queue": True, **order})  # type: ignore[arg-type]
    return house.service.launch_or_queue(house.tenant.actor, house.tenant.project, wanted)


def queued(house: House, **order: object) -> QueuedLaunch:
    made, waits = launch(house, **order)
    assert not made
    assert waits is not None
    return waits


def loop(house: House) -> QueueLoop:
    return QueueLoop(house.workers[0].around, house.service.queue)


def end(house: House, instance: Instance) -> None:
    house.service.delete(house.tenant.actor, house.tenant.project, instance.id)
    house.settle()


def state(house: House, waits: QueuedLaunch) -> QueuedLaunch:
    return house.service.queue.show(house.tenant.project.id, waits.id)


def test_launch_with_room_does_not_wait(house: House) -> None:
    made, waits = launch(house)
    assert len(made) == 1
    assert waits is None


def test_waits_for_room_and_starts_once(house: House) -> None:
    first, _ = launch(house, instances=4)
    waits = queued(house, name="next", instances=2)
    assert house.service.usage(house.tenant.project.id).instances == 4, (
        "a waiting launch counts against no quota"
    )
    turns = loop(house)
    turns.turn()
    assert state(house, waits).state == QueueState.WAITING
    end(house, first[0])
    turns.turn()
    assert state(house, waits).state == QueueState.WAITING, "all or none"
    end(house, first[1])
    turns.turn()
    loop(house).turn()
    started = state(house, waits)
    assert started.state == QueueState.LAUNCHED
    assert started.launch is None, "the order may have secrets"
    views = house.service.page(house.tenant.project.id, limit=10)
    assert sorted(view.instance.name for view in views if view.instance.name.startswith("next")) == [
        "next-1",
        "next-2",
    ]
    assert {view.instance.id for view in views} >= set(started.instance_ids)
    with house.database.read() as tx:
        assert reservations.reserved(tx) == {}


def test_reserved_host_is_closed_to_other_launches(house: House) -> None:
    first, _ = launch(house, instances=4)
    waits = queued(house, shape=HOST)
    loop(house).turn()
    with house.database.read() as tx:
        ((host, whose),) = reservations.reserved(tx).items()
    assert whose == waits.id
    end(house, next(each for each in first if each.host_id == host))
    loop(house).turn()
    with pytest.raises(NoCapacity):
        house.service.launch(house.tenant.actor, house.tenant.project, Order(shape=CARD))
    explained = house.service.explain(house.tenant.project, Order(shape=CARD)).decision
    reasons = {str(each.room.host_id): each.obstacle.reason for each in explained.rejected}
    assert reasons[host] == "reserved for a queued launch"
    end(house, next(each for each in first if each.host_id == host and each.id not in _gone(house)))
    loop(house).turn()
    assert state(house, waits).state == QueueState.LAUNCHED


def _gone(house: House) -> set[str]:
    views = house.service.page(house.tenant.project.id, limit=10, gone=True)
    return {view.instance.id for view in views if view.instance.phase == "gone"}


def test_cancelled_launch_frees_its_hosts_and_never_starts(house: House) -> None:
    first, _ = launch(house, instances=4)
    waits = queued(house, name="big", shape=HOST)
    loop(house).turn()
    house.service.queue.cancel(house.tenant.actor, house.tenant.project, "big")
    assert house.service.queue.cancel(house.tenant.actor, house.tenant.project, waits.id).state == "cancelled"
    for each in first:
        end(house, each)
    loop(house).turn()
    assert state(house, waits).state == QueueState.CANCELLED
    assert launch(house)[0], "its hosts are free again"


def test_quota_counts_when_it_starts_and_does_not_block_those_behind(house: House) -> None:
    quota = Quota(gpus_default=2)
    house.database.write(partial(set_quota, id=house.tenant.project.id, quota=quota))
    first, _ = launch(house, instances=2)
    waits = queued(house, name="over")
    assert "quota" in waits.reason
    behind = queued(house, name="plain", shape=CARD, priority=-1)
    house.clock.move(timedelta(seconds=1))
    loop(house).turn()
    assert state(house, waits).state == QueueState.WAITING
    assert "quota" in state(house, behind).reason
    end(house, first[0])
    house.clock.move(BLOCKED_FOR)
    loop(house).turn()
    assert state(house, waits).state == QueueState.LAUNCHED
    with pytest.raises(QuotaReached):
        launch(house, instances=3)


def test_launch_that_can_never_start_is_refused_at_once(house: House) -> None:
    with pytest.raises(BadInput, match="too small for 5 ×"):
        launch(house, instances=5)
    with pytest.raises(BadInput, match="works? only with own hosts"):
        launch(house, shape=ShapeWish(), provider="lambda", type="gpu")
    with pytest.raises(BadInput, match="too small"):
        launch(house, instances=3, labels={"app": "db"}, place=PlaceWish(not_with=("app=db",)))


def test_launch_fails_for_good_if_its_name_is_taken_meanwhile(house: House) -> None:
    first, _ = launch(house, instances=4)
    waits = queued(house, name="twin")
    with pytest.raises(Conflict, match="named `twin` already"):
        launch(house, name="twin")
    house.service.launch(house.tenant.actor, house.tenant.project, Order(name="twin"))
    end(house, first[0])
    loop(house).turn()
    failed = state(house, waits)
    assert (failed.state, failed.launch) == (QueueState.FAILED, None)
    assert "already has an instance `twin`" in failed.reason


def test_launch_fails_for_good_without_its_key_or_project(house: House) -> None:
    first, _ = launch(house, instances=4)
    revoked = queued(house)
    house.database.write(
        lambda tx: tx.run("UPDATE api_key SET revoked_at_us = 1 WHERE id = :id", id=house.tenant.actor.key_id)
    )
    end(house, first[0])
    loop(house).turn()
    assert "revoked" in state(house, revoked).reason


def test_project_that_is_removed_leaves_the_queue(house: House) -> None:
    launch(house, instances=4)
    waits = queued(house)
    project = house.tenant.project.id
    house.database.write(lambda tx: tx.run("UPDATE host_gpu SET instance_id = NULL"))
    house.database.write(lambda tx: remove_project(tx, ProjectId(project), house.clock.now()))
    loop(house).turn()
    assert state(house, waits).state == QueueState.FAILED


def test_queue_of_a_project_is_bounded(house: House) -> None:
    launch(house, instances=4)
    for _ in range(WAITING_MAX):
        queued(house)
    with pytest.raises(Conflict, match=f"{WAITING_MAX} launches"):
        launch(house)


def test_another_project_sees_nothing_of_the_queue(house: House) -> None:
    launch(house, instances=4)
    waits = queued(house)
    assert house.service.queue.page(ProjectId("prj_other"), limit=10) == ()
    with pytest.raises(NotFound):
        house.service.queue.show(ProjectId("prj_other"), waits.id)


def test_places_show_the_expected_start(house: House) -> None:
    launch(house, instances=4, time_limit_seconds=3600)
    house.settle()
    began = house.clock.now()
    waits = queued(house)
    place = house.service.queue.places()[waits.id]
    assert (place.place, place.of) == (1, 1)
    assert place.expected_at is not None
    assert place.expected_at <= began + timedelta(hours=1)


def test_explain_changes_nothing_and_agrees_with_the_launch(house: House) -> None:
    order = Order(shape=CARD, instances=3, place=PlaceWish(together=True))
    explained = house.service.explain(house.tenant.project, order)
    again = house.service.explain(house.tenant.project, order)
    made = house.service.launch(house.tenant.actor, house.tenant.project, order)
    hosts = [room.host_id for room in explained.decision.chosen]
    assert hosts == [room.host_id for room in again.decision.chosen] == [each.host_id for each in made]


def test_instances_with_a_label_stay_apart(house: House) -> None:
    apart = PlaceWish(not_with=("app=db",))
    made = house.service.launch(
        house.tenant.actor,
        house.tenant.project,
        Order(shape=CARD, instances=2, labels={"app": "db"}, place=apart),
    )
    assert len({each.host_id for each in made}) == 2
    with pytest.raises(NoCapacity, match="on the allowed hosts") as caught:
        house.service.launch(house.tenant.actor, house.tenant.project, Order(shape=CARD, place=apart))
    assert "has an instance of `--not-with app=db`" in caught.value.hint
