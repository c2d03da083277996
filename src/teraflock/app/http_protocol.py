"""HTTP on one connection, with a time limit for everything that the server waits for.

Invariants: reading the head of a request, reading its body, waiting for the next request and sending a response each
have a time limit. A head has at most `HEAD_BYTES_MAX` bytes, and at most `PIPELINE_MAX` requests wait on a connection.
Time is counted in sweeps, one per second, so that a request needs no timer.
"""

from enum import Enum
from typing import Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from teraflock.api.refusals import Refusals
from teraflock.app.connections import Connections, OpenConnection

HEAD_BYTES_MAX: Final = 65_536
PIPELINE_MAX: Final = 32
"""Requests on one connection that wait for the response before them. A few bytes of each cost some kilobytes here."""


class WaitingFor(Enum):
    """What the server waits for on a connection."""

    HEAD = "head"
    BODY = "body"
    NEXT = "next"
    ANSWER = "answer"
    """The server is working on a response, and the client waits."""


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    head_seconds: float
    """For the head of a request, from its first byte or from the start of the connection; and for a TLS handshake."""
    body_seconds: float
    idle_seconds: float = 15.0
    """For the next request. uvicorn closes idle connections after 5 seconds, but not if incomplete data arrived."""
    taking_seconds: float = 30.0
    """For a client to receive a response."""


class SharedState:
    """Shared by all connections: the time and the list of connections."""

    def __init__(self, connections: Connections, deadlines: Deadlines, refusals: Refusals) -> None:
        self.connections = connections
        self.deadlines = deadlines
        self.refusals = refusals
        self.now = 0.0


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, watch: SharedState, entered: OpenConnection, **more: Any) -> None:
        super().__init__(**more)
        self._watch = watch
        self._entered = entered
        self._state = WaitingFor.HEAD
        self._since = watch.now
        self._stuck_since: float | None = None
        self._in_message = self._in_head = False
        """Whether a request, or its head, is partly received. Includes requests that wait for an earlier response."""
        self._head_bytes = 0

    # Events on the connection

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._entered.end = transport.abort
        self._since = self._watch.now

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.connections.leave(self._entered)
        super().connection_lost(exc)

    def forget(self) -> None:
        """End without `connection_lost`: uvloop does not call it if the connection is closed while it is opened."""
        self.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(431, "The request head is too large.")

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINE_MAX:
            raise ValueError("too many pipelined requests")  # the parser stops, and uvicorn sends 400
        super().on_message_begin()
        self._in_message = self._in_head = True
        if self._state is WaitingFor.NEXT:
            self._wait_for(WaitingFor.HEAD)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head, self._head_bytes = False, 0
        if self._state is not WaitingFor.ANSWER:
            self._wait_for(WaitingFor.BODY)
            self._watch.connections.mark_busy(self._entered)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_message = False
        if self._state is WaitingFor.BODY:  # the response may have been sent before the whole body arrived
            self._wait_for(WaitingFor.NEXT if self.cycle.response_complete else WaitingFor.ANSWER)

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self._watch.connections.mark_idle(self._entered)
        self._wait_for(self._next())
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._stuck_since = self._watch.now
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stuck_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._watch.refusals.note(
            f"400 {self._entered.source}", f"{msg.rstrip('.')} from {self._entered.address}"
        )
        super().send_400_response(msg)

    # Called by the sweep

    def is_late(self) -> bool:
        """Whether the client has exceeded a time limit."""
        watch = self._watch
        now, limits = watch.now, watch.deadlines
        if self._stuck_since is not None and now - self._stuck_since > limits.taking_seconds:
            return True
        if self.transport.is_closing():  # everything is written except what the client does not receive
            if self._stuck_since is None:
                self._stuck_since = now
            return False
        waited = now - self._since
        if self._state is WaitingFor.ANSWER:
            return False
        if self._state is WaitingFor.HEAD:
            return waited > limits.head_seconds
        return waited > (limits.body_seconds if self._state is WaitingFor.BODY else limits.idle_seconds)

    def _next(self) -> WaitingFor:
        """The state after a response: wait for the rest of a body, work on the next response, or wait for a request."""
        if self._in_message and len(self.pipeline) <= 1:
            return WaitingFor.BODY
        return WaitingFor.ANSWER if self.pipeline else WaitingFor.NEXT

    def _wait_for(self, what: WaitingFor) -> None:
        self._state = what
        self._since = self._watch.now

    def _refuse(self, status: int, sentence: str) -> None:
        if self.transport.is_closing():
            return
        text = sentence.encode()
        self.transport.write(
            STATUS_LINE[status]
            + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            + b"content-length: %d\r\n\r\n%s" % (len(text), text)
        )
        self.transport.close()
