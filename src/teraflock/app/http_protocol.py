"""HTTP on one connection, with a deadline for everything a client could keep us waiting for.

What holds: the head of a request, its body, the next request and the taking of an answer each have a time limit, so no
client holds a connection longer than that without being served; a head is no longer than `HEAD_BYTES_MAX`, and no more
than `PIPELINE_MAX` requests wait behind one. Time is counted in turns of the sweep, once a second: a request costs no
timer.
"""

from enum import Enum
from typing import Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from teraflock.api.refusals import Refusals
from teraflock.app.connections import Connection, Connections

HEAD_BYTES_MAX: Final = 65_536
PIPELINE_MAX: Final = 32
"""Requests on one connection that wait for the answer before them. Some bytes of each cost us some kilobytes."""


class Waits(Enum):
    """What a connection waits for."""

    HEAD = "head"
    BODY = "body"
    NEXT = "next"
    ANSWER = "answer"
    """We are at work: the client waits, not we."""


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    head_seconds: float
    """For the head of a request, from its first byte or from the connection on; and for a TLS handshake."""
    body_seconds: float
    idle_seconds: float = 15.0
    """For the next request. uvicorn closes after 5 seconds, unless bytes came that are no request."""
    taking_seconds: float = 30.0
    """For taking an answer that waits to be sent."""


class Watch:
    """What all connections share: the time, and who is connected."""

    def __init__(self, connections: Connections, deadlines: Deadlines, refusals: Refusals) -> None:
        self.connections = connections
        self.deadlines = deadlines
        self.refusals = refusals
        self.now = 0.0


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, watch: Watch, entered: Connection, **more: Any) -> None:
        super().__init__(**more)
        self._watch = watch
        self._entered = entered
        self._state = Waits.HEAD
        self._since = watch.now
        self._stuck_since: float | None = None
        self._in_message = self._in_head = False
        """Between the first and the last byte of a request, and of its head: also of one that waits behind another."""
        self._head_bytes = 0

    # What happens on the connection

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._entered.end = transport.abort
        self._since = self._watch.now

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.connections.leave(self._entered)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(431, "The head of the request is too long.")

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINE_MAX:
            raise ValueError("too many requests at once")  # the parser stops, and uvicorn answers with 400
        super().on_message_begin()
        self._in_message = self._in_head = True
        if self._state is Waits.NEXT:
            self._wait_for(Waits.HEAD)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head, self._head_bytes = False, 0
        if self._state is not Waits.ANSWER:
            self._wait_for(Waits.BODY)
            self._watch.connections.works(self._entered)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_message = False
        if self._state is Waits.BODY:  # of a request that may have been answered before its body was there
            self._wait_for(Waits.NEXT if self.cycle.response_complete else Waits.ANSWER)

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self._watch.connections.waits(self._entered)
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

    # What the sweep asks

    def is_late(self) -> bool:
        """Whether the client keeps us waiting for too long."""
        watch = self._watch
        now, limits = watch.now, watch.deadlines
        if self._stuck_since is not None and now - self._stuck_since > limits.taking_seconds:
            return True
        if self.transport.is_closing():  # all is written but for what the client does not take
            if self._stuck_since is None:
                self._stuck_since = now
            return False
        waited = now - self._since
        if self._state is Waits.ANSWER:
            return False
        if self._state is Waits.HEAD:
            return waited > limits.head_seconds
        return waited > (limits.body_seconds if self._state is Waits.BODY else limits.idle_seconds)

    def _next(self) -> Waits:
        """After an answer: the body of the last request there is, where it is its turn, else an answer or a request."""
        if self._in_message and len(self.pipeline) <= 1:
            return Waits.BODY
        return Waits.ANSWER if self.pipeline else Waits.NEXT

    def _wait_for(self, what: Waits) -> None:
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
