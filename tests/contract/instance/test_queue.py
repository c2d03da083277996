"""Launches that wait for room start once, when there is room and quota, and leave nothing behind. On both databases."""

from datetime import timedelta
from functools import partial

import pytest
from tests.faults.installation import Installation

from teraflock.base.clock import microseconds
from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached
from teraflock.fleet.reservation import store as reservations
from teraflock.instance.claims import NoCapacity
from teraflock.instance.model import Instance, PlaceWish
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.queue.model import QueuedLaunch, QueueState
from teraflock.instance.queue.service import WAITING_MAX
from teraflock.meter.service import MeterService
from teraflock.meter.store import gpu_seconds_in_all_projects
from teraflock.reconcile.queue import BLOCKED_FOR, QueueLoop
from teraflock.tenant.model import ProjectId, Quota
from teraflock.tenant.project.store import remove_project, set_quota

CARD = ShapeWish(gpu="V100")
HOST = ShapeWish(gpu="V100", gpus=2)


def launch(installation: Installation, **order: object) -> tuple[tuple[Instance, ...], QueuedLaunch | None]:
    wanted = Order(**{"shape": CARD, "queue": True, **order})  # type: ignore[arg-type]
    return installation.service.launch_or_queue(
        installation.tenant.actor, installation.tenant.project, wanted
    )


def queued(installation: Installation, **order: object) -> QueuedLaunch:
    made, waits = launch(installation, **order)
    assert not made
    assert waits is not None
    return waits


def loop(installation: Installation) -> QueueLoop:
    return QueueLoop(installation.workers[0].around, installation.service.queue)


def end(installation: Installation, instance: Instance) -> None:
    installation.service.delete(installation.tenant.actor, installation.tenant.project, instance.id)
    installation.settle()


def state(installation: Installation, waits: QueuedLaunch) -> QueuedLaunch:
    return installation.service.queue.show(installation.tenant.project.id, waits.id)


def test_launch_with_room_does_not_wait(installation: Installation) -> None:
    made, waits = launch(installation)
    assert len(made) == 1
    assert waits is None


def test_waits_for_room_and_starts_once(installation: Installation) -> None:
    first, _ = launch(installation, instances=4)
    waits = queued(installation, name="next", instances=2)
    assert installation.service.usage(installation.tenant.project.id).instances == 4, (
        "a waiting launch counts against no quota"
    )
    turns = loop(installation)
    turns.turn()
    assert state(installation, waits).state == QueueState.WAITING
    end(installation, first[0])
    turns.turn()
    assert state(installation, waits).state == QueueState.WAITING, "all or none"
    end(installation, first[1])
    turns.turn()
    loop(installation).turn()
    started = state(installation, waits)
    assert started.state == QueueState.LAUNCHED
    assert started.launch is None, "the order may have secrets"
    views = installation.service.page(installation.tenant.project.id, limit=10)
    assert sorted(view.instance.name for view in views if view.instance.name.startswith("next")) == [
        "next-1",
        "next-2",
    ]
    assert {view.instance.id for view in views} >= set(started.instance_ids)
    with installation.database.read() as tx:
        assert reservations.reserved(tx) == {}


def test_each_card_that_becomes_free_goes_to_the_next_launch(installation: Installation) -> None:
    """Whichever host it is on, also if that host is reserved at once for the launch after that."""
    first, _ = launch(installation, instances=4)
    waiting = []
    for number in range(6):
        waiting.append(queued(installation, name=f"next-{number}"))
        installation.wait(1)
    turns = loop(installation)
    for count, each in enumerate(first, start=1):
        end(installation, each)
        turns.turn()
        states = [state(installation, one).state for one in waiting]
        assert states == [QueueState.LAUNCHED] * count + [QueueState.WAITING] * (6 - count)


def test_launch_that_would_wait_does_not_overtake_those_that_wait(installation: Installation) -> None:
    """Otherwise whoever asks again and again would get every card that becomes free."""
    first, _ = launch(installation, instances=4)
    waits = queued(installation, name="first")
    installation.service.delete(installation.tenant.actor, installation.tenant.project, first[0].id)
    for _ in range(20):  # until the card is free, without a turn of the queue
        installation.wait(1)
        installation.workers[0].turn()
    late = queued(installation, name="late")
    assert "Other launches wait" in late.reason
    loop(installation).turn()
    assert state(installation, waits).state == QueueState.LAUNCHED
    assert state(installation, late).state == QueueState.WAITING


def test_reserved_host_is_closed_to_other_launches(installation: Installation) -> None:
    first, _ = launch(installation, instances=4)
    waits = queued(installation, shape=HOST)
    loop(installation).turn()
    with installation.database.read() as tx:
        ((host, whose),) = reservations.reserved(tx).items()
    assert whose == waits.id
    end(installation, next(each for each in first if each.host_id == host))
    loop(installation).turn()
    with pytest.raises(NoCapacity):
        installation.service.launch(installation.tenant.actor, installation.tenant.project, Order(shape=CARD))
    explained = installation.service.explain(installation.tenant.project, Order(shape=CARD)).decision
    reasons = {str(each.room.host_id): each.obstacle.reason for each in explained.rejected}
    assert reasons[host] == "reserved for a queued launch"
    end(
        installation,
        next(each for each in first if each.host_id == host and each.id not in _gone(installation)),
    )
    loop(installation).turn()
    assert state(installation, waits).state == QueueState.LAUNCHED


def _gone(installation: Installation) -> set[str]:
    views = installation.service.page(installation.tenant.project.id, limit=10, gone=True)
    return {view.instance.id for view in views if view.instance.phase == "gone"}


def test_cancelled_launch_frees_its_hosts_and_never_starts(installation: Installation) -> None:
    first, _ = launch(installation, instances=4)
    waits = queued(installation, name="big", shape=HOST)
    loop(installation).turn()
    installation.service.queue.cancel(installation.tenant.actor, installation.tenant.project, "big")
    assert (
        installation.service.queue.cancel(
            installation.tenant.actor, installation.tenant.project, waits.id
        ).state
        == "cancelled"
    )
    for each in first:
        end(installation, each)
    loop(installation).turn()
    assert state(installation, waits).state == QueueState.CANCELLED
    assert launch(installation)[0], "its hosts are free again"


def test_quota_counts_when_it_starts_and_does_not_block_those_behind(installation: Installation) -> None:
    quota = Quota(gpus_default=2)
    installation.database.write(partial(set_quota, id=installation.tenant.project.id, quota=quota))
    first, _ = launch(installation, instances=2)
    waits = queued(installation, name="over")
    assert "quota" in waits.reason
    behind = queued(installation, name="plain", shape=CARD, priority=-1)
    installation.clock.move(timedelta(seconds=1))
    loop(installation).turn()
    assert state(installation, waits).state == QueueState.WAITING
    assert "quota" in state(installation, behind).reason
    end(installation, first[0])
    installation.clock.move(BLOCKED_FOR)
    loop(installation).turn()
    assert state(installation, waits).state == QueueState.LAUNCHED
    with pytest.raises(QuotaReached):
        launch(installation, instances=3)


def test_launch_that_can_never_start_is_refused_at_once(installation: Installation) -> None:
    with pytest.raises(BadInput, match="too small for 5 ×"):
        launch(installation, instances=5)
    with pytest.raises(BadInput, match="works? only with own hosts"):
        launch(installation, shape=ShapeWish(), provider="lambda", type="gpu")
    with pytest.raises(BadInput, match="too small"):
        launch(installation, instances=3, labels={"app": "db"}, place=PlaceWish(not_with=("app=db",)))


def test_launch_fails_for_good_if_its_name_is_taken_meanwhile(installation: Installation) -> None:
    first, _ = launch(installation, instances=4)
    waits = queued(installation, name="twin")
    with pytest.raises(Conflict, match="named `twin` already"):
        launch(installation, name="twin")
    installation.service.launch(installation.tenant.actor, installation.tenant.project, Order(name="twin"))
    end(installation, first[0])
    loop(installation).turn()
    failed = state(installation, waits)
    assert (failed.state, failed.launch) == (QueueState.FAILED, None)
    assert "already has an instance `twin`" in failed.reason


def test_launch_fails_for_good_without_its_key_or_project(installation: Installation) -> None:
    first, _ = launch(installation, instances=4)
    revoked = queued(installation)
    installation.database.write(
        lambda tx: tx.run(
            "UPDATE api_key SET revoked_at_us = 1 WHERE id = :id", id=installation.tenant.actor.key_id
        )
    )
    end(installation, first[0])
    loop(installation).turn()
    assert "revoked" in state(installation, revoked).reason


def test_project_that_is_removed_leaves_the_queue(installation: Installation) -> None:
    launch(installation, instances=4)
    waits = queued(installation)
    project = installation.tenant.project.id
    installation.database.write(lambda tx: tx.run("UPDATE host_gpu SET instance_id = NULL"))
    installation.database.write(lambda tx: remove_project(tx, ProjectId(project), installation.clock.now()))
    loop(installation).turn()
    assert state(installation, waits).state == QueueState.FAILED


def test_queue_of_a_project_is_bounded(installation: Installation) -> None:
    launch(installation, instances=4)
    for _ in range(WAITING_MAX):
        queued(installation)
    with pytest.raises(Conflict, match=f"{WAITING_MAX} launches"):
        launch(installation)


def test_another_project_sees_nothing_of_the_queue(installation: Installation) -> None:
    launch(installation, instances=4)
    waits = queued(installation)
    assert installation.service.queue.page(ProjectId("prj_other"), limit=10) == ()
    with pytest.raises(NotFound):
        installation.service.queue.show(ProjectId("prj_other"), waits.id)


def test_places_show_the_expected_start(installation: Installation) -> None:
    launch(installation, instances=4, time_limit_seconds=3600)
    installation.settle()
    began = installation.clock.now()
    waits = queued(installation)
    place = installation.service.queue.places()[waits.id]
    assert (place.place, place.of) == (1, 1)
    assert place.expected_at is not None
    assert place.expected_at <= began + timedelta(hours=1)


def test_explain_changes_nothing_and_agrees_with_the_launch(installation: Installation) -> None:
    order = Order(shape=CARD, instances=3, place=PlaceWish(together=True))
    explained = installation.service.explain(installation.tenant.project, order)
    again = installation.service.explain(installation.tenant.project, order)
    made = installation.service.launch(installation.tenant.actor, installation.tenant.project, order)
    hosts = [room.host_id for room in explained.decision.chosen]
    assert hosts == [room.host_id for room in again.decision.chosen] == [each.host_id for each in made]


def test_instances_with_a_label_stay_apart(installation: Installation) -> None:
    apart = PlaceWish(not_with=("app=db",))
    made = installation.service.launch(
        installation.tenant.actor,
        installation.tenant.project,
        Order(shape=CARD, instances=2, labels={"app": "db"}, place=apart),
    )
    assert len({each.host_id for each in made}) == 2
    with pytest.raises(NoCapacity, match="on the allowed hosts") as caught:
        installation.service.launch(
            installation.tenant.actor, installation.tenant.project, Order(shape=CARD, place=apart)
        )
    assert "has an instance of `--not-with app=db`" in caught.value.hint


def test_use_of_a_project_counts_its_running_instances(installation: Installation) -> None:
    launch(installation, shape=HOST)
    installation.settle()
    MeterService(installation.database, installation.clock).turn()
    installation.wait(600)
    now = installation.clock.now()
    with installation.database.read() as tx:
        used = gpu_seconds_in_all_projects(tx, microseconds(now - timedelta(days=1)), microseconds(now))
    assert used[installation.tenant.project.id] == pytest.approx(2 * 600, abs=120), (
        "two cards for ten minutes"
    )
