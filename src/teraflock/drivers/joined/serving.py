"""The host's side: accepts connections from the installation's server and makes its calls on the engine's driver.

Invariants:
- only a client whose certificate is from the installation's authority, and is meant for a server, gets past the
  handshake. Certificates of other hosts are not;
- a call that has begun is finished, even if the server is gone: all calls may be repeated;
- at most one call that changes an instance runs at a time for that instance. Another one gets `EngineBusy`.
"""

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final

import msgspec

from teraflock import __version__
from teraflock.base.errors import TeraflockError
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import (
    PROTOCOL,
    Done,
    Failed,
    FromServer,
    Hello,
    HostCall,
    Piece,
    Typed,
    Welcome,
    Working,
    failed,
)
from teraflock.drivers.joined.methods import ALONE, FILE, METHODS, TERMINAL, FileHead
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engine_errors import EngineBusy, EngineDown, EngineRefused
from teraflock.instance.terminal.model import EngineTerminal, TerminalDriver

LOG: Final = logging.getLogger("teraflock.host")
HANDSHAKE_SECONDS_MAX: Final = 5.0
SEND_SECONDS_MAX: Final = 10.0
IDLE_SECONDS_MAX: Final = 300.0
TERMINAL_SECONDS_MAX: Final = 3600.0 * 24
WORKING_SECONDS: Final = 2.0
CONNECTIONS_MAX: Final = 256
CALLS_MAX: Final = 64
BACKLOG: Final = 64


class HostServer:
    """`start` returns at once. `stop` closes all connections; calls in progress finish."""

    def __init__(
        self,
        driver: ComputeDriver,
        context: ssl.SSLContext,
        listener: socket.socket,
        *,
        now: Callable[[], datetime],
        version: str = __version__,
    ) -> None:
        """`listener` is bound and listens."""
        self._driver = driver
        self._context = context
        self._listener = listener
        self._now = now
        self._version = version
        self._calls = ThreadPoolExecutor(CALLS_MAX, "call")
        self._open: set[Channel] = set()
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._ending = False

    def start(self) -> None:
        threading.Thread(target=self.run, name="host", daemon=True).start()

    def run(self) -> None:
        """Accept connections until `stop`."""
        while not self._ending:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                if self._ending:
                    return
                continue
            if self._room.acquire(blocking=False):
                threading.Thread(target=self._connection, args=(raw,), daemon=True).start()
            else:
                raw.close()

    def stop(self) -> None:
        self._ending = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            channels = tuple(self._open)
        for each in channels:
            each.close()
        self._calls.shutdown(wait=False)

    def _connection(self, raw: socket.socket) -> None:
        try:
            with raw, self._accepted(raw) as channel:
                self._converse(channel)
        except (OSError, TimeoutError) as error:
            LOG.debug("a connection ended: %s", error)
        except Exception:
            LOG.exception("a connection failed")
        finally:
            self._room.release()

    @contextmanager
    def _accepted(self, raw: socket.socket) -> Iterator[Channel]:
        raw.settimeout(HANDSHAKE_SECONDS_MAX)
        with self._context.wrap_socket(raw, server_side=True) as sock:
            channel = Channel(sock)
            with self._lock:
                if self._ending:
                    return
                self._open.add(channel)
            try:
                yield channel
            finally:
                with self._lock:
                    self._open.discard(channel)
                channel.close()

    def _converse(self, channel: Channel) -> None:
        hello = _received(channel, HANDSHAKE_SECONDS_MAX)
        if not isinstance(hello, Hello):
            return
        if (hello.version, hello.protocol) != (self._version, PROTOCOL):
            channel.send(failed(_other_version(hello.version, self._version)), seconds_max=SEND_SECONDS_MAX)
            return
        channel.send(self._welcome(), seconds_max=SEND_SECONDS_MAX)
        while not self._ending:
            request = _received(channel, IDLE_SECONDS_MAX)
            if not isinstance(request, HostCall):
                return
            self._answer(channel, request)

    def _welcome(self) -> Welcome:
        return Welcome(
            version=self._version,
            now=self._now(),
            simulated=self._driver.simulated,
            capabilities=frozenset(each.value for each in self._driver.capabilities),
        )

    def _answer(self, channel: Channel, request: HostCall) -> None:
        try:
            arguments = self._arguments(request)
        except (TeraflockError, msgspec.DecodeError) as error:
            known = error if isinstance(error, TeraflockError) else _malformed(request.method, str(error))
            channel.send(failed(known), seconds_max=SEND_SECONDS_MAX)
            return
        if request.method == FILE:
            self._send_file(channel, arguments)
        elif request.method == TERMINAL:
            self._run_terminal(channel, arguments)
        else:
            work = self._calls.submit(self._called, request.method, arguments)
            channel.send(_result(channel, work), seconds_max=SEND_SECONDS_MAX)

    def _arguments(self, request: HostCall) -> dict[str, Any]:
        method = METHODS.get(request.method)
        if method is None or not hasattr(self._driver, request.method):
            raise EngineRefused(f"The engine of this host cannot do `{request.method[:60]}`")
        return method.unpacked(request.arguments)

    def _called(self, name: str, arguments: dict[str, Any]) -> Done | Failed:
        try:
            with self._alone(name, arguments):
                result = METHODS[name].result
                value = getattr(self._driver, name)(**arguments)
                if value is not None and getattr(result, "__origin__", None) is tuple:
                    value = tuple(value)
            return Done(result=msgspec.msgpack.encode(value))
        except Exception as error:
            return _failure(name, error)

    @contextmanager
    def _alone(self, name: str, arguments: dict[str, Any]) -> Iterator[None]:
        if name not in ALONE:
            yield
            return
        id = arguments["machine"].id if "machine" in arguments else arguments["handle"].instance_id
        with self._lock:
            if id in self._busy:
                raise EngineBusy("The host is still working on an earlier request for this instance")
            self._busy.add(id)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(id)

    def _send_file(self, channel: Channel, arguments: dict[str, Any]) -> None:
        """Send the head of a file, then its content. An error in between ends the content."""
        try:
            with self._driver.file(**arguments) as found:
                fields = {name: getattr(found, name) for name in FileHead.__struct_fields__}
                head = msgspec.msgpack.encode(FileHead(**fields))
                streams = found.content is not None
                channel.send(Done(result=head, streams=streams), seconds_max=SEND_SECONDS_MAX)
                for piece in found.content or ():
                    if piece:
                        channel.send(Piece(content=piece), seconds_max=SEND_SECONDS_MAX)
                if streams:
                    channel.send(Piece(content=b""), seconds_max=SEND_SECONDS_MAX)
        except TeraflockError as error:
            channel.send(_failure(FILE, error), seconds_max=SEND_SECONDS_MAX)

    def _run_terminal(self, channel: Channel, arguments: dict[str, Any]) -> None:
        """Connect a shell with the connection, until one of them ends. The connection is then closed."""
        try:
            assert isinstance(self._driver, TerminalDriver)
            terminal = self._driver.open_terminal(**arguments)
        except TeraflockError as error:
            channel.send(failed(error), seconds_max=SEND_SECONDS_MAX)
            return
        reader = threading.Thread(target=_show, args=(terminal, channel), daemon=True)
        try:
            channel.send(Done(streams=True), seconds_max=SEND_SECONDS_MAX)
            reader.start()
            while isinstance(typed := _received(channel, TERMINAL_SECONDS_MAX), Typed):
                if typed.columns:
                    terminal.resize(typed.columns, typed.rows)
                if typed.content:
                    terminal.write(typed.content)
        finally:
            terminal.close()
            channel.close()


def _received(channel: Channel, seconds_max: float) -> FromServer:
    return channel.receive(FromServer, seconds_max=seconds_max)  # type: ignore[arg-type]


def _result(channel: Channel, work: "Future[Done | Failed]") -> Done | Failed:
    """Wait for a call, and tell the server meanwhile that it is in progress."""
    while True:
        try:
            return work.result(WORKING_SECONDS)
        except NotYet:
            channel.send(Working(), seconds_max=SEND_SECONDS_MAX)


def _show(terminal: EngineTerminal, channel: Channel) -> None:
    with suppress(OSError, TimeoutError):
        while content := terminal.read():
            channel.send(Piece(content=content), seconds_max=TERMINAL_SECONDS_MAX)
        channel.send(Piece(content=b""), seconds_max=SEND_SECONDS_MAX)
    channel.close()


def _failure(name: str, error: Exception) -> Failed:
    if isinstance(error, TeraflockError):
        LOG.info("%s: %s %s", name, error.sentence, dict(error.context))
    else:
        LOG.error("%s failed", name, exc_info=error)
    return failed(error)


def _malformed(method: str, reason: str) -> EngineRefused:
    return EngineRefused(f"The host cannot read the request `{method[:60]}`", context={"reason": reason})


def _other_version(server: str, own: str) -> EngineDown:
    return EngineDown(
        f"The host runs version {own}, and the server runs {server}",
        hint="Install the same version on both, then restart the host program: `tera host serve`",
    )
