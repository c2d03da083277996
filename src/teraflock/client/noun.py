"""The base class of a client's objects: requests about one noun over one transport."""

from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

from teraflock.client.transport import Method, Transport, path_of

Answer = TypeVar("Answer")

PAGE: Final = 200


class Noun:
    in_project: ClassVar[bool] = True
    """Whether requests name the project of the client."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, answer: type[Answer], /, *path: str, **query: object) -> Answer:
        return self._transport.get(path_of(*path), answer, **self._query(query))

    def _act(
        self, method: Method, kind: type[Answer], *path: str, body: object = None, **query: object
    ) -> Answer:
        """Send an idempotent request, such as setting a state."""
        return self._transport.act(method, path_of(*path), kind, body, **self._query(query))

    def _create(
        self, kind: type[Answer], *path: str, body: object, idempotency_key: str = "", **query: object
    ) -> Answer:
        """Create something once, however often the request is retried."""
        return self._transport.create(
            path_of(*path), kind, body, idempotency_key=idempotency_key, query=self._query(query)
        )

    def _send(self, method: Method, *path: str, body: object = None, **query: object) -> None:
        """As `_act`, for responses without a body."""
        self._transport.request(method, path_of(*path), body=body, query=self._query(query))

    def _query(self, query: dict[str, object]) -> dict[str, object]:
        return {"project": self._transport.project, **query} if self.in_project else query


def pages(fetch: Callable[[str], Any]) -> tuple[Any, ...]:
    """All items of a list that comes in pages."""
    found: list[Any] = []
    after: str | None = ""
    while after is not None:
        page = fetch(after)
        found += page.items
        after = page.next
    return tuple(found)
