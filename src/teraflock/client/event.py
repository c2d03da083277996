"""Events of a project, in pages and as a stream.

A stream that breaks is resumed after the last event received. An event that arrives twice is yielded once.
"""

from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Final

import msgspec

from teraflock.base.errors import Unavailable
from teraflock.client.noun import PAGE, Noun
from teraflock.client.transport import path_of
from teraflock.wire.event import EventAnswer, EventPage

SILENCE_SECONDS_MAX: Final = 45.0  # three heartbeats of the server
PAUSE_SECONDS: Final = 1.0
FAILURES_MAX: Final = 5  # in a row, without an event in between
IDS_KEPT: Final = 10_000
LINE_BYTES_MAX: Final = 1 << 20


class Events(Noun):
    def page(self, *, after: str = "", limit: int = PAGE, newest_first: bool = False) -> EventPage:
        return self._get(EventPage, "events", after=after, limit=limit, newest_first=newest_first or None)

    def follow(self, *, after: str = "") -> Iterator[EventAnswer]:
        """Yield events as they happen, forever, starting with those after `after`. Leave the loop to stop."""
        seen: dict[str, None] = {}
        failures = 0
        while True:
            try:
                for event in self._stream(after):
                    failures = 0
                    after = max(after, event.id)
                    if event.id not in seen:
                        seen[event.id] = None
                        yield event
                    if len(seen) > IDS_KEPT:
                        del seen[next(iter(seen))]
            except Unavailable:
                failures += 1
                if failures == FAILURES_MAX:
                    raise
            self._transport.pause(PAUSE_SECONDS)

    def _stream(self, after: str) -> Iterator[EventAnswer]:
        headers = {"Last-Event-ID": after} if after else {}
        connection, response = self._transport.open(
            path_of("events", "stream"), headers, self._query({}), SILENCE_SECONDS_MAX
        )
        try:
            yield from _parsed(response)
        except (OSError, HTTPException, msgspec.MsgspecError) as error:
            raise self._transport.no_answer(error) from error
        finally:
            connection.close()


def _parsed(response: HTTPResponse) -> Iterator[EventAnswer]:
    data: list[bytes] = []
    while line := response.readline(LINE_BYTES_MAX):
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield msgspec.json.decode(b"\n".join(data), type=EventAnswer)
            data = []
