"""uvicorn with our changes: the caller decides when it ends, and the process continues afterwards.

Our own listener accepts connections, and a sweep once a second closes those that exceed a time limit.
"""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from teraflock.api.addresses import Network, networks_of
from teraflock.api.asgi import Application
from teraflock.api.refusals import Refusals
from teraflock.app.connections import Connections, OpenConnection, connections_most
from teraflock.app.http_protocol import BoundedProtocol, Deadlines, SharedState
from teraflock.app.listener import Listener
from teraflock.app.settings import Settings

STOP_SECONDS_MAX: Final = 10
"""For requests in progress when the server is asked to stop."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
TICKS_PER_SWEEP: Final = 10  # uvicorn ticks ten times a second
SAME_CHARACTERS: Final = 20  # lines with the same start count as repeats: ports and addresses come later
LOG: Final = logging.getLogger("teraflock.server")


class RepeatFilter(logging.Filter):
    """Sums up repeated log lines of libraries, because a client can cause any number of them."""

    def __init__(self, faults: Refusals) -> None:
        super().__init__()
        self._faults = faults

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        self._faults.note(
            f"{record.name} {str(record.msg)[:SAME_CHARACTERS]}",
            f"{record.name}: {record.getMessage()}",
            level=record.levelno,
            error=error if isinstance(error, Exception) else None,
        )
        return False


class HttpServer(uvicorn.Server):
    def __init__(self, application: Application, settings: Settings, *, files: int) -> None:
        """`files` is the number of files that this process may open."""
        self._application = application
        self._seconds = application.services.seconds
        proxies = networks_of(settings.trusted_proxies)
        log = application.services.log
        deadlines = Deadlines(head_seconds=settings.head_seconds, body_seconds=settings.body_seconds)
        self._watch = SharedState(_connections(settings, proxies, files), deadlines, log.refusals)
        self._watch.now = self._seconds()
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(RepeatFilter(log.faults))
        super().__init__(
            uvicorn.Config(
                application.asgi,
                http=BoundedProtocol,
                ws="none",
                loop="uvloop",
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                proxy_headers=bool(proxies),
                forwarded_allow_ips=[str(each) for each in proxies],
                ssl_certfile=settings.tls_cert or None,
                ssl_keyfile=settings.tls_key or None,
                timeout_graceful_shutdown=STOP_SECONDS_MAX,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        loop = asyncio.get_running_loop()
        shared: dict[str, Any] = {
            "config": self.config,
            "server_state": self.server_state,
            "app_state": self.lifespan.state,
            "_loop": loop,
        }

        def protocol(entered: OpenConnection) -> BoundedProtocol:
            return BoundedProtocol(self._watch, entered, **shared)

        self.servers = [
            Listener(sock, self._watch, protocol, self.config.ssl)  # type: ignore[misc]  # has what uvicorn uses
            for sock in sockets or []
        ]
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_SWEEP == 0:
            self._sweep()
        return await super().on_tick(counter)

    def _sweep(self) -> None:
        """Close the connections that exceed a time limit."""
        self._watch.now = self._seconds()
        for connection in list(self.server_state.connections):
            if isinstance(connection, BoundedProtocol) and connection.is_late():
                connection.transport.abort()
        self._application.services.log.sum_up()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.end_streams()  # an open stream would delay the shutdown
        await super().shutdown(sockets)
        self._application.services.log.sum_up(at_once=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Prevent uvicorn from sending itself the signal again, which would end the loops in the middle of a step."""
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def _connections(settings: Settings, proxies: tuple[Network, ...], files: int) -> Connections:
    wanted = settings.connections_max
    most = connections_most(wanted, files, execs=settings.execs_max, threads=settings.threads)
    if most < wanted:
        LOG.warning(
            "limiting connections to %d instead of %d: this process may open only %d files",
            most,
            wanted,
            files,
        )
    return Connections(most, min(settings.connections_per_address, max(1, most // 2)), proxies)
