"""Which queued launches start, and for which one hosts are kept free."""

from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.fleet.test_terms import host

from teraflock.base.size import Size
from teraflock.fleet.placement import PlaceTerms, decide
from teraflock.fleet.room import Room
from teraflock.instance.orders import Order
from teraflock.instance.queue.model import QueuedLaunch, QueueTurn, Release, Waiting
from teraflock.instance.queue.rules import RESERVED_SHARE, in_order, places, plan_turn
from teraflock.tenant.model import MemberId, ProjectId

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def waiting(
    id: str,
    gpus: int = 1,
    *,
    instances: int = 1,
    project: str = "p",
    priority: int = 0,
    minutes: int | None = None,
    asked: int = 0,
    terms: PlaceTerms | None = None,
) -> Waiting:
    queued = QueuedLaunch(
        id=id,
        project_id=ProjectId(project),
        launch=Order(time_limit_seconds=minutes * 60 if minutes else None),
        actor=None,
        need=Size(gpu="a", gpus=gpus, vcpus=1, ram_bytes=1),
        instances=instances,
        priority=priority,
        created_by=MemberId("mem"),
        created_at=NOW - timedelta(hours=1) + timedelta(seconds=asked),
    )
    return Waiting(queued, terms or PlaceTerms())


def ids(found: Sequence[Waiting]) -> list[str]:
    return [each.queued.id for each in found]


def turn(ordered: Sequence[Waiting], free: Sequence[int], *releases: Release) -> QueueTurn:
    rooms = [host(f"h{n}", count) for n, count in enumerate(free)]
    empty = [host(f"h{n}", 8) for n in range(len(free))]
    return plan_turn(ordered, rooms, empty, releases, NOW)


def started(found: QueueTurn) -> list[str]:
    return [start.id for start in found.starts]


def release(host_id: str, gpus: int, minutes: int) -> Release:
    return Release(NOW + timedelta(minutes=minutes), host_id, Size(gpu="a", gpus=gpus, vcpus=1, ram_bytes=1))


def test_priority_counts_within_a_project_only() -> None:
    mine = [waiting("old", project="p"), waiting("urgent", project="p", priority=9, asked=1)]
    others = [waiting("other", project="q", priority=-5, asked=2)]
    assert ids(in_order([*mine, *others], {"p": 100.0})) == ["other", "urgent", "old"]


def test_projects_with_equal_use_take_turns() -> None:
    all_of = [waiting(f"{project}{n}", project=project, asked=n) for project in "pq" for n in range(3)]
    assert ids(in_order(all_of, {})) == ["p0", "q0", "p1", "q1", "p2", "q2"]


@given(
    st.lists(st.tuples(st.sampled_from("pqr"), st.integers(-2, 2), st.integers(0, 9)), max_size=12),
    st.fixed_dictionaries({project: st.floats(0, 10_000) for project in "pqr"}),
)
def test_order_keeps_every_launch_once_and_priorities_within_projects(
    some: list[tuple[str, int, int]], used: dict[str, float]
) -> None:
    there = [
        waiting(f"{n}", project=project, priority=priority, asked=asked)
        for n, (project, priority, asked) in enumerate(some)
    ]
    ordered = in_order(there, used)
    assert sorted(ids(ordered)) == sorted(ids(there))
    for project in "pqr":
        mine = [each.queued for each in ordered if each.queued.project_id == project]
        assert mine == sorted(mine, key=lambda each: (-each.priority, each.created_at, each.id))


def test_all_that_fit_start() -> None:
    assert started(turn([waiting("a", 2), waiting("b", 2)], [4])) == ["a", "b"]


def test_large_launch_keeps_its_hosts_free_of_smaller_ones() -> None:
    """Without a reservation the small ones would take each card that becomes free."""
    found = turn([waiting("gang", 8, instances=2), waiting("small", 1)], [3, 1, 0, 0, 0, 0, 0, 0])
    assert started(found) == []
    assert (found.reserved_for, found.reserved) == ("gang", ("h0", "h1"))


def test_smaller_launches_start_on_other_hosts() -> None:
    found = turn([waiting("large", 8), waiting("small", 1)], [7, 1, 0, 0])
    assert started(found) == ["small"]
    assert found.reserved == ("h0",)


def test_backfill_uses_reserved_hosts_only_if_it_ends_in_time() -> None:
    ends = release("h0", 4, minutes=60)
    queue = [waiting("large", 8), waiting("short", 2, minutes=30), waiting("long", 2, minutes=90)]
    found = turn(queue, [4, 0, 0, 0], ends)
    assert started(found) == ["short"]
    assert found.starts[0].reservation == "large"
    assert found.reserved == ("h0",)


def test_a_reservation_cannot_block_most_of_the_hosts() -> None:
    queue = [waiting("huge", 8, instances=8), waiting("small", 1)]
    found = turn(queue, [7] * 8)
    assert found.reserved == ()
    assert started(found) == ["small"]


@given(st.data())
def test_launches_that_start_together_fit_together(data: st.DataObject) -> None:
    free = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=6))
    queue = [
        waiting(
            f"{n}",
            data.draw(st.integers(1, 8)),
            instances=data.draw(st.integers(1, 4)),
            minutes=data.draw(st.sampled_from([None, 5, 500])),
            terms=PlaceTerms(together=data.draw(st.booleans())),
        )
        for n in range(data.draw(st.integers(0, 6)))
    ]
    ends = [release(f"h{n}", 8 - count, 60 + n) for n, count in enumerate(free) if count < 8]
    found = turn(queue, free, *ends)
    by_id = {each.queued.id: each.queued for each in queue}
    taken = sum(by_id[id].need.gpus * by_id[id].instances for id in started(found))
    assert taken <= sum(free)
    assert found.reserved_for not in started(found)
    assert len(found.reserved) <= max(1, len(free) // RESERVED_SHARE)
    assert bool(found.reserved) == bool(found.reserved_for)
    rooms = [host(f"h{n}", count) for n, count in enumerate(free)]
    for room in rooms:  # the reservation is written first, and then each launch is placed again
        room.reserved_for = found.reserved_for if room.host_id in found.reserved else ""
    terms = {each.queued.id: each.terms for each in queue}
    for start in found.starts:
        may_use = replace(terms[start.id], queued_id=start.reservation)
        assert decide(rooms, by_id[start.id].need, by_id[start.id].instances, may_use).chosen, start


def test_launches_before_the_one_with_the_reservation_start_on_its_hosts() -> None:
    found = turn([waiting("a"), waiting("b"), waiting("c")], [1])
    assert started(found) == ["a"]
    assert (found.reserved_for, found.reserved) == ("b", ("h0",))
    assert found.starts[0].reservation == "b"


def test_expected_start_comes_from_time_limits_and_is_else_unknown() -> None:
    queue = [waiting("a", 4, minutes=10), waiting("b", 4), waiting("c", 4)]
    rooms: list[Room] = [host("h0", 0)]
    found = places(queue, deepcopy(rooms), [release("h0", 4, 30)], NOW)
    assert [found[id].place for id in "abc"] == [1, 2, 3]
    assert found["a"].expected_at == NOW + timedelta(minutes=30)
    assert found["b"].expected_at == NOW + timedelta(minutes=40), "after `a` has ended"
    assert found["c"].expected_at is None, "`b` has no time limit"
    assert places(queue, rooms, [], NOW)["a"].expected_at is None
