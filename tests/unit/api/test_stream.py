"""An event stream delivers each event once, even after late commits and with many events."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.api import stream
from teraflock.api.stream import LATE, Follower, Streams
from teraflock.base.clock import FixedClock
from teraflock.base.errors import Forbidden, NotAuthenticated, TeraflockError, TooMany
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.storage.database import Database
from teraflock.storage.events import record_event
from teraflock.storage.open import open_database
from teraflock.tenant.model import Actor, KeyId, MemberId, OrganisationId

START = datetime(2026, 11, 15, tzinfo=UTC)
ANN = Actor(
    key_id=KeyId("key_1"),
    member_id=MemberId("mem_1"),
    member_name="ann",
    organisation_id=OrganisationId("org_1"),
    is_operator=False,
    roles={},
)


class World:
    def __init__(self) -> None:
        self.clock = FixedClock(START)
        self.database: Database = open_database(":memory:", self.clock)
        self.number = 0

    def event(self, *, late: timedelta = timedelta(0), project: str = "prj_1") -> str:
        """Commit an event that was created this much earlier."""
        self.number += 1
        number = self.number
        at = self.clock.now() - late
        id = EventId(new_id("evt", at, lambda n: number.to_bytes(n, "big")))
        event = Event(id=id, at=at, kind="instance.moved", subject="ins_1", project=project)
        self.database.write(lambda tx: record_event(tx, event))
        return id

    def follower(self, after: str = "") -> Follower:
        return Follower(self.database, self.clock, "prj_1", after)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 4000),  # the time that passes, in milliseconds
        st.lists(st.integers(0, int(LATE.total_seconds() * 1000) - 1), max_size=3),  # the delay of each event
        st.booleans(),  # whether the stream reads
    ),
    max_size=25,
)


@given(STEPS)
def test_events_arrive_once_despite_late_commits(steps: list[tuple[int, list[int], bool]]) -> None:
    world = World()
    follower = world.follower()
    made: list[str] = []
    came: list[str] = []
    for milliseconds, lates, turns in steps:
        world.clock.move(timedelta(milliseconds=milliseconds))
        elapsed = world.clock.now() - START
        for late in lates:
            made.append(world.event(late=min(timedelta(milliseconds=late), elapsed)))
            world.event(project="prj_2")
        if turns:
            came += [event.id for event in follower.turn()]
    came += [event.id for event in follower.turn()]
    assert sorted(came) == sorted(made)
    assert len(came) == len(set(came))


def test_resumed_stream_misses_no_event() -> None:
    world = World()
    first = [world.event() for _ in range(3)]
    world.clock.move(timedelta(seconds=60))
    then = [world.event() for _ in range(3)]
    came = [event.id for event in world.follower(after=first[1]).turn()]
    assert came == [first[2], *then]


def test_stream_without_an_id_starts_now() -> None:
    world = World()
    world.event()
    world.clock.move(timedelta(seconds=1))
    follower = world.follower()
    assert follower.turn() == []
    id = world.event()
    assert [event.id for event in follower.turn()] == [id]


def test_old_events_are_read_in_bounded_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "ROWS", 3)
    monkeypatch.setattr(stream, "PAGES_PER_TURN", 2)
    world = World()
    made = []
    for _ in range(20):
        made.append(world.event())
        world.clock.move(timedelta(seconds=30))
    follower = world.follower(after="evt_0")
    came = []
    for _ in range(5):
        turn = follower.turn()
        assert len(turn) <= 6
        came += [event.id for event in turn]
    assert came == made


def test_streams_are_limited_and_end_with_the_server() -> None:
    async def scene() -> None:
        streams = Streams(1, 1)
        streams.shares.enter(ANN)
        with pytest.raises(TooMany):
            streams.shares.enter(ANN)

        async def nothing() -> list[Event]:
            return []

        content = streams.follow(ANN, nothing, nothing)
        assert (await anext(content)).startswith(b"retry:")
        streams.stop()
        assert [part async for part in content] == []
        assert streams.shares.open == 0

    asyncio.run(scene())


def test_idle_stream_sends_heartbeats_and_ends_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.003)
    monkeypatch.setattr(stream, "CHECK_SECONDS", 0.003)
    asked: list[int] = []

    async def scene() -> list[bytes]:
        streams = Streams(5, 5)
        streams.shares.enter(ANN)

        async def nothing() -> list[Event]:
            return []

        async def still_good() -> Any:
            asked.append(1)
            if len(asked) == 3:
                raise NotAuthenticated("revoked")

        content: AsyncIterator[bytes] = streams.follow(ANN, nothing, still_good)
        return [part async for part in content]

    parts = asyncio.run(scene())
    assert parts[1:] == [b": still here\n\n"] * 2


@pytest.mark.parametrize("error", [NotAuthenticated("revoked"), Forbidden("no longer a member")])
def test_a_busy_stream_ends_with_its_key_too(monkeypatch: pytest.MonkeyPatch, error: TeraflockError) -> None:
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(stream, "CHECK_SECONDS", 0.003)
    world = World()
    follower = world.follower()

    async def scene() -> list[bytes]:
        streams = Streams(5, 5)
        streams.shares.enter(ANN)

        async def always_more() -> list[Event]:
            world.event()
            return follower.turn()

        async def still_good() -> Any:
            raise error

        return [part async for part in streams.follow(ANN, always_more, still_good)]

    assert len(asyncio.run(scene())) == 1 + 2, "events of two turns, then the check"
