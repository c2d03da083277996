"""The Litestar application: our routes as its handlers, its errors in our form.

Where a route runs follows from its work (api/route.py): reads beside SQLite at once, the rest in threads, and what
waits for an engine in threads of its own, so that it holds up nobody else.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast

from litestar import HttpMethod, Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream
from litestar.types import ASGIApp
from msgspec.structs import replace

from teraflock.api.body import read_body
from teraflock.api.call import Raw
from teraflock.api.endpoint import Reply, admitted, failed, reply_to
from teraflock.api.errors import BodyTooLarge, MalformedRequest, MethodNotAllowed
from teraflock.api.gate import Gate, request_id_of
from teraflock.api.pieces import Pieces, SentInPieces
from teraflock.api.route import Route, Scope, Work
from teraflock.api.routes.all import ROUTES
from teraflock.api.services import Services
from teraflock.api.stream import Follower, Streams
from teraflock.base.errors import NotFound, TooMany
from teraflock.wire.instance import USER_DATA_BYTES_MAX

T = TypeVar("T")

UNREAD_BYTES_MAX: Final = 64 << 20
"""How much of a body that is too large is taken in and dropped, so that its sender gets to read the answer."""


class Application:
    """What uvicorn serves, and what must be told when the server stops."""

    def __init__(self, services: Services, routes: Sequence[Route] = ROUTES) -> None:
        self.services = services
        self.streams = Streams(services.bounds.streams_max)
        self._threads = ThreadPoolExecutor(services.bounds.threads, "tera-api")
        self._long = ThreadPoolExecutor(services.bounds.execs_max, "tera-exec")
        self._long_running = 0
        self.litestar = Litestar(
            [self._handler(path, found) for path, found in self._by_path(routes).items()],
            exception_handlers={HTTPException: _foreign, Exception: _unforeseen},
            openapi_config=None,
            logging_config=None,
            request_max_body_size=None,
            lifespan=[self._lifespan],
            debug=False,
        )
        self.asgi: ASGIApp = Gate(
            self.litestar, services.metrics, simulated=services.simulated, seconds=services.seconds
        )

    def _by_path(self, routes: Sequence[Route]) -> dict[str, list[Route]]:
        found: dict[str, list[Route]] = {}
        for route in routes:
            found.setdefault(route.path, []).append(self._as_set_up(route))
        return found

    def _as_set_up(self, route: Route) -> Route:
        if route.path == "/metrics" and self.services.bounds.metrics_open:
            return replace(route, scope=Scope.PUBLIC, may=None)
        return route

    def _handler(self, path: str, routes: Sequence[Route]) -> HTTPRouteHandler:
        """One for each path, so that Litestar knows all that a path takes."""
        by_method: dict[str, Route] = {route.method: route for route in routes}
        if "GET" in by_method and not by_method["GET"].stream:
            by_method["HEAD"] = by_method["GET"]

        async def serve(request: Request[Any, Any, Any]) -> ASGIApp:
            route = by_method[request.scope["method"]]  # Litestar lets no other through
            try:
                body = await self._body(route, request) if route.body else b""
                run = self._stream if route.stream else self._in_pieces if route.in_pieces else self._answer
                if request.scope["method"] == "HEAD":
                    return _WithoutBody(
                        await (self._head if route.in_pieces else run)(route, _raw(request, body))
                    )
                return await run(route, _raw(request, body))
            except Exception as error:
                return _Sent(failed(error, request_id_of(request.scope)))

        return HTTPRouteHandler(
            path.replace("}", ":str}"),
            http_method=[HttpMethod(method) for method in by_method],
            status_code=200,  # for Litestar's checks alone: every answer says its own
        )(serve)

    async def _body(self, route: Route, request: Request[Any, Any, Any]) -> bytes:
        limit = self.services.bounds.body_bytes_max
        content = await read_body(request.receive, limit, UNREAD_BYTES_MAX)
        if content is None:
            raise BodyTooLarge(
                f"The body of the request is larger than {limit:,} bytes", hint=_sizes(route, limit)
            )
        return content

    async def _answer(self, route: Route, raw: Raw) -> ASGIApp:
        return _Sent(await self._run(route.work, partial(reply_to, route, self.services, raw)))

    async def _stream(self, route: Route, raw: Raw) -> ASGIApp:
        services = self.services
        call, query = await self._run(route.work, partial(admitted, route, services, raw))
        after = raw.last_event_id or getattr(query, "after", "")
        follower = Follower(services.database, services.clock, call.project.id, after)
        self.streams.enter()
        turn = partial(self._run, Work.READ, follower.turn)
        still_good = partial(self._run, Work.READ, partial(admitted, route, services, raw))
        content = self.streams.follow(turn, still_good)
        return cast(ASGIApp, Stream(content, media_type=route.media_type))  # Litestar takes both

    async def _head(self, route: Route, raw: Raw) -> ASGIApp:
        """Of an answer that is made piece by piece: whether one may have it. None of it is made."""
        await self._run(Work.READ, partial(admitted, route, self.services, raw))
        return _Sent(Reply(route.status, b"", route.media_type, {}))

    async def _in_pieces(self, route: Route, raw: Raw) -> ASGIApp:
        call, query = await self._run(Work.READ, partial(admitted, route, self.services, raw))
        pieces = Pieces(route.handler(call, query=query, **raw.path))
        making = asyncio.ensure_future(self._run(route.work, pieces.make))
        making.add_done_callback(pieces.ended)
        return SentInPieces(await pieces.next(), pieces, route.media_type)

    async def _run(self, work: Work, act: Callable[[], T]) -> T:
        if work == Work.READ and self.services.reads_inline:
            return act()
        loop = asyncio.get_running_loop()
        if work != Work.LONG:
            return await loop.run_in_executor(self._threads, act)
        if self._long_running >= self.services.bounds.execs_max:
            raise TooMany(
                f"{self._long_running} commands are being run in instances already",
                hint="Come back when some have ended, or use `tera ssh`",
                context={"retry_after_seconds": 5},
            )
        self._long_running += 1
        try:
            return await loop.run_in_executor(self._long, act)
        finally:
            self._long_running -= 1

    @asynccontextmanager
    async def _lifespan(self, _: Litestar) -> AsyncIterator[None]:
        yield
        self.close()

    def close(self) -> None:
        """End the threads: those that write are waited for, those that wait for an engine are not."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._long.shutdown(wait=False, cancel_futures=True)


def _raw(request: Request[Any, Any, Any], body: bytes) -> Raw:
    scope = request.scope
    headers = {name: value for name, value in scope["headers"] if name in _HEADERS}
    client = scope["client"]
    key = headers.get(b"idempotency-key")
    return Raw(
        request_id=request_id_of(scope),
        path=scope["path_params"],
        query=scope["query_string"],
        authorization=headers.get(b"authorization", b"").decode("latin-1"),
        content_type=headers.get(b"content-type", b"").decode("latin-1"),
        idempotency_key=None if key is None else key.decode("latin-1"),
        last_event_id=headers.get(b"last-event-id", b"").decode("latin-1"),
        client=client[0] if client else "",
        body=body,
    )


_HEADERS: Final = frozenset({b"authorization", b"content-type", b"idempotency-key", b"last-event-id"})


class _Sent:
    """A reply on its way: what Litestar's own responses do besides, nobody here needs, and it costs a tenth."""

    __slots__ = ("_reply",)

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        reply = self._reply
        headers: list[tuple[bytes, bytes]] = []
        if reply.status != HTTPStatus.NO_CONTENT:
            headers.append((b"content-type", reply.media_type.encode()))
            headers.append((b"content-length", b"%d" % len(reply.body)))
        headers += [(name.lower().encode(), value.encode()) for name, value in reply.headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body, "more_body": False})


class _WithoutBody:
    """The head of an answer, as it would be with its body."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_head(message: Any) -> None:
            body = message["type"] == "http.response.body"
            await send({**message, "body": b""} if body else message)

        await self._app(scope, receive, send_head)


def _response(reply: Reply) -> Response[Any]:
    return Response(
        reply.body or None, status_code=reply.status, media_type=reply.media_type, headers=reply.headers
    )


def _sizes(route: Route, limit: int) -> str:
    if route.name == "launch_instances":
        return (
            f"`user_data` may have {USER_DATA_BYTES_MAX:,} bytes, the whole request {limit:,}:"
            " let a short script fetch the rest"
        )
    return f"Send at most {limit:,} bytes"


def _foreign(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """Litestar's own errors: no such path, no such method, and what it cannot read."""
    request_id = request_id_of(request.scope)
    if error.status_code == 404:
        return _response(
            failed(NotFound("There is no such path", hint="docs/openapi.json has all of them"), request_id)
        )
    if error.status_code == 405:
        allowed = (error.headers or {}).get("allow", "")
        reply = failed(
            MethodNotAllowed(f"The path takes no {request.method}", hint=f"It takes {allowed}"), request_id
        )
        return _response(Reply(reply.status, reply.body, reply.media_type, {"Allow": allowed}))
    if error.status_code < 500:
        return _response(
            failed(MalformedRequest("The request cannot be read", hint="Send plain HTTP/1.1"), request_id)
        )
    return _response(failed(error, request_id))


def _unforeseen(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    return _response(failed(error, request_id_of(request.scope)))
