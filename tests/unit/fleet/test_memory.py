"""The cache suggests the same hosts as a search through all rooms would."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.fleet.test_placement import needs, rooms

from teraflock.base.clock import SystemClock
from teraflock.base.size import Size
from teraflock.fleet import store
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.placement import Policy
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
