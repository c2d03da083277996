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
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from teraflock import __version__
from teraflock.base.errors import TeraflockError
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import (
    PROTOCOL,
    VERSION,
    Done,
    Failed,
    FromServer,
    Hello,
    HostCall,
    Upgrade,
    Welcome,
    failed,
)
from teraflock.drivers.joined.methods import ALONE, CONTENT, METHODS, SENT, TAKEN, TERMINAL
from teraflock.drivers.joined.strangers import Strangers
from teraflock.drivers.joined.streaming import (
    SEND_SECONDS_MAX,
    failure,
    received,
    run_terminal,
    send_file,
    waited,
)
from teraflock.drivers.joined.upgrading import Install, package, pieces
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engine_errors import EngineBusy, EngineDown, EngineRefused
from teraflock.instance.terminal.model import TerminalDriver

LOG: Final = logging.getLogger("teraflock.host")
HANDSHAKE_SECONDS_MAX: Final = 5.0
IDLE_SECONDS_MAX: Final = 300.0
CONNECTIONS_MAX: Final = 256
STRANGERS_MAX: Final = 64
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
        install: Install | None = None,
    ) -> None:
        """`listener` is bound and listens. `install` installs another version, and has the program restarted."""
        self._driver = driver
        self._context = context
        self._listener = listener
        self._now = now
        self._version = version
        self._install = install
        self._calls = ThreadPoolExecutor(CALLS_MAX, "call")
        self._running: set[Future[Done | Failed]] = set()
        self._open: set[Channel] = set()
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._strangers = Strangers(STRANGERS_MAX, seconds_max=HANDSHAKE_SECONDS_MAX)
        self._ending = False

    def start(self) -> None:
        threading.Thread(target=self.run, name="host", daemon=True).start()

    def run(self) -> None:
        """Accept connections until `stop`."""
        while not self._ending:
            try:
                raw, source = self._listener.accept()
            except OSError:
                if self._ending:
                    return
                continue
            self._strangers.add(raw, str(source[0]))
            threading.Thread(target=self._connection, args=(raw,), daemon=True).start()

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

    def finish(self, seconds_max: float) -> None:
        """After `stop`, wait for the calls in progress."""
        wait(tuple(self._running), seconds_max)

    def _connection(self, raw: socket.socket) -> None:
        try:
            with raw, self._accepted(raw) as channel:
                self._converse(channel)
        except (OSError, TimeoutError) as error:
            LOG.debug("a connection ended: %s", error)
        except Exception:
            LOG.exception("a connection failed")
        finally:
            self._strangers.remove(raw)

    @contextmanager
    def _accepted(self, raw: socket.socket) -> Iterator[Channel]:
        with self._strangers.secured(raw, self._context) as sock:
            self._strangers.remove(raw)
            channel = Channel(sock)
            with self._lock:
                if self._ending or len(self._open) >= CONNECTIONS_MAX:
                    raise ConnectionError("too many connections")
                self._open.add(channel)
            try:
                yield channel
            finally:
                with self._lock:
                    self._open.discard(channel)
                channel.close()

    def _converse(self, channel: Channel) -> None:
        hello = received(channel, HANDSHAKE_SECONDS_MAX)
        if not isinstance(hello, Hello):
            return
        if (hello.version, hello.protocol) != (self._version, PROTOCOL):
            channel.send(failed(_other_version(hello.version, self._version)), seconds_max=SEND_SECONDS_MAX)
            self._upgrade(channel, received(channel, HANDSHAKE_SECONDS_MAX))
            return
        channel.send(self._welcome(), seconds_max=SEND_SECONDS_MAX)
        while not self._ending:
            request = received(channel, IDLE_SECONDS_MAX)
            if not isinstance(request, HostCall):
                self._upgrade(channel, request)
                return
            self._answer(channel, request)

    def _upgrade(self, channel: Channel, request: FromServer) -> None:
        """Install another version. The other requests of a server are not for a new connection."""
        if isinstance(request, Upgrade) and self._install is not None:
            content = package(channel)
            work = self._calls.submit(_installed, self._install, request, content)
            channel.send(waited(channel, work), seconds_max=SEND_SECONDS_MAX)

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
        if request.method in SENT:
            opening = getattr(self._driver, request.method)(**arguments)
            send_file(channel, opening, request.method, self._calls)
        elif request.method == TERMINAL:
            assert isinstance(self._driver, TerminalDriver)
            run_terminal(channel, partial(self._driver.open_terminal, **arguments))
        else:
            if request.method in TAKEN:
                arguments[CONTENT] = pieces(channel)
            work = self._calls.submit(self._called, request.method, arguments)
            self._running.add(work)
            work.add_done_callback(self._running.discard)
            channel.send(waited(channel, work), seconds_max=SEND_SECONDS_MAX)

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
            return failure(name, error)

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


def _installed(install: Install, request: Upgrade, content: bytes) -> Done | Failed:
    try:
        install(request, content)
    except Exception as error:
        return failure("upgrade", error)
    return Done()


def _malformed(method: str, reason: str) -> EngineRefused:
    return EngineRefused(f"The host cannot read the request `{method[:60]}`", context={"reason": reason})


def _other_version(server: str, own: str) -> EngineDown:
    return EngineDown(
        f"The host runs version {own}, and the server runs {server}",
        hint="On the server, run `tera host upgrade`",
        context={VERSION: own},
    )
