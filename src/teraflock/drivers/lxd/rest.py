"""REST client for LXD or Incus over its Unix socket. Threads may share one client.

A call returns the decoded `metadata` of the response, or raises an error from `errors.py`. For background
work, the client waits for the operation by its id and checks its status, because the response alone does not
mean success. A connection is reused only while it is open. A request that changes something is never sent
twice.
"""

import contextlib
import http.client
import os
import select
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, urlencode

import msgspec

from teraflock.drivers.lxd import errors
from teraflock.instance.engine_errors import EngineBusy, EngineDown

CALL_SECONDS_MAX: Final = 30.0
"""The engine answers a plain call within milliseconds unless it hangs."""
OPERATION_SECONDS_MAX: Final = 120
IDLE_CONNECTIONS_MAX: Final = 16
SUCCESS: Final = 200
FAILED_FROM: Final = 400
STREAM_PIECE_BYTES: Final = 1 << 20
STREAM_SECONDS_MAX: Final = 600
"""For one chunk: a busy disk may be slow."""
ERROR_BYTES_MAX: Final = 1000
BYTES: Final = "application/octet-stream"


class EngineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The envelope of every response."""

    type: str = ""
    operation: str = ""
    error: str = ""
    error_code: int = 0
    metadata: Any = None


class LxdOperation(msgspec.Struct, frozen=True, kw_only=True):
    """Background work, as the engine reports it."""

    id: str
    status_code: int
    err: str = ""
    metadata: dict[str, Any] | None = None


class LxdClient:
    """The REST API of one engine, within one of its projects."""

    def __init__(self, socket_path: Path, *, project: str = "default", member: str = "") -> None:
        self.socket_path = socket_path
        self.project = project
        self._member = member
        self._idle: list[_UnixConnection] = []
        self._lock = threading.Lock()
        self._server = ""

    def server(self) -> str:
        """Return `lxd` or `incus`. Cached: the engine on a socket never changes."""
        self._server = self._server or str(self.get()["environment"]["server"])
        return self._server

    def get(self, *path: str, **query: str | int) -> Any:
        found = self._answer("GET", path, query).metadata
        return [] if found is None and "recursion" in query else found  # Incus returns null for an empty list

    def get_bytes(self, *path: str, **query: str | int) -> bytes:
        """Return the content of a file."""
        status, content = self._request("GET", path, query, None, {}, CALL_SECONDS_MAX)
        if status >= FAILED_FROM:
            raise errors.error_for(f"GET {'/'.join(path)}", status, content[:1000].decode("utf-8", "replace"))
        return content

    def stream(self, *path: str) -> Iterator[bytes]:
        """Read a large file in chunks over its own connection."""
        with self.open(*path, seconds_max=STREAM_SECONDS_MAX) as response:
            while piece := response.read(STREAM_PIECE_BYTES):
                yield piece

    @contextlib.contextmanager
    def open(
        self,
        *path: str,
        headers: Mapping[str, str] | None = None,
        seconds_max: float = CALL_SECONDS_MAX,
        **query: str | int,
    ) -> Iterator[http.client.HTTPResponse]:
        """Open a file to read part of it. Uses its own connection, because a pooled one must be read to the
        end."""
        connection = _UnixConnection(self.socket_path)
        try:
            connection.connect_within(seconds_max)
            connection.request("GET", self.target(*path, **query), None, dict(headers or {}))
            response = connection.getresponse()
            if response.status >= FAILED_FROM:
                message = response.read(ERROR_BYTES_MAX).decode("utf-8", "replace")
                raise errors.error_for(f"GET {'/'.join(path)}", response.status, message)
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise errors.down(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def names(self, *path: str) -> list[str]:
        """Return the names of all objects of a kind. The engine lists their URLs."""
        return [str(address).partition("?")[0].rpartition("/")[2] for address in self.get(*path)]

    def put(self, *path: str, body: object, **query: str | int) -> Any:
        return self._done("PUT", path, query, body)

    def patch(self, *path: str, body: object, **query: str | int) -> Any:
        return self._done("PATCH", path, query, body)

    def post(
        self,
        *path: str,
        body: object,
        headers: Mapping[str, str] | None = None,
        seconds_max: int = OPERATION_SECONDS_MAX,
        **query: str | int,
    ) -> Any:
        return self._done("POST", path, query, body, headers, seconds_max)

    def create_instance(
        self,
        body: object,
        headers: Mapping[str, str] | None = None,
        seconds_max: int = OPERATION_SECONDS_MAX,
    ) -> None:
        """Create an instance here. A cluster would choose any of its members."""
        here = {"target": self._member} if self._member else {}
        self._done("POST", ("instances",), here, body, headers, seconds_max)

    def delete(self, *path: str, **query: str | int) -> Any:
        return self._done("DELETE", path, query, None)

    def begin(self, *path: str, body: object, **query: str | int) -> LxdOperation:
        """Start background work. `wait` waits for it."""
        return self.send("POST", *path, body=body, **query)

    def send(self, method: str, *path: str, body: object = None, **query: str | int) -> LxdOperation:
        return msgspec.convert(self._answer(method, path, query, body).metadata, LxdOperation)

    def target(self, *path: str, **query: str | int) -> str:
        """Build the target of a request. Each part is quoted as a whole, so no name can reach another path."""
        quoted = (quote(part, safe="") for part in path)
        return "/".join(["/1.0", *quoted]) + "?" + urlencode({"project": self.project, **query})

    def wait(self, operation: str, *, seconds_max: int = OPERATION_SECONDS_MAX) -> dict[str, Any]:
        """Wait for an operation to end. Raise if it failed or has not ended in time."""
        # Build the path from the id alone: on a cluster, the `operation` field of a response ends in
        # `?project=…`, and appending to it would request something else.
        answer = self._answer(
            "GET", ("operations", operation, "wait"), {"timeout": seconds_max}, seconds_max=seconds_max + 10
        )
        return _result(msgspec.convert(answer.metadata, LxdOperation), f"operation {operation}")

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        for connection in getattr(self, "_idle", ()):
            connection.close()

    def _done(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str | int],
        body: object,
        headers: Mapping[str, str] | None = None,
        seconds_max: int = OPERATION_SECONDS_MAX,
    ) -> Any:
        """Return the response's metadata. If the response is an operation, wait for it and return its result."""
        answer = self._answer(method, path, query, body, headers)
        if answer.type != "async":
            return answer.metadata
        return self.wait(msgspec.convert(answer.metadata, LxdOperation).id, seconds_max=seconds_max)

    def _answer(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str | int],
        body: object = None,
        headers: Mapping[str, str] | None = None,
        seconds_max: float = CALL_SECONDS_MAX,
    ) -> EngineAnswer:
        status, content = self._request(method, path, query, body, headers or {}, seconds_max)
        try:
            answer = msgspec.json.decode(content, type=EngineAnswer)
        except msgspec.DecodeError as error:
            raise errors.error_for(f"{method} {'/'.join(path)}", status, str(error)) from error
        if answer.error or status >= FAILED_FROM:
            raise errors.error_for(f"{method} {'/'.join(path)}", answer.error_code or status, answer.error)
        return answer

    def _request(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str | int],
        body: object,
        headers: Mapping[str, str],
        seconds_max: float,
    ) -> tuple[int, bytes]:
        target = self.target(*path, **query)
        try:
            return self._exchange(method, target, body, headers, seconds_max)
        except EngineDown as error:
            if method != "GET" or not error.context.get("hung_up"):
                raise
            # The engine closed an idle connection at the moment we used it.
            return self._exchange(method, target, body, headers, seconds_max)

    def _exchange(
        self, method: str, target: str, body: object, headers: Mapping[str, str], seconds_max: float
    ) -> tuple[int, bytes]:
        with _encoded(body, headers) as (content, sent), self._connection(seconds_max) as connection:
            connection.request(method, target, content, sent)
            response = connection.getresponse()
            return response.status, response.read()

    @contextlib.contextmanager
    def _connection(self, seconds_max: float) -> Iterator["_UnixConnection"]:
        """A connection for one request. It is reused if the request succeeds."""
        connection = self._idle_connection() or _UnixConnection(self.socket_path)
        reused = connection.sock is not None
        try:
            connection.connect_within(seconds_max)
            yield connection
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            hung_up = reused and isinstance(error, ConnectionError)
            raise errors.down(f"{type(error).__name__}: {error}", hung_up=hung_up) from error
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def _idle_connection(self) -> "_UnixConnection | None":
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_open():
                return connection
            connection.close()


def unix_socket(path: Path, seconds_max: float) -> socket.socket:
    """Connect in blocking mode, which waits in the queue. A non-blocking socket would be rejected when the
    queue is full."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(seconds_max) + 1, 0)
        )
        connection.connect(str(path))
        connection.settimeout(seconds_max)
    except BaseException:
        connection.close()
        raise
    return connection


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, socket_path: Path) -> None:
        super().__init__("engine")
        self._socket_path = socket_path

    def connect_within(self, seconds_max: float) -> None:
        self.timeout = seconds_max
        if self.sock is None:
            self.connect()
        self.sock.settimeout(seconds_max)

    def connect(self) -> None:
        self.sock = unix_socket(self._socket_path, self.timeout or CALL_SECONDS_MAX)

    def is_open(self) -> bool:
        """Check that nothing can be read: on an idle connection that could only be its end."""
        if self.sock is None:
            return True
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return not poll.poll(0)


@contextlib.contextmanager
def _encoded(
    body: object, headers: Mapping[str, str]
) -> Iterator[tuple[bytes | IO[bytes] | Iterator[bytes] | None, dict[str, str]]]:
    """Send a path as the content of its file, bytes and pieces of them as they are, and everything else as JSON."""
    if body is None:
        yield None, dict(headers)
    elif isinstance(body, Path):
        with body.open("rb") as file:
            size = str(os.fstat(file.fileno()).st_size)
            yield file, {"Content-Type": BYTES, "Content-Length": size, **headers}
    elif isinstance(body, bytes | Iterator):
        yield body, {"Content-Type": BYTES, **headers}
    else:
        yield msgspec.json.encode(body), {"Content-Type": "application/json", **headers}


def _result(operation: LxdOperation, what: str) -> dict[str, Any]:
    if operation.status_code == SUCCESS:
        return operation.metadata or {}
    if operation.status_code >= FAILED_FROM:
        raise errors.error_for(what, operation.status_code, operation.err)
    raise EngineBusy(
        "The container engine did not finish in time",
        hint="Check again in a moment: the operation is still running",
        context={"operation": operation.id, "status": operation.status_code},
    )
