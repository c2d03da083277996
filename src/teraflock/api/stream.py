"""Streams of a project's events, as server-sent events.

Invariants:
- an event is sent at least once. Ids sort by creation and not by commit, so each turn looks back by `LATE`, and a
  client that reconnects with `Last-Event-ID` may receive the last few events again; it compares their ids;
- a stream ends when its key becomes invalid or loses the permission, also while events keep coming, when the server
  stops, and when its client disconnects;
- an organisation has a bounded number of streams (api/shares.py), and each reads a bounded number of rows per turn.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Final

import msgspec

from teraflock.api.convert.event import event_answer
from teraflock.api.shares import Shares
from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.base.events import Event
from teraflock.base.ids import EventId, id_at
from teraflock.storage.database import Database
from teraflock.storage.events import events_of_project
from teraflock.tenant.model import Actor

LATE: Final = timedelta(seconds=10)
"""How long after the time in its id an event can appear: PostgreSQL waits that long for a lock."""
POLL_SECONDS: Final = 0.25
HEARTBEAT_SECONDS: Final = 15.0
CHECK_SECONDS: Final = 5.0
"""How often a stream asks whether its key and its permission still hold."""
ROWS: Final = 200
PAGES_PER_TURN: Final = 10

_BEGINNING: Final = b"retry: 1000\n: following\n\n"
_HEARTBEAT: Final = b": still here\n\n"


class Follower:
    """Reads new events, starting where the last read ended."""

    def __init__(self, database: Database, clock: Clock, project: str, after: str) -> None:
        self._database = database
        self._clock = clock
        self._project = project
        self._back = id_at("evt", clock.now()) if not after else min(after, id_at("evt", clock.now() - LATE))
        """All events up to this id were sent or are not wanted."""
        self._seen: set[str] = set()

    def turn(self) -> list[Event]:
        """Events that appeared since the last turn, oldest first."""
        found: list[Event] = []
        at = self._back
        with self._database.read() as tx:
            for _ in range(PAGES_PER_TURN):
                rows = events_of_project(tx, self._project, EventId(at), limit=ROWS)
                found += [event for event in rows if event.id not in self._seen]
                if rows:
                    at = rows[-1].id
                if len(rows) < ROWS:
                    at = max(at, id_at("evt", self._clock.now()))
                    break
        self._seen.update(event.id for event in found)
        self._back = max(self._back, min(at, id_at("evt", self._clock.now() - LATE)))
        self._seen = {id for id in self._seen if id > self._back}
        return found


class Streams:
    """All streams of this server."""

    def __init__(self, streams_max: int, each: int) -> None:
        self.shares = Shares(
            "open event streams",
            streams_max,
            each,
            hint="Read `GET /v1/events` in pages instead, or try again later",
            retry_seconds=30,
        )
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End all streams. Called in the server's main thread."""
        self._stopping.set()

    async def follow(
        self,
        actor: Actor,
        turn: Callable[[], Awaitable[list[Event]]],
        still_good: Callable[[], Awaitable[object]],
    ) -> AsyncIterator[bytes]:
        """Yield what is sent to one client until the stream ends. The caller has called `shares.enter`."""
        try:
            yield _BEGINNING
            unchecked = silent = 0
            while not self._stopping.is_set():
                unchecked, silent = unchecked + 1, silent + 1
                if unchecked * POLL_SECONDS >= CHECK_SECONDS:
                    unchecked = 0
                    await still_good()
                for event in await turn():
                    yield _sent(event)
                    silent = 0
                if silent * POLL_SECONDS >= HEARTBEAT_SECONDS:
                    silent = 0
                    yield _HEARTBEAT
                await self._pause()
        except TeraflockError:
            return
        finally:
            self.shares.leave(actor)

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), POLL_SECONDS)
        except TimeoutError:
            return


def _sent(event: Event) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        event.id.encode(),
        event.kind.encode(),
        msgspec.json.encode(event_answer(event)),
    )
