"""The API's problems back into the error tree: same code, same sentence, same hint, same exit code."""

from collections.abc import Iterator
from typing import Final

import msgspec

from teraflock.base.errors import (
    BadInput,
    Conflict,
    Forbidden,
    NotAuthenticated,
    NotFound,
    TeraflockError,
    TooMany,
    Unavailable,
)
from teraflock.wire.problem import Problem

_BY_STATUS: Final[dict[int, type[TeraflockError]]] = {
    401: NotAuthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: Conflict,
    429: TooMany,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


class NoAnswer(Unavailable):
    """The server cannot be reached, or broke off."""

    code = "no_answer"


class ServerFault(TeraflockError):
    """The server answered with something it should not have."""

    code = "internal_error"


def error_of(status: int, content: bytes) -> TeraflockError:
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.MsgspecError:
        kind = _kind("", status)
        return kind(
            f"The server answered with status {status} and no reason",
            hint="Look whether `TERA_SERVER` is the address of a Teraflock server",
        )
    kind = _kind(problem.code, status)
    return kind(problem.detail, hint=problem.hint, context={"request_id": problem.request_id})


def _kind(code: str, status: int) -> type[TeraflockError]:
    """The class with this code; a code nobody here knows yet gets a class under the one its status stands for."""
    for known in _tree(TeraflockError):
        if known.code == code:
            return known
    parent = _BY_STATUS.get(status) or (BadInput if status < 500 else ServerFault)
    return type(parent.__name__, (parent,), {"code": code}) if code else parent


def _tree(root: type[TeraflockError]) -> Iterator[type[TeraflockError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)
