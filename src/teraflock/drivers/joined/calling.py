"""Connections from a server to one host: opened when needed, kept for later calls, and checked every time.

A connection carries one call at a time. A host that cannot be reached is asked again after a pause, so that calls to it
fail at once meanwhile and do not delay the server's other work.
"""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

import msgspec

from teraflock import __version__
from teraflock.base.errors import TeraflockError
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import (
    VERSION,
    Done,
    Failed,
    FromHost,
    Hello,
    HostCall,
    Piece,
    Welcome,
    Working,
    raised,
)
from teraflock.drivers.joined.methods import QUICK
from teraflock.instance.engine_errors import BadCredentials, EngineDown

LOG: Final = logging.getLogger("teraflock.engines")
CONNECT_SECONDS_MAX: Final = 4.0
ANSWER_SECONDS_MAX: Final = 7.0
"""A host that is working on a call says so every two seconds."""
QUICK_SECONDS_MAX: Final = 60.0
CALL_SECONDS_MAX: Final = 3600.0
"""For any other call: a host that says forever that it is working must not keep a loop of the server."""
ANSWER_BYTES_MAX: Final = 16 << 20
"""For one message of a host: 80,000 guests, or the longest output of a command several times."""
PIECE_SECONDS_MAX: Final = 120.0
"""For a piece of a file: the other end may be writing to a slow disk."""
IDLE_MAX: Final = 8
PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds before the next attempt to connect, after each failure in a row."""
SKEW_MAX: Final = timedelta(minutes=5)


class HostEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a host is, and the certificate that it must show."""

    name: str
    address: str
    port: int
    fingerprint: str


class Loan:
    """A connection that is in use."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.is_clean = False
        """The last call is over, and nothing of it is left on the connection."""
        self.is_taken = False
        """Something else closes the connection."""


def received(channel: Channel, seconds_max: float) -> FromHost:
    return channel.receive(FromHost, seconds_max=seconds_max)  # type: ignore[arg-type]


class Links:
    def __init__(
        self,
        to: HostEndpoint,
        context: ssl.SSLContext,
        *,
        now: Callable[[], datetime],
        version: str = __version__,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.to = to
        self._context = context
        self._now = now
        self._version = version
        self._seconds = seconds
        self._idle: list[Channel] = []
        self._lock = threading.Lock()
        self._failures = 0
        self._next_at = 0.0
        self._refusal: TeraflockError | None = None
        """Why the host refused the last connection, if it answered."""
        self.welcome: Welcome | None = None
        """What the host said about itself on the last connection."""

    @contextmanager
    def borrowed(self) -> Iterator["Loan"]:
        """A connection for one call. It is kept for the next one only if the call left nothing on it."""
        loan = Loan(self._taken() or self._opened())
        try:
            yield loan
        except (OSError, TimeoutError) as error:
            self.close()  # the other connections are probably dead, too
            raise self._down(str(error)) from None
        finally:
            if loan.is_clean:
                self._keep(loan.channel)
            elif not loan.is_taken:
                loan.channel.close()

    def call(
        self, loan: "Loan", method: str, arguments: bytes, content: Iterable[bytes] | None = None
    ) -> Done:
        """Send a call and wait for its answer, as long as the host says that it is working on it.

        `content` follows the call in pieces.
        """
        channel = loan.channel
        channel.send(HostCall(method=method, arguments=arguments), seconds_max=ANSWER_SECONDS_MAX)
        if content is not None:
            for piece in content:
                if piece:
                    channel.send(Piece(content=piece), seconds_max=PIECE_SECONDS_MAX)
            channel.send(Piece(content=b""), seconds_max=PIECE_SECONDS_MAX)
        ends_at = self._seconds() + (QUICK_SECONDS_MAX if method in QUICK else CALL_SECONDS_MAX)
        answer = received(channel, ANSWER_SECONDS_MAX)
        while isinstance(answer, Working):
            if self._seconds() > ends_at:
                raise TimeoutError(f"its engine hangs in `{method}`")
            answer = received(channel, ANSWER_SECONDS_MAX)
        if isinstance(answer, Failed):
            loan.is_clean = True  # an answer like any other
            raise raised(answer)
        if not isinstance(answer, Done):
            raise ConnectionError(f"the host sent {type(answer).__name__} instead of an answer")
        loan.is_clean = not answer.streams
        return answer

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    def _taken(self) -> Channel | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                channel = self._idle.pop()
            if channel.is_idle():
                return channel
            channel.close()

    def _keep(self, channel: Channel) -> None:
        with self._lock:
            if len(self._idle) < IDLE_MAX:
                self._idle.append(channel)
                return
        channel.close()

    def _opened(self) -> Channel:
        with self._lock:
            if self._seconds() < self._next_at:
                raise self._down("it could not be reached a moment ago", self._refusal)
            # until this attempt ends, other calls fail at once if the last one failed
            self._next_at = self._seconds() + (CONNECT_SECONDS_MAX if self._failures else 0.0)
        try:
            channel = self._connected()
        except (OSError, TeraflockError) as error:
            with self._lock:
                self._refusal = error if isinstance(error, TeraflockError) else None
                self._next_at = self._seconds() + PAUSES[min(self._failures, len(PAUSES) - 1)]
                self._failures += 1
            raise error if isinstance(error, TeraflockError) else self._down(str(error)) from None
        with self._lock:
            self._failures, self._next_at = 0, 0.0
        return channel

    def version_of(self, channel: Channel) -> str:
        """Greet the host on a connection from `secured`, and return its version, whatever it is."""
        try:
            self._greet(channel)
        except EngineDown as error:
            if VERSION not in error.context:
                raise
            return str(error.context[VERSION])
        return self._version

    def secured(self) -> Channel:
        """A connection to the host that was not greeted yet."""
        try:
            return self._secured()
        except OSError as error:
            raise self._down(str(error)) from None

    def forget_failures(self) -> None:
        """Connect again at once."""
        with self._lock:
            self._failures, self._next_at = 0, 0.0

    def _connected(self) -> Channel:
        channel = self._secured()
        try:
            self._greet(channel)
        except BaseException:
            channel.close()
            raise
        return channel

    def _secured(self) -> Channel:
        raw = socket.create_connection((self.to.address, self.to.port), CONNECT_SECONDS_MAX)
        try:
            channel = Channel(self._context.wrap_socket(raw), received_bytes_max=ANSWER_BYTES_MAX)
        except BaseException:
            raw.close()
            raise
        if channel.fingerprint != self.to.fingerprint:
            channel.close()
            raise BadCredentials(
                f"`{self.to.name}` showed another certificate than the one it joined with",
                hint=f"Another machine has its address, or it joined again. See `tera host show {self.to.name}`",
            )
        return channel

    def _greet(self, channel: Channel) -> None:
        channel.send(Hello(version=self._version), seconds_max=CONNECT_SECONDS_MAX)
        answer = received(channel, CONNECT_SECONDS_MAX)
        if isinstance(answer, Failed):
            raise raised(answer)
        if not isinstance(answer, Welcome):
            raise ConnectionError("the host did not greet")
        if self.welcome is None and abs(answer.now - self._now()) > SKEW_MAX:
            LOG.warning("the clock of %s differs from ours by more than five minutes", self.to.name)
        self.welcome = answer

    def _down(self, reason: str, refusal: TeraflockError | None = None) -> EngineDown:
        if refusal is not None:
            return EngineDown(refusal.sentence, hint=refusal.hint, context=refusal.context)
        return EngineDown(
            f"The host `{self.to.name}` does not answer at {self.to.address}:{self.to.port}",
            hint="Check that the machine is on, and that `tera host serve` runs there. See docs/hosts.md",
            context={"reason": reason},
        )
