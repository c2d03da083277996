"""Streamed responses arrive completely, and their resources are released when the client disconnects."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.api.pieces import AHEAD, Gone, Pieces, SentInPieces


class Reader:
    """A client that disconnects after `stays` pieces."""

    def __init__(self, stays: int = 1_000_000) -> None:
        self.stays = stays
        self.messages: list[dict[str, Any]] = []
        self._left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if len(self.messages) > self.stays:
            self._left.set()
        await asyncio.sleep(0)

    @property
    def content(self) -> list[bytes]:
        return [message["body"] for message in self.messages[1:] if message["body"]]

    @property
    def has_end(self) -> bool:
        return not self.messages[-1].get("more_body", True)


class Source:
    """Produces `count` pieces, then fails if requested."""

    def __init__(self, count: int, fails: bool = False) -> None:
        self.count, self.fails = count, fails
        self.made = 0
        self.is_closed = False

    def pieces(self) -> Generator[bytes, None, None]:
        try:
            for number in range(self.count):
                self.made += 1
                yield b"%d\n" % number
            if self.fails:
                raise ValueError("no more")
        finally:
            self.is_closed = True


async def sent(source: Source, reader: Reader) -> None:
    pieces = Pieces(source.pieces())
    making = asyncio.ensure_future(asyncio.to_thread(pieces.make))
    making.add_done_callback(pieces.ended)
    try:
        answer = SentInPieces(await pieces.next(), pieces, "text/csv")
        await answer({}, reader.receive, reader.send)
    finally:
        await asyncio.wait([making])


@given(count=st.integers(1, 40))
def test_pieces_arrive_in_order(count: int) -> None:
    async def story() -> None:
        source, reader = Source(count), Reader()
        await sent(source, reader)
        assert reader.content == [b"%d\n" % number for number in range(count)]
        assert reader.has_end
        assert source.is_closed

    asyncio.run(story())


def test_failure_before_the_first_piece_is_an_ordinary_error() -> None:
    async def story() -> None:
        reader = Reader()
        with pytest.raises(ValueError, match="no more"):
            await sent(Source(0, fails=True), reader)
        assert reader.messages == []

    asyncio.run(story())


@given(count=st.integers(1, 20))
def test_later_failure_breaks_the_response_off(count: int) -> None:
    async def story() -> None:
        source, reader = Source(count, fails=True), Reader()
        with pytest.raises(ValueError, match="no more"):
            await sent(source, reader)
        assert len(reader.content) == count
        assert not reader.has_end

    asyncio.run(story())


@given(stays=st.integers(1, 20))
def test_production_stops_when_the_client_disconnects(stays: int) -> None:
    async def story() -> None:
        source, reader = Source(10_000), Reader(stays)
        await sent(source, reader)
        assert not reader.has_end
        assert source.is_closed
        assert source.made <= len(reader.content) + 2 * AHEAD + 4, "what was ready, and one round more"

    asyncio.run(story())


def test_failure_to_start_is_reported() -> None:
    async def story() -> None:
        pieces = Pieces(Source(3).pieces())

        async def refused() -> None:
            raise Gone

        asyncio.ensure_future(refused()).add_done_callback(pieces.ended)
        with pytest.raises(Gone):
            await pieces.next()

    asyncio.run(story())
