"""The cache suggests the same hosts as a search through all rooms would."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.fleet.test_placement import needs, rooms

from teraflock.base.clock import FixedClock, SystemClock
from teraflock.base.size import Size
from teraflock.fleet import store
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.placement import Policy, choose_many
from teraflock.fleet.room import Room


@given(rooms(), st.lists(st.tuples(needs, st.integers(0, 4)), max_size=8), st.integers(1, 4))
def test_candidates_are_the_tightest_rooms_after_every_launch(
    found: list[Room], launches: list[tuple[Size, int]], limit: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "rooms", lambda tx, policy: found)
        memory, tx = FleetMemory(SystemClock()), cast("Any", None)
        for need, index in launches:
            seen = memory.candidates(tx, Policy(), need, limit=limit)
            fitting = sorted(
                (room for room in found if room.fits(need)), key=lambda room: room.tightness(need)
            )
            assert seen == [room.host_id for room in fitting[:limit]]
            if seen:
                memory.take(seen[index % len(seen)], need)


@given(rooms(), st.lists(st.tuples(needs, st.integers(2, 6)), max_size=6))
def test_candidates_for_many_are_those_of_a_choice_from_all_rooms(
    found: list[Room], launches: list[tuple[Size, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "rooms", lambda tx, policy: found)
        memory, tx = FleetMemory(SystemClock()), cast("Any", None)
        for need, count in launches:
            copies = [replace(room, free_gpus=dict(room.free_gpus)) for room in found]
            chosen = choose_many(copies, need, count) or []
            seen = memory.candidates_for_many(tx, Policy(), need, count)
            assert seen == [room.host_id for room in chosen]
            for id in seen:
                memory.take(id, need)


def test_readings_that_take_long_are_kept_longer() -> None:
    clock, readings = FixedClock(datetime(2026, 11, 16, tzinfo=UTC)), []

    def slow(tx: object, policy: Policy) -> list[Room]:
        readings.append(clock.now())
        clock.move(timedelta(seconds=0.5))
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "rooms", slow)
        memory, tx = FleetMemory(clock), cast("Any", None)
        need = Size(vcpus=1)
        memory.candidates(tx, Policy(), need, limit=1)
        clock.move(timedelta(seconds=5))
        assert memory._is_recent()
        clock.move(timedelta(seconds=6))
        assert not memory._is_recent()
    assert len(readings) == 1
