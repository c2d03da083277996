"""Requests over one persistent connection. Uses the standard library's http.client, so that `tera` starts fast.

Invariants:
- safe requests are retried a few times if the connection fails or the server is unavailable: reads, idempotent
  actions, and requests that create something, which carry an `Idempotency-Key`;
- responses may have fields that this client does not know;
- every error is a `TeraflockError`.
"""

import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import ClassVar, Final, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from teraflock import __version__
from teraflock.base.errors import BadInput, TeraflockError
from teraflock.client.errors import NoAnswer, error_of

Answer = TypeVar("Answer")
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

ATTEMPTS_MAX: Final = 4
PAUSE_SECONDS: Final = 0.1  # before the second attempt; doubled before each further one
AWAY: Final = frozenset({502, 503, 504})  # statuses that may be temporary
SECONDS_MAX: Final = 30.0  # for one response
PIECE_BYTES: Final = 1 << 16
HEADERS: Final = {"Accept": "application/json", "User-Agent": f"teraflock/{__version__}"}


class Transport:
    news: ClassVar[str] = ""
    """The newest announcement that a response named."""

    def __init__(
        self,
        server: str,
        key: str,
        *,
        project: str = "",
        seconds_max: float = SECONDS_MAX,
        ca_file: str = "",
        connect: Callable[[float], HTTPConnection] | None = None,
        pause: Callable[[float], None] = time.sleep,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """`server` is `http://host:port` or `https://…`; `ca_file` has additional certificates to trust."""
        self.server = server.rstrip("/")
        self.project = project
        self._key = key
        self._seconds_max = seconds_max
        self._connect = connect or _connector(self.server, ca_file)
        self.pause = pause
        self._random_bytes = random_bytes
        self._connection: HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str, answer: type[Answer], /, **query: object) -> Answer:
        return self.decoded(self.request("GET", path, query=query), answer)

    def create(
        self,
        path: str,
        kind: type[Answer],
        body: object,
        *,
        idempotency_key: str = "",
        query: Mapping[str, object],
    ) -> Answer:
        """Create something once, however often the request is retried."""
        headers = {"Idempotency-Key": idempotency_key or self._random_bytes(16).hex()}
        return self.decoded(self.request("POST", path, body=body, headers=headers, query=query), kind)

    def act(
        self, method: Method, path: str, kind: type[Answer], body: object = None, **query: object
    ) -> Answer:
        """Send an idempotent request, such as setting a state."""
        return self.decoded(self.request(method, path, body=body, query=query), kind)

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
        """The body of a successful response. `again` allows retries."""
        content = None if body is None else msgspec.json.encode(body)
        sent = {**HEADERS, "Authorization": f"Bearer {self._key}", **(headers or {})}
        if content is not None:
            sent["Content-Type"] = "application/json"
        attempts = ATTEMPTS_MAX if again else 1
        for attempt in range(1, attempts + 1):
            try:
                status, answer = self._once(method, target_of(path, query), content, sent, seconds_max)
                if status < 400:
                    return answer
                error: TeraflockError = error_of(status, answer)
                is_away = status in AWAY
            except NoAnswer as failure:
                error, is_away = failure, True
            if attempt == attempts or not is_away:
                raise error
            self.pause(PAUSE_SECONDS * 2 ** (attempt - 1))
        raise AssertionError("the last attempt returns or raises")

    def open(
        self, path: str, headers: Mapping[str, str], query: Mapping[str, object], seconds_max: float
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """Open a separate connection whose response is read as it arrives."""
        connection = self._connect(seconds_max)
        sent = {**HEADERS, "Authorization": f"Bearer {self._key}", "Accept": "text/event-stream", **headers}
        try:
            connection.request("GET", target_of(path, query), headers=sent)
            response = connection.getresponse()
            if response.status >= 400:
                raise error_of(response.status, response.read())
        except (OSError, HTTPException) as error:
            connection.close()
            raise self.no_answer(error) from error
        except BaseException:
            connection.close()
            raise
        return connection, response

    def pieces(self, path: str, query: Mapping[str, object], seconds_max: float) -> Iterator[bytes]:
        """A long response in pieces as they arrive. A response that breaks off early is an error."""
        connection, response = self.open(path, {"Accept": "*/*"}, query, seconds_max)
        try:
            while piece := response.read(PIECE_BYTES):
                yield piece
        except (OSError, HTTPException) as error:
            raise self.no_answer(error) from error
        finally:
            connection.close()

    def _once(
        self,
        method: Method,
        target: str,
        content: bytes | None,
        headers: Mapping[str, str],
        seconds_max: float | None,
    ) -> tuple[int, bytes]:
        kept = self._connection is not None
        if self._connection is None:
            self._connection = self._connect(self._seconds_max)
        connection = self._connection
        try:
            if seconds_max is not None:
                connection.timeout = seconds_max
                if connection.sock:
                    connection.sock.settimeout(seconds_max)
            self._send(connection, method, target, content, headers)
            response = connection.getresponse()
            answer = response.status, response.read()
            Transport.news = response.getheader("Tera-News") or Transport.news
        except (OSError, HTTPException) as error:
            self.close()
            if kept and not isinstance(error, TimeoutError) and method == "GET":
                return self._once(
                    method, target, content, headers, seconds_max
                )  # the server had closed the idle connection
            raise self.no_answer(error) from error
        except (
            BaseException
        ):  # after Ctrl-C in the middle of a response, its rest must not be read as the next response
            self.close()
            raise
        if response.will_close or seconds_max is not None:
            self.close()
        return answer

    def _send(
        self,
        connection: HTTPConnection,
        method: Method,
        target: str,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> None:
        try:
            connection.request(method, target, body=content, headers=dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            if not content or connection.sock is None:
                raise
            # a server that refuses a large body has often sent the reason before it closed: read that

    def no_answer(self, error: Exception) -> NoAnswer:
        if isinstance(error, TimeoutError):
            return NoAnswer(
                f"The server at {self.server} did not respond in time",
                hint="Try again. `tera doctor` checks a server on this machine",
            )
        if isinstance(error, OSError) and _is_certificate(error):
            return NoAnswer(
                f"The certificate of {self.server} cannot be trusted: {error.strerror or error}",
                hint="Set `TERA_CA` to the file of its certificate",
            )
        reason = (
            (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        )
        return NoAnswer(
            f"The server at {self.server} cannot be reached: {reason}",
            hint="Start it with `make up`, or check it with `tera doctor`",
        )

    def decoded(self, content: bytes, kind: type[Answer]) -> Answer:
        if kind is type(None):
            return None
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError as error:
            raise NoAnswer(
                f"The server at {self.server} sent a response that this client does not understand: {error}",
                hint="Check that client and server have the same version",
            ) from error


def path_of(*words: str) -> str:
    """The path `/v1/…`. Each word is escaped, so that it stays one segment."""
    for word in words:
        if not word or word in (".", ".."):
            raise BadInput("The name is empty", hint="Give an id or a name")
    return "/v1/" + "/".join(quote(word, safe="") for word in words)


def target_of(path: str, query: Mapping[str, object] | None) -> str:
    given = [
        (name, _text(each))
        for name, value in (query or {}).items()
        for each in (value if isinstance(value, tuple) else (value,))
        if each not in (None, "")
    ]
    return f"{path}?{urlencode(given)}" if given else path


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_certificate(error: OSError) -> bool:
    return type(error).__name__ == "SSLCertVerificationError"


def _connector(server: str, ca_file: str) -> Callable[[float], HTTPConnection]:
    parts = urlsplit(server)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in ("http", "https") or not host or parts.path or parts.query:
        raise BadInput(
            f"`{server}` is not the address of a server", hint="Write it as `http://127.0.0.1:8372`"
        )
    if parts.scheme == "http":
        return lambda seconds: HTTPConnection(host, port or 80, timeout=seconds)
    return _secure(host, port or 443, ca_file)


def _secure(host: str, port: int, ca_file: str) -> Callable[[float], HTTPConnection]:
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(
                f"`{ca_file}` is not a file of certificates", hint="Set `TERA_CA` to a PEM file"
            ) from error
    return lambda seconds: HTTPSConnection(host, port, timeout=seconds, context=context)
