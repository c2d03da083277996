"""The typed client's way to the API inside the same process: no socket, but the same routes, permissions and limits."""

from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from typing import Protocol

import msgspec

from teraflock.client.errors import error_of
from teraflock.client.transport import Method, Transport, target_of


class Ask(Protocol):
    """Sends one request to the API and waits for the response. Called in a thread."""

    def __call__(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, address: str
    ) -> tuple[int, bytes]: ...


class InProcessTransport(Transport):
    def __init__(
        self, ask: Ask, secret: str, *, project: str, address: str, random_bytes: Callable[[int], bytes]
    ) -> None:
        super().__init__("this server", secret, project=project, connect=_refuse, random_bytes=random_bytes)
        self._ask = ask
        self._address = address
        self._authorization = {"authorization": f"Bearer {secret}"}

    def request(
        self,
        method: Method,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
        seconds_max: float | None = None,
    ) -> bytes:
        """The body of a successful response. Never retried: the server is this process."""
        sent = {**self._authorization, **{name.lower(): value for name, value in (headers or {}).items()}}
        content = b"" if body is None else msgspec.json.encode(body)
        if content:
            sent["content-type"] = "application/json"
        status, answer = self._ask(method, target_of(path, query), sent, content, self._address)
        if status >= 400:
            raise error_of(status, answer)
        return answer


def _refuse(_: float) -> HTTPConnection:
    raise AssertionError("a client inside the server needs no connection")
