"""The Litestar application: wraps routes as handlers, and turns Litestar's errors into API problems.

A route's `work` (api/route.py) decides where it runs: reads on SQLite in the event loop, other work in threads, and
calls that wait for an engine in separate threads, so that they block nobody else. Permissions are checked before a
request gets a thread, so that no organisation can take all of them (api/shares.py).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar, cast

from litestar import HttpMethod, Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream
from litestar.types import ASGIApp, Receive
from msgspec.structs import replace

from teraflock.api.call import Raw
from teraflock.api.endpoint import (
    Reply,
    admitted_first,
    done,
    done_apart,
    done_reading,
    failed,
    reply_to,
)
from teraflock.api.errors import BodyTooLarge, MalformedRequest, MethodNotAllowed
from teraflock.api.gate import Gate, asked_of
from teraflock.api.pieces import Pieces, SentInPieces
from teraflock.api.route import Route, RouteWork, Scope
from teraflock.api.routes.all import ROUTES
from teraflock.api.services import Services
from teraflock.api.shares import Shares, Turns, tenant_of
from teraflock.api.stream import Follower, Streams
from teraflock.base.errors import NotFound
from teraflock.base.limits import USER_DATA_BYTES_MAX
from teraflock.tenant.model import Actor

T = TypeVar("T")

UNREAD_BYTES_MAX: Final = 64 << 20
"""How much of a body that is too large is read and dropped, so that the client can read the response."""

WAITING_MAX: Final = 256
"""How many requests of one organisation can wait for a thread. More are refused."""
PLANS_WAITING_MAX: Final = 16
"""How many estimates and plans of one organisation can wait. Each takes about a second."""
BODIES_PER_ORGANISATION: Final = 32
"""How many bodies are read at a time, each up to `body_bytes_max`."""
_HEADERS: Final = frozenset({b"authorization", b"content-type", b"idempotency-key", b"last-event-id"})


class _Answering(Protocol):
    """What a handler returns: an ASGI application. Litestar reads the annotation of each handler, and reading that of
    `ASGIApp` takes it as long as everything else about a handler."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...


class Application:
    """The application that uvicorn serves, and what to call when the server stops."""

    def __init__(
        self,
        services: Services,
        routes: Sequence[Route] = ROUTES,
        around: Callable[[ASGIApp], ASGIApp] = lambda api: api,
    ) -> None:
        """`around` wraps the API, behind the gate: it serves other paths, such as those of the console."""
        self.services = services
        self.streams_beside: list[Callable[[], None]] = []
        """How to end the streams of what is around the API."""
        self.closes_beside: list[Callable[[], None]] = []
        bounds = services.bounds
        self.streams = Streams(bounds.streams_max, bounds.streams_per_organisation)
        self._threads = ThreadPoolExecutor(bounds.threads, "tera-api")
        self._turns = Turns(max(1, bounds.threads // 2), WAITING_MAX)
        self._bodies = Turns(BODIES_PER_ORGANISATION, WAITING_MAX)
        self._long = ThreadPoolExecutor(bounds.execs_max, "tera-exec")
        self._planners = ThreadPoolExecutor(bounds.planners, "tera-planner")
        self._plans = Turns(max(1, bounds.planners // 2), PLANS_WAITING_MAX)
        self._execs = Shares(
            "commands running in instances",
            bounds.execs_max,
            bounds.execs_per_organisation,
            hint="Try again when some have ended, or use `tera ssh`",
            retry_seconds=5,
        )
        self.litestar = Litestar(
            [self._handler(path, found) for path, found in self._by_path(routes).items()],
            exception_handlers={HTTPException: self._foreign, Exception: self._unforeseen},
            openapi_config=None,
            logging_config=None,
            request_max_body_size=None,
            lifespan=[self._lifespan],
            debug=False,
        )
        self.asgi: ASGIApp = Gate(
            around(self.litestar),
            services.metrics,
            reality=services.reality,
            seconds=services.seconds,
            log=services.log,
            access=services.access,
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
        """One handler per path, so that Litestar knows all methods of a path."""
        by_method: dict[str, Route] = {route.method: route for route in routes}
        if "GET" in by_method and not by_method["GET"].stream:
            by_method["HEAD"] = by_method["GET"]

        async def serve(request: Request[Any, Any, Any]) -> _Answering:
            route = by_method[request.scope["method"]]  # Litestar rejects all others
            is_head = request.scope["method"] == "HEAD"
            try:
                run = self._stream if route.stream else self._in_pieces if route.in_pieces else self._answer
                if is_head and route.in_pieces:
                    run = self._head
                made = await run(route, request)
            except Exception as error:
                made = _Sent(self._failed(error, request.scope))
            return cast(_Answering, _WithoutBody(made) if is_head else made)

        return HTTPRouteHandler(
            path.replace("}", ":str}"),
            http_method=[HttpMethod(method) for method in by_method],
            status_code=200,  # only for Litestar's checks: every response sets its own
        )(serve)

    async def _answer(self, route: Route, request: Request[Any, Any, Any]) -> ASGIApp:
        raw, services = _raw(request), self.services
        at_once = services.reads_inline or route.scope == Scope.PUBLIC
        if route.work == RouteWork.READ and route.body is None and at_once:
            return _Sent(await self._read(partial(reply_to, route, services, raw)))
        call, query = await self._read(partial(admitted_first, route, services, raw))
        if route.body is not None:
            call = call.with_body(await self._body(route, request, call.actor))
        if route.work != RouteWork.READ:
            run = done_apart if route.work in (RouteWork.LOOKUP, RouteWork.COMPUTE) else done
            return _Sent(await self._work(route.work, call.actor, partial(run, route, call, query)))
        act = partial(done_reading, route, call, query)
        return _Sent(await (self._read(act) if at_once else self._work(route.work, call.actor, act)))

    async def _body(self, route: Route, request: Request[Any, Any, Any], actor: Actor) -> bytes:
        """Read the body of an authorised request. Each organisation gets a few at a time: bodies are held in memory."""
        limit, tenant = self.services.bounds.body_bytes_max, tenant_of(actor)
        await self._bodies.enter(tenant)
        try:
            content = await read_body(request.receive, limit, UNREAD_BYTES_MAX)
        finally:
            self._bodies.leave(tenant)
        if content is None:
            raise BodyTooLarge(f"The request body is larger than {limit:,} bytes", hint=_sizes(route, limit))
        return content

    def _failed(self, error: Exception, scope: Any) -> Reply:
        return failed(error, asked_of(scope), self.services.log)

    async def _stream(self, route: Route, request: Request[Any, Any, Any]) -> ASGIApp:
        services, raw = self.services, _raw(request)
        call, query = await self._read(partial(admitted_first, route, services, raw))
        after = raw.last_event_id or getattr(query, "after", "")
        follower = Follower(services.database, services.clock, call.project.id, after)
        self.streams.shares.enter(call.actor)
        turn = partial(self._read, follower.turn)
        still_good = partial(self._read, partial(admitted_first, route, services, raw))
        content = self.streams.follow(call.actor, turn, still_good)
        return cast(ASGIApp, Stream(content, media_type=route.media_type))  # Litestar accepts both

    async def _head(self, route: Route, request: Request[Any, Any, Any]) -> ASGIApp:
        """Check the permission for a streamed response without producing it."""
        await self._read(partial(admitted_first, route, self.services, _raw(request)))
        return _Sent(Reply(route.status, b"", route.media_type, {}))

    async def _in_pieces(self, route: Route, request: Request[Any, Any, Any]) -> ASGIApp:
        raw = _raw(request)
        call, query = await self._read(partial(admitted_first, route, self.services, raw))
        pieces = Pieces(route.handler(call, query=query, **raw.path))
        making = asyncio.ensure_future(self._work(route.work, call.actor, pieces.make))
        making.add_done_callback(pieces.ended)
        return SentInPieces(await pieces.next(), pieces, route.media_type)

    async def _read(self, act: Callable[[], T]) -> T:
        if self.services.reads_inline:
            return act()
        return await asyncio.get_running_loop().run_in_executor(self._threads, act)

    async def _work(self, work: RouteWork, actor: Actor, act: Callable[[], T]) -> T:
        """Run work in a thread, within the share of the actor's organisation."""
        loop = asyncio.get_running_loop()
        if work == RouteWork.LONG:
            self._execs.enter(actor)
            try:
                return await loop.run_in_executor(self._long, act)
            finally:
                self._execs.leave(actor)
        turns, threads = (
            (self._plans, self._planners) if work == RouteWork.COMPUTE else (self._turns, self._threads)
        )
        tenant = tenant_of(actor)
        await turns.enter(tenant)
        try:
            return await loop.run_in_executor(threads, act)
        finally:
            turns.leave(tenant)

    def _foreign(self, request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
        """Handle Litestar's errors: unknown path, unknown method, unreadable request."""
        if error.status_code == 405:
            allowed = (error.headers or {}).get("allow", "")
            refused = MethodNotAllowed(
                f"This path does not accept {request.method}", hint=f"It accepts {allowed}"
            )
            reply = self._failed(refused, request.scope)
            return _response(Reply(reply.status, reply.body, reply.media_type, {"Allow": allowed}))
        return _response(self._failed(_ours(error), request.scope))

    def _unforeseen(self, request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        return _response(self._failed(error, request.scope))

    @asynccontextmanager
    async def _lifespan(self, _: Litestar) -> AsyncIterator[None]:
        yield
        self.close()

    def end_streams(self) -> None:
        """End everything that lasts until the client leaves. Called in the server's main thread, before the rest."""
        self.streams.stop()
        for end in self.streams_beside:
            end()

    def close(self) -> None:
        """Stop the threads. Wait for those that write, not for those that wait for an engine."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._long.shutdown(wait=False, cancel_futures=True)
        self._planners.shutdown(wait=False, cancel_futures=True)
        for close in self.closes_beside:
            close()


def _raw(request: Request[Any, Any, Any]) -> Raw:
    scope = request.scope
    headers = {name: value for name, value in scope["headers"] if name in _HEADERS}
    key = headers.get(b"idempotency-key")
    return Raw(
        asked=asked_of(scope),
        path=scope["path_params"],
        query=scope["query_string"],
        authorization=headers.get(b"authorization", b"").decode("latin-1"),
        content_type=headers.get(b"content-type", b"").decode("latin-1"),
        idempotency_key=None if key is None else key.decode("latin-1"),
        last_event_id=headers.get(b"last-event-id", b"").decode("latin-1"),
    )


class _Sent:
    """Send a reply. Litestar's response classes do more than needed here and take about 10 % longer."""

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
    """The headers of a response, as they would be with its body."""

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
            f"`user_data` can have {USER_DATA_BYTES_MAX:,} bytes, the whole request {limit:,}."
            " Let a short script download the rest"
        )
    return f"Send at most {limit:,} bytes"


def _ours(error: HTTPException) -> Exception:
    if error.status_code == 404:
        return NotFound("Unknown path", hint="`/v1/openapi.json` lists all paths")
    if error.status_code < 500:
        return MalformedRequest("The request cannot be read", hint="Send plain HTTP/1.1")
    return error


async def read_body(receive: Receive, bytes_max: int, unread_max: int) -> bytes | None:
    """The body, or None if it is larger than `bytes_max`. Then up to `unread_max` more is read and dropped."""
    parts: list[bytes] = []
    size = 0
    while size <= unread_max:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise MalformedRequest("The request was interrupted", hint="Send it again")
        part: bytes = message.get("body", b"")  # type: ignore[assignment]  # of an `http.request`
        size += len(part)
        if size <= bytes_max:
            parts.append(part)
        else:
            parts.clear()
        if not message.get("more_body", False):
            break
    return b"".join(parts) if size <= bytes_max else None
