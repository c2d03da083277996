"""What a route is: a plain function with a path, a declared permission, and types for all that goes in and out.

What holds:
- every route says who may use it; one that does not cannot be declared;
- all that is known of a route for the server, the OpenAPI document and the tests follows from its declaration: path and
  words from the function's head, query, body and answer from its annotations.

    @routes.get("/v1/instances/{instance}", may=Permission.INSTANCE_READ, scope=Scope.PROJECT)
    def show_instance(call: Call, instance: str) -> InstanceAnswer:
        '''One instance, by id or name.'''
"""

import re
from collections.abc import Callable, Generator
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from teraflock.tenant.rules import Permission

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Handler = TypeVar("Handler", bound=Callable[..., Any])

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
STORAGE: Final = ("storage_failed", "constraint_broken", "unavailable")
"""What any use of the database can answer."""
ENGINE: Final = ("engine_down", "engine_busy", "engine_refused", "engine_missing", "no_room")
"""What a call of an engine can answer."""


class Scope(StrEnum):
    """Where the permission must be held."""

    PUBLIC = "public"
    """By nobody: no key is asked for."""
    KEY = "key"
    """Any key that is good; the service shows each its own."""
    ANYWHERE = "anywhere"
    """In one project at least; the service shows only those."""
    ORGANISATION = "organisation"
    PROJECT = "project"
    """In the project the request is about: the path's, the query's, else the key's own."""
    HOUSE = "house"
    """By an operator."""


class Work(StrEnum):
    """What a route costs, and so where it runs."""

    READ = "read"
    """Reads the database: on SQLite faster than handing it to a thread."""
    WRITE = "write"
    """Waits for a commit, so in a thread."""
    LOOKUP = "lookup"
    """Reads what lies elsewhere than in the server's database: in a thread."""
    COMPUTE = "compute"
    """Takes a processor for a while: in a process of its own, of which there are few."""
    LONG = "long"
    """Waits for an engine: in a thread of its own, of which there are few."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    method: Method
    path: str
    tag: str
    handler: Callable[..., Any]
    may: Permission | None
    scope: Scope
    status: int
    work: Work
    creates: bool
    """Takes an `Idempotency-Key`."""
    locks: bool
    """It creates with `write_with_locks`: its answer is kept in the same kind of transaction."""
    secret: bool
    """Its answer holds a secret, so it is sealed where it is kept for a retry."""
    stream: bool
    in_pieces: bool
    """Its handler makes the answer piece by piece, and it is sent meanwhile."""
    media_type: str
    query: type[msgspec.Struct] | None
    body: type[msgspec.Struct] | None
    answer: Any
    """A struct, `bytes`, or None for no content."""
    errors: tuple[str, ...]
    """Error codes it can send, besides those that follow from the rest of the declaration."""

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
            codes.append("ambiguous_name")  # an operator may name a project that several organisations have
        if self.body:
            codes += ["bad_input", "body_too_large", "media_type_not_supported"]
        if self.creates:
            codes += ["conflict", "idempotency_key_reused"]
        if self.method in ("PUT", "PATCH", "DELETE") or self.work == Work.LONG:
            codes += ["conflict", "refused"]
        return tuple(dict.fromkeys((*codes, *self.errors)))

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(_PARAMETER.findall(self.path))


class Routes:
    """The routes of one noun, in the order in which they are declared."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.all: list[Route] = []

    def get(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("GET", path, work=more.pop("work", Work.READ), **more)

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
        scope: Scope,
        may: Permission | None = None,
        status: int = 200,
        work: Work = Work.WRITE,
        creates: bool = False,
        locks: bool = False,
        secret: bool = False,
        stream: bool = False,
        media_type: str = "application/json",
        errors: tuple[str, ...] = (),
    ) -> Callable[[Handler], Handler]:
        if (may is None) != (scope in (Scope.PUBLIC, Scope.KEY)):
            raise TypeError(f"{method} {path}: a permission belongs to every scope but `public` and `key`")

        def declare(handler: Handler) -> Handler:
            hints = get_type_hints(handler, include_extras=True)
            returned = hints["return"]
            if get_origin(returned) is Annotated:  # JSON that is encoded already, and of what
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
        raise TypeError(f"{route.method} {route.path} has no sentence about it")
