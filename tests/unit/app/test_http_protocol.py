"""Time limits for clients, by what the server waits for."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from teraflock.api.refusals import Refusals
from teraflock.app.connections import Connections, OpenConnection
from teraflock.app.http_protocol import BoundedProtocol, Deadlines, SharedState

LIMITS = Deadlines(head_seconds=10, body_seconds=30, idle_seconds=15, taking_seconds=20)
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Transport:
    """The part of a transport that the protocol uses."""

    def __init__(self) -> None:
        self.closing = False
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str) -> Any:
        return None

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Client:
    """One connection, with an application that answers on demand."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.answers = asyncio.Event()
        self.reads = False
        self.connections = Connections(10, 10)
        entered = self.connections.enter("10.0.0.1", list, lambda _: None)
        assert isinstance(entered, OpenConnection)
        self.watch = SharedState(self.connections, LIMITS, Refusals(float, logging.getLogger("test")))
        config = uvicorn.Config(
            self._app, http=BoundedProtocol, interface="asgi3", lifespan="off", log_config=None
        )
        self.protocol = BoundedProtocol(
            self.watch, entered, config=config, server_state=ServerState(), app_state={}, _loop=loop
        )
        self.transport = Transport()
        self.protocol.connection_made(self.transport)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        await self.answers.wait()
        while self.reads and (await receive())["more_body"]:
            continue
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def run(self) -> None:
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))

    def late_after(self, seconds: float) -> bool:
        self.watch.now += seconds
        return self.protocol.is_late()


@pytest.fixture
def client() -> Iterator[Client]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    client = Client(loop)
    yield client
    client.answers.set()
    client.run()
    client.protocol.connection_lost(None)
    assert len(client.connections) == 0
    asyncio.set_event_loop(None)
    loop.close()


def test_a_head_sent_byte_by_byte_times_out(client: Client) -> None:
    for byte in REQUEST[:9]:
        client.protocol.data_received(bytes([byte]))
        assert not client.late_after(1)
    client.protocol.data_received(REQUEST[9:12])
    assert client.late_after(2)


def test_a_missing_body_times_out_but_our_own_work_does_not(client: Client) -> None:
    client.protocol.data_received(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{")
    assert not client.late_after(29)
    assert client.late_after(2)
    client.protocol.data_received(b"}")
    assert not client.late_after(100_000), "the server is working"


def test_an_idle_connection_times_out_despite_stray_bytes(client: Client) -> None:
    client.answers.set()
    client.protocol.data_received(REQUEST)
    client.run()
    assert client.transport.written.startswith(b"HTTP/1.1 200")
    for _ in range(7):
        client.protocol.data_received(b"\r\n")
        assert not client.late_after(2)
    assert client.late_after(2)


def test_the_next_request_has_its_own_time_limit(client: Client) -> None:
    client.answers.set()
    for _ in range(3):
        client.watch.now += 8
        client.protocol.data_received(REQUEST)
        client.run()
        assert not client.late_after(8)
    client.protocol.data_received(REQUEST[:4])
    assert not client.late_after(9)
    assert client.late_after(2)


def test_a_response_that_is_not_received_times_out(client: Client) -> None:
    client.protocol.data_received(REQUEST)
    client.protocol.pause_writing()
    assert not client.late_after(19)
    client.protocol.resume_writing()
    assert not client.late_after(100)
    client.protocol.pause_writing()
    assert client.late_after(21)


def test_a_closing_connection_with_unreceived_data_times_out(client: Client) -> None:
    client.protocol.data_received(REQUEST)
    client.transport.close()
    assert not client.late_after(1), "the time limit starts now"
    assert client.late_after(21)


def test_pipelined_requests_are_answered_up_to_a_limit(client: Client) -> None:
    client.protocol.data_received(REQUEST * 20)
    assert not client.late_after(1000), "the client waits for the server"
    client.answers.set()
    for _ in range(20):
        client.run()
    assert client.transport.written.count(b"HTTP/1.1 200") == 20
    assert client.late_after(16), "then the server waits for the next request"


def test_a_missing_body_after_another_request_times_out(client: Client) -> None:
    client.reads = True
    client.answers.set()
    client.protocol.data_received(REQUEST + b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{")
    assert not client.late_after(1)
    client.run()
    assert client.transport.written.count(b"HTTP/1.1 200") == 1
    assert not client.late_after(29)
    assert client.late_after(2)
    client.protocol.data_received(b"}")
    client.run()
    assert client.transport.written.count(b"HTTP/1.1 200") == 2


def test_an_early_response_does_not_leave_the_connection_open(client: Client) -> None:
    client.answers.set()
    client.protocol.data_received(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{")
    client.run()
    assert client.transport.written.count(b"HTTP/1.1 200") == 1
    assert not client.late_after(5)
    client.protocol.data_received(b"}")
    assert not client.late_after(14)
    assert client.late_after(2)


def test_endless_pipelining_is_refused(client: Client) -> None:
    client.protocol.data_received(REQUEST * 1000)
    assert b"HTTP/1.1 400" in client.transport.written
    assert client.transport.closing
    assert len(client.protocol.pipeline) <= 32


def test_an_endless_head_after_another_request_is_refused(client: Client) -> None:
    client.protocol.data_received(REQUEST + b"GET / HTTP/1.1\r\nX-a: ")
    for _ in range(70):
        client.protocol.data_received(b"x" * 1000)
    assert client.transport.written.startswith(b"HTTP/1.1 431")
    assert client.transport.closing
