"""The outermost layer of the server: gives every request an id, adds headers, and counts requests.

Invariants: every response has `Request-Id`, even if Litestar or a bug produced it. If the engine is simulated, every
response has the header `Tera-Engine`.
"""

import logging
import os
from collections.abc import Callable
from typing import Any, Final

from litestar.types import ASGIApp, Message, Receive, Send

from teraflock.api.asked import Asked
from teraflock.api.endpoint import failed
from teraflock.api.metrics import UNKNOWN_ROUTE, Metrics
from teraflock.api.refusals import RequestLog

REQUEST_ID_BYTES: Final = 9
ADDRESS_CHARACTERS_MAX: Final = 64
_UNCACHED: Final = (b"cache-control", b"no-store")
"""For every response that does not say otherwise, as static files do."""


def asked_of(scope: Any) -> Asked:
    """What the gate records about a request."""
    asked: Asked = scope["tera_asked"]
    return asked


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        *,
        reality: Callable[[], str],
        seconds: Callable[[], float],
        log: RequestLog,
        access: logging.Logger | None = None,
    ) -> None:
        self._app = app
        self._log = log
        self._access = access
        self._metrics = metrics
        self._seconds = seconds
        self._headers: list[tuple[bytes, bytes]] = []
        if (found := reality()) != "real":
            self._headers.append((b"tera-engine", found.encode()))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._seconds()
        request_id = os.urandom(REQUEST_ID_BYTES).hex()
        client = scope["client"]
        address = client[0][:ADDRESS_CHARACTERS_MAX] if client else ""  # a proxy may send anything
        asked = Asked(request_id, scope["method"], scope["path"], address)
        scope["tera_asked"] = asked
        added = [(b"request-id", request_id.encode()), *self._headers]
        begun = False

        async def send_marked(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                given = [*message["headers"]]
                if not any(name == b"cache-control" for name, _ in given):
                    given.append(_UNCACHED)
                message["headers"] = [*given, *added]
                route = scope.get("path_template") or UNKNOWN_ROUTE
                took = self._seconds() - began
                self._metrics.answered(scope["method"], route, message["status"], took)
                if self._access is not None:
                    status = message["status"]
                    self._access.info("%d %s, request %s, %.1f ms", status, asked, request_id, took * 1000)
            await send(message)

        try:
            await self._app(scope, receive, send_marked)
        except Exception as error:
            reply = failed(error, asked, self._log)
            if begun:  # part of the response is sent: it can only be broken off
                raise
            await send_marked(_start(reply.status, reply.media_type, len(reply.body)))
            await send_marked({"type": "http.response.body", "body": reply.body, "more_body": False})


def _start(status: int, media_type: str, length: int) -> Message:
    headers = [(b"content-type", media_type.encode()), (b"content-length", str(length).encode())]
    return {"type": "http.response.start", "status": status, "headers": headers}
