"""Pages and actions: plain functions with a path and a declared permission, as routes of the API.

Invariants:
- every page declares who may open it; a page without this cannot be declared;
- a page reads and changes things only through the typed client, so the API's own checks apply as well;
- a `GET` changes nothing; every action is a `POST`, which the server accepts only with the session's CSRF token.

    @pages.get("/projects/{project}/instances", scope=Scope.PROJECT, may=Permission.INSTANCE_READ)
    def list_instances(call: PageCall) -> Answer:
        '''Instances'''
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission

PREFIX: Final = "/console"
"""All pages are below this path, so that they never collide with the API."""
Handler = TypeVar("Handler", bound=Callable[..., Any])
_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class ConsolePage(msgspec.Struct, frozen=True, kw_only=True):
    method: Literal["GET", "POST"]
    path: str
    """Below `PREFIX`."""
    handler: Callable[..., Any]
    scope: Scope
    may: Permission | None
    stream: bool
    """The handler returns a response that is sent as it arises."""
    long: bool
    """The handler may wait for an engine, so it runs in one of a few separate threads."""
    on_error: Callable[..., Any] | None
    """For an action: the page that shows its error."""

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(_PARAMETER.findall(self.path))

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of its address between slashes."""
        return tuple((PREFIX + self.path).split("/"))

    def found_in(self, segments: Sequence[str]) -> dict[str, str] | None:
        """The parameters in the segments of an address that has as many. None: it is the address of another page."""
        found: dict[str, str] = {}
        for own, given in zip(self.segments, segments, strict=True):
            if own.startswith("{") and own.endswith("}"):
                found[own[1:-1]] = given
            elif own != given:
                return None
        return None if "" in found.values() else found


class Pages:
    """The pages of one noun, in the order of declaration."""

    def __init__(self) -> None:
        self.all: list[ConsolePage] = []

    def get(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("GET", path, **more)

    def post(self, path: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._declared("POST", path, **more)

    def _declared(
        self,
        method: Literal["GET", "POST"],
        path: str,
        *,
        scope: Scope,
        may: Permission | None = None,
        stream: bool = False,
        long: bool = False,
        on_error: Callable[..., Any] | None = None,
    ) -> Callable[[Handler], Handler]:
        if (may is None) != (scope in (Scope.PUBLIC, Scope.KEY)):
            raise TypeError(f"{method} {path}: every scope except `public` and `key` needs a permission")
        if (scope == Scope.PROJECT) != ("{project}" in path):
            raise TypeError(
                f"{method} {path}: a page of a project, and no other, has `{{project}}` in its path"
            )

        def declare(handler: Handler) -> Handler:
            page = ConsolePage(
                method=method, path=path, handler=handler, scope=scope, may=may, stream=stream, long=long,
                on_error=on_error
            )  # fmt: skip
            self.all.append(page)
            return handler

        return declare
