"""Streamed responses: pieces are sent while others are produced, so that memory use stays small.

Invariants:
- one thread produces the pieces and waits while `AHEAD` of them are unsent, so it is as fast as the client reads;
- a client that disconnects, or reads nothing for `SECONDS_MAX`, is dropped, and its resources are released;
- a failure before the first piece is an ordinary error response; a later failure breaks the response off early, which
  the client can detect.
"""

import asyncio
from collections.abc import Generator
from typing import Any, Final

AHEAD: Final = 4
SECONDS_MAX: Final = 30.0


class Gone(Exception):
    """The client has stopped reading."""


class Pieces:
    """The queue between the thread that produces a response and the loop that sends it."""

    def __init__(self, source: Generator[bytes, None, None]) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._made: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)
        self._end: BaseException | None = None
        """Why no more pieces follow."""
        self._gone = False

    def make(self) -> None:
        """Produce all pieces in the calling thread."""
        try:
            for piece in self._source:
                self._hand_over(piece)
            self._hand_over(b"")
        finally:
            self._source.close()

    def ended(self, making: "asyncio.Task[None]") -> None:
        """Called when `make` has ended or could not start."""
        self._end = Gone() if making.cancelled() else making.exception() or Gone()
        if not self._made.full():
            self._made.put_nowait(None)  # wake up the reader

    async def next(self) -> bytes:
        """The next piece. An empty piece is the end."""
        piece = None if self._end and self._made.empty() else await self._made.get()
        if piece is None:
            assert self._end is not None
            raise self._end
        return piece

    def leave(self) -> None:
        """Let the thread end: it may be waiting for free space."""
        self._gone = True
        while not self._made.empty():
            self._made.get_nowait()

    def _hand_over(self, piece: bytes) -> None:
        if self._gone:
            raise Gone
        asyncio.run_coroutine_threadsafe(self._made.put(piece), self._loop).result(SECONDS_MAX)


class SentInPieces:
    """A response whose first piece is ready."""

    def __init__(self, first: bytes, pieces: Pieces, media_type: str) -> None:
        self._first = first
        self._pieces = pieces
        self._media_type = media_type

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        try:
            headers = [(b"content-type", self._media_type.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            piece = self._first
            while piece and not gone.done():
                sent = send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.wait_for(sent, SECONDS_MAX)
                piece = await self._pieces.next()
            if not piece:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            self._pieces.leave()


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
