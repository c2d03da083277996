"""One Litestar application for all servers of a test process.

Litestar takes 120 ms to register our routes, and hundreds of tests have a server of their own. `install` makes Litestar
register them once. With each request comes the server that it is for, and its handlers serve it.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from litestar import HttpMethod, Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from teraflock.api import asgi

Name: TypeAlias = tuple[str, tuple[HttpMethod, ...]]
"""A path and its methods."""
SERVER: Final = "tests.server"


class OneOfMany:
    """Stands in for the Litestar application of one server."""

    def __init__(
        self, handlers: Sequence[HTTPRouteHandler], *, exception_handlers: Mapping[type, Any], **options: Any
    ) -> None:
        del options["lifespan"]  # no test starts it: a test closes its server itself
        self.handlers = {_name(handler): handler.fn for handler in handlers}
        self.exception_handlers = exception_handlers
        self._litestar = _registered(tuple(self.handlers), tuple(options.items()))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope[SERVER] = self
        await self._litestar(scope, receive, send)


def install() -> None:
    asgi.Litestar = OneOfMany  # type: ignore[attr-defined,assignment]


def _name(handler: HTTPRouteHandler) -> Name:
    (path,) = handler.paths
    return path, tuple(sorted(HttpMethod(method) for method in handler.http_methods))


@cache
def _registered(names: Sequence[Name], options: Sequence[tuple[str, Any]]) -> Litestar:
    return Litestar(
        [_handler(name) for name in names],
        exception_handlers={
            HTTPException: lambda request, error: _failed(HTTPException, request, error),
            Exception: lambda request, error: _failed(Exception, request, error),
        },
        **dict(options),
    )


def _handler(name: Name) -> HTTPRouteHandler:
    async def serve(request: Request[Any, Any, Any]) -> ASGIApp:
        app: ASGIApp = await _server(request).handlers[name](request)
        return app

    path, methods = name
    return HTTPRouteHandler(path, http_method=methods, status_code=200)(serve)


def _failed(kind: type, request: Request[Any, Any, Any], error: Any) -> Response[Any]:
    response: Response[Any] = _server(request).exception_handlers[kind](request, error)
    return response


def _server(request: Request[Any, Any, Any]) -> OneOfMany:
    scope: Any = request.scope
    server: OneOfMany = scope[SERVER]
    return server
