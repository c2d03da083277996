"""Speaks REST with LXD or Incus over its Unix socket. Threads may share one client.

A call gives the answer's `metadata`, decoded, or raises one of `errors.py`. Work that the engine does in the
background is waited for by its operation's id, and its status is read: an answer alone is no success.
A connection is reused only while it is open; a request that changes something is never sent twice.
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
from teraflock.instance.driver import EngineBusy, EngineDown

CALL_SECONDS_MAX: Final = 30.0
"""The engine answers a plain call within milliseconds; only one that hangs takes longer."""
OPERATION_SECONDS_MAX: Final = 120
IDLE_CONNECTIONS_MAX: Final = 16
SUCCESS: Final = 200
FAILED_FROM: Final = 400
STREAM_PIECE_BYTES: Final = 1 << 20
STREAM_SECONDS_MAX: Final = 600
"""For one piece: a busy disk may be slow."""
ERROR_BYTES_MAX: Final = 1000
BYTES: Final = "application/octet-stream"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The envelope of every answer."""

    type: str = ""
    operation: str = ""
    error: str = ""
    error_code: int = 0
    metadata: Any = None


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Work in the background, as the engine tells of it."""

    id: str
    status_code: int
    err: str = ""
    metadata: dict[str, Any] | None = None


class Client:
    """One engine's REST interface, within one of its projects."""

    def __init__(self, socket_path: Path, *, project: str = "default") -> None:
        self.socket_path = socket_path
        self.project = project
        self._idle: list[_UnixConnection] = []
        self._lock = threading.Lock()
        self._server = ""

    def server(self) -> str:
        """What answers, `lxd` or `incus`. Asked once: behind a socket one never follows the other."""
        self._server = self._server or str(self.get()["environment"]["server"])
        return self._server

    def get(self, *path: str, **query: str | int) -> Any:
        found = self._answer("GET", path, query).metadata
        return [] if found is None and "recursion" in query else found  # Incus has no word for an empty list

    def get_bytes(self, *path: str, **query: str | int) -> bytes:
        """A file's content, as it is."""
        status, content = self._request("GET", path, query, None, {}, CALL_SECONDS_MAX)
        if status >= FAILED_FROM:
            raise errors.told(f"GET {'/'.join(path)}", status, content[:1000].decode("utf-8", "replace"))
        return content

    def stream(self, *path: str) -> Iterator[bytes]:
        """A large file piece by piece, over a connection of its own."""
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
        """A file, to be read as far as it is wanted: on a connection of its own, for a pooled one cannot be left."""
        connection = _UnixConnection(self.socket_path)
        try:
            connection.connect_within(seconds_max)
            connection.request("GET", self.target(*path, **query), None, dict(headers or {}))
            response = connection.getresponse()
            if response.status >= FAILED_FROM:
                said = response.read(ERROR_BYTES_MAX).decode("utf-8", "replace")
                raise errors.told(f"GET {'/'.join(path)}", response.status, said)
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise errors.down(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def names(self, *path: str) -> list[str]:
        """The names of all things of a kind, of which the engine lists the addresses."""
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

    def delete(self, *path: str, **query: str | int) -> Any:
        return self._done("DELETE", path, query, None)

    def begin(self, *path: str, body: object, **query: str | int) -> Operation:
        """Begin work in the background; `wait` waits for it."""
        return self.send("POST", *path, body=body, **query)

    def send(self, method: str, *path: str, body: object = None, **query: str | int) -> Operation:
        return msgspec.convert(self._answer(method, path, query, body).metadata, Operation)

    def target(self, *path: str, **query: str | int) -> str:
        """What stands in a request's first line. Each part is quoted whole: no name can reach another path."""
        quoted = (quote(part, safe="") for part in path)
        return "/".join(["/1.0", *quoted]) + "?" + urlencode({"project": self.project, **query})

    def wait(self, operation: str, *, seconds_max: int = OPERATION_SECONDS_MAX) -> dict[str, Any]:
        """Wait for an operation's end. Raises if it failed, or is not over by then."""
        # The path is built from the id alone: on a cluster the `operation` field of an answer ends in
        # `?project=…`, and what is appended to it asks for something else.
        answer = self._answer(
            "GET", ("operations", operation, "wait"), {"timeout": seconds_max}, seconds_max=seconds_max + 10
        )
        return _result(msgspec.convert(answer.metadata, Operation), f"operation {operation}")

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
        """The answer's metadata; where the answer is an operation, what that ended with."""
        answer = self._answer(method, path, query, body, headers)
        if answer.type != "async":
            return answer.metadata
        return self.wait(msgspec.convert(answer.metadata, Operation).id, seconds_max=seconds_max)

    def _answer(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str | int],
        body: object = None,
        headers: Mapping[str, str] | None = None,
        seconds_max: float = CALL_SECONDS_MAX,
    ) -> Answer:
        status, content = self._request(method, path, query, body, headers or {}, seconds_max)
        try:
            answer = msgspec.json.decode(content, type=Answer)
        except msgspec.DecodeError as error:
            raise errors.told(f"{method} {'/'.join(path)}", status, str(error)) from error
        if answer.error or status >= FAILED_FROM:
            raise errors.told(f"{method} {'/'.join(path)}", answer.error_code or status, answer.error)
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
            # The engine hung up on a line that lay idle, in the very moment we spoke.
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
        """A connection for one exchange; put back for the next if that went well."""
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
    """Connected, waiting its turn where many want to connect: one that must not block is turned away then."""
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
        """Nothing is waiting to be read: on an idle connection that could only be its end."""
        if self.sock is None:
            return True
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return not poll.poll(0)


@contextlib.contextmanager
def _encoded(
    body: object, headers: Mapping[str, str]
) -> Iterator[tuple[bytes | IO[bytes] | None, dict[str, str]]]:
    """A path stands for its file's content, bytes go as they are, everything else as JSON."""
    if body is None:
        yield None, dict(headers)
    elif isinstance(body, Path):
        with body.open("rb") as file:
            size = str(os.fstat(file.fileno()).st_size)
            yield file, {"Content-Type": BYTES, "Content-Length": size, **headers}
    elif isinstance(body, bytes):
        yield body, {"Content-Type": BYTES, **headers}
    else:
        yield msgspec.json.encode(body), {"Content-Type": "application/json", **headers}


def _result(operation: Operation, what: str) -> dict[str, Any]:
    if operation.status_code == SUCCESS:
        return operation.metadata or {}
    if operation.status_code >= FAILED_FROM:
        raise errors.told(what, operation.status_code, operation.err)
    raise EngineBusy(
        "The container engine has not finished in time",
        hint="Look again in a moment: the work goes on",
        context={"operation": operation.id, "status": operation.status_code},
    )
