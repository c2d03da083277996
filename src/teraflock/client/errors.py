"""API problems as exceptions of the error tree, with the same code, sentence, hint and exit code."""

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
    error_classes,
)
from teraflock.wire.problem import Problem

_BY_STATUS: Final[dict[int, type[TeraflockError]]] = {
    401: NotAuthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: BadInput,
    429: TooMany,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


class NoAnswer(Unavailable):
    """The server cannot be reached, or the connection broke."""

    code = "no_answer"
    remedy = "Check `TERA_SERVER` and the network. `tera doctor` checks a server on this machine."


class ServerFault(TeraflockError):
    """The server answered with something that is not part of its API."""

    code = "internal_error"


def error_of(status: int, content: bytes) -> TeraflockError:
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.MsgspecError:
        kind = _kind("", status)
        return kind(
            f"The server answered with status {status} without a reason",
            hint="Check that `TERA_SERVER` is the address of a Teraflock server",
        )
    kind = _kind(problem.code, status)
    return kind(problem.detail, hint=problem.hint, context={"request_id": problem.request_id})


def class_of_status(status: int) -> type[TeraflockError]:
    return _BY_STATUS.get(status) or (BadInput if status < 500 else ServerFault)


def _kind(code: str, status: int) -> type[TeraflockError]:
    """The class with this code. An unknown code gets a new class under the class of its status."""
    for known in error_classes():
        if known.code == code:
            return known
    parent = class_of_status(status)
    return type(parent.__name__, (parent,), {"code": code}) if code else parent
