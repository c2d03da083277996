"""The outermost layer of the server: every request gets an id, every answer our headers, everything is counted.

What holds: an answer always bears `Request-Id`, also one that Litestar or a fault of ours made; where nothing is real,
every answer says so in `Tera-Engine`.
"""

import os
from collections.abc import Callable
from typing import Any, Final

from litestar.types import ASGIApp, Message, Receive, Send

from teraflock.api.endpoint import failed
from teraflock.api.metrics import UNKNOWN_ROUTE, Metrics

REQUEST_ID_BYTES: Final = 9


def request_id_of(scope: Any) -> str:
    """The id the gate gave to a request."""
    id: str = scope["tera_request_id"]
    return id


class Gate:
    def __init__(
        self, app: ASGIApp, metrics: Metrics, *, simulated: bool, seconds: Callable[[], float]
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._seconds = seconds
        self._headers: list[tuple[bytes, bytes]] = [(b"cache-control", b"no-store")]
        if simulated:
            self._headers.append((b"tera-engine", b"simulated"))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._seconds()
        request_id = os.urandom(REQUEST_ID_BYTES).hex()
        scope["tera_request_id"] = request_id
        added = [(b"request-id", request_id.encode()), *self._headers]
        begun = False

        async def send_marked(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message["headers"], *added]
                route = scope.get("path_template") or UNKNOWN_ROUTE
                self._metrics.answered(scope["method"], route, message["status"], self._seconds() - began)
            await send(message)

        try:
            await self._app(scope, receive, send_marked)
        except Exception as error:
            reply = failed(error, request_id)
            if begun:  # half an answer is out: all that is left is to break off
                raise
            await send_marked(_start(reply.status, reply.media_type, len(reply.body)))
            await send_marked({"type": "http.response.body", "body": reply.body, "more_body": False})


def _start(status: int, media_type: str, length: int) -> Message:
    headers = [(b"content-type", media_type.encode()), (b"content-length", str(length).encode())]
    return {"type": "http.response.start", "status": status, "headers": headers}
