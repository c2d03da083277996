"""The calls that a cloud's module describes, and their replies. Pure."""

from collections.abc import Generator, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec

T = TypeVar("T")
GONE: Final = frozenset({404})


class CloudCall(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Any = None
    headers: Mapping[str, str] = {}
    """Headers that the provider defines, such as the name of an action."""
    act: Literal["read", "launch", "change"] = "read"
    accepts: frozenset[int] = frozenset()
    """Statuses from 400 on that are an answer and not an error, such as 404 for a delete."""
    region: str = ""
    """The region to ask, where each has an address of its own."""
    service: str = ""
    """Another service of the provider, by its name in `CloudApi.services`."""
    form: bool = False
    """The body is sent as a form instead of JSON."""
    signed: bool = True
    """False: a public service, which must not receive the credentials."""


class CloudReply(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    body: Any = None
    """Decoded JSON. None if there was none."""
    text: str = ""
    """The start of a reply that is not JSON."""
    retry_after: float | None = None
    next_page: str = ""
    """The token of the next page, where it is in a header."""


Asking = Generator[CloudCall, CloudReply, T]


def delete_call(path: str, **more: Any) -> CloudCall:
    """A delete that also succeeds if the thing does not exist."""
    return CloudCall(method="DELETE", path=path, act="change", accepts=GONE, **more)


def every_page(call: CloudCall, items: str, following: str, *, after: str = "") -> Asking[list[Any]]:
    """All pages of a listing: `items` names the list in a reply, `following` the token of the next page, and `after`
    the parameter that takes it. A listing that does not end is an error of who makes the calls, never a short one."""
    found: list[Any] = []
    while True:
        reply = yield call
        found += reply.body[items]
        if not (token := reply.body.get(following)):
            return found
        call = msgspec.structs.replace(call, query={**call.query, after or following: str(token)})
