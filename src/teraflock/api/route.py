"""Routes: plain functions with a path, a declared permission, and types for requests and responses.

Invariants:
- every route declares who may use it, itself or by the defaults of its noun; a route without this cannot be declared;
- the server, the OpenAPI document and the tests use only the declaration: the path parameters come from the function's
  signature, the query, the body and the response from its annotations.

    routes = Routes("instances", scope=Scope.PROJECT, read=Permission.INSTANCE_READ, write=Permission.INSTANCE_WRITE)

    @routes.get("/v1/instances/{instance}")
    def show_instance(call: Call, instance: str) -> InstanceAnswer:
        '''Show one instance, by id or name.'''
"""

import re
from collections.abc import Callable, Generator
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from teraflock.tenant.admission import Scope as Scope  # part of a route's declaration
from teraflock.tenant.rules import Permission

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Handler = TypeVar("Handler", bound=Callable[..., Any])

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
STORAGE: Final = ("storage_failed", "constraint_broken", "unavailable")
"""Error codes of any access to the database."""
ENGINE: Final = ("engine_down", "engine_busy", "engine_refused", "engine_missing", "no_room")
"""Error codes of any call to an engine."""


class RouteWork(StrEnum):
    """What a route does, which decides where it runs."""

    READ = "read"
    """Reads the database. On SQLite in the event loop, because a thread would be slower."""
    WRITE = "write"
    """Writes to the database, in a thread, because it waits for the commit."""
    LOOKUP = "lookup"
    """Reads data outside the server's database, in a thread."""
    COMPUTE = "compute"
    """Computes for a while, in one of a few separate processes."""
    LONG = "long"
    """Waits for an engine, in one of a few separate threads."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    method: Method
    path: str
    tag: str
    handler: Callable[..., Any]
    may: Permission | None
    scope: Scope
    status: int
    work: RouteWork
    creates: bool
    """Accepts an `Idempotency-Key`."""
    locks: bool
    """Creates with `write_with_locks`, so its response is stored in the same kind of transaction."""
    secret: bool
    """The response has a secret, so it is encrypted when it is stored for a retry."""
    stream: bool
    in_pieces: bool
    """The handler produces the response piece by piece while it is sent."""
    media_type: str
    query: type[msgspec.Struct] | None
    body: type[msgspec.Struct] | None
    answer: Any
    """A struct, `bytes`, or None for no content."""
    errors: tuple[str, ...]
    """Error codes it can send, in addition to those that follow from the rest of the declaration."""

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def words(self) -> tuple[str, str]:
        """Summary and description."""
        summary, _, rest = (self.handler.__doc__ or "").strip().partition("\n")
        return summary.rstrip("."), " ".join(rest.split())

    @property
    def codes(self) -> tuple[str, ...]:
        """All error codes the route can send."""
        codes = ["malformed_request", "too_many", "internal_error", *STORAGE]
        if self.scope != Scope.PUBLIC:
            codes.append("not_authenticated")
        if self.may:
            codes.append("forbidden")
        if self.parameters or self.scope == Scope.PROJECT or self.query or self.body:
            codes.append("not_found")
        if self.scope == Scope.PROJECT:
            codes.append(
                "ambiguous_name"
            )  # an operator can name a project that exists in several organisations
        if self.body:
            codes += ["bad_input", "body_too_large", "media_type_not_supported"]
        if self.creates:
            codes += ["conflict", "idempotency_key_reused"]
        if self.method in ("PUT", "PATCH", "DELETE") or self.work == RouteWork.LONG:
            codes += ["conflict", "refused"]
        return tuple(dict.fromkeys((*codes, *self.errors)))

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(_PARAMETER.findall(self.path))


class Routes:
    """The routes of one noun, in the order of declaration."""

    def __init__(
        self,
        tag: str,
        *,
        scope: Scope | None = None,
        read: Permission | None = None,
        write: Permission | None = None,
    ) -> None:
        """`scope`, `read` (for GET) and `write` hold for routes that declare no other scope or permission."""
        self.tag = tag
        self.all: list[Route] = []
        self._scope = scope
        self._read = read
        self._write = write

    def get(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("GET", path, work=more.pop("work", RouteWork.READ), **more)

    def post(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("POST", path, **more)

    def put(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("PUT", path, **more)

    def patch(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("PATCH", path, **more)

    def delete(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("DELETE", path, **more)

    def _declared(
        self,
        method: Method,
        path: str,
        *,
        scope: Scope | None = None,
        may: Permission | None = None,
        status: int = 200,
        work: RouteWork = RouteWork.WRITE,
        creates: bool = False,
        locks: bool = False,
        secret: bool = False,
        stream: bool = False,
        media_type: str = "application/json",
        errors: tuple[str, ...] = (),
    ) -> Callable[[Handler], Handler]:
        if scope is None:
            scope, may = self._scope, may or (self._read if method == "GET" else self._write)
        if scope is None or (may is None) != (scope in (Scope.PUBLIC, Scope.KEY)):
            raise TypeError(f"{method} {path}: every scope except `public` and `key` needs a permission")

        def declare(handler: Handler) -> Handler:
            hints = get_type_hints(handler, include_extras=True)
            returned = hints["return"]
            if get_origin(returned) is Annotated:  # already encoded JSON, and its type
                returned = get_args(returned)[1]
            in_pieces = get_origin(returned) is Generator
            route = Route(
                method=method,
                path=path,
                tag=self.tag,
                handler=handler,
                may=may,
                scope=scope,
                status=status,
                work=work,
                creates=creates,
                locks=locks,
                secret=secret,
                stream=stream,
                in_pieces=in_pieces,
                media_type=media_type,
                query=hints.get("query"),
                body=hints.get("body"),
                answer=bytes if in_pieces else None if returned is type(None) else returned,
                errors=errors,
            )
            _check(route, set(hints) - {"call", "query", "body", "return"})
            self.all.append(route)
            return handler

        return declare


def _check(route: Route, words: set[str]) -> None:
    if words != set(route.parameters):
        raise TypeError(f"{route.method} {route.path} and `{route.name}` do not name the same parameters")
    if not route.handler.__doc__:
        raise TypeError(f"{route.method} {route.path} has no docstring")
