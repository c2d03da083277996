"""uvicorn as we run it: told from outside when to end, and leaving the end of the process to us."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from teraflock.api.asgi import Application
from teraflock.app.settings import Settings

STOP_SECONDS_MAX: Final = 10
"""For requests that are under way when the end is asked for."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class HttpServer(uvicorn.Server):
    def __init__(self, application: Application, settings: Settings) -> None:
        self._application = application
        super().__init__(
            uvicorn.Config(
                application.asgi,
                http="httptools",
                loop="uvloop",
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                ssl_certfile=settings.tls_cert or None,
                ssl_keyfile=settings.tls_key or None,
                timeout_graceful_shutdown=STOP_SECONDS_MAX,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.streams.stop()  # else an open stream would hold up the end
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would send itself the signal again at its end, and the loops would die in the middle of a step."""
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
