"""Converts the engine's errors to Teraflock's: the only module that knows the error messages of LXD and Incus.

    EngineDown            the socket does not answer, or not in time
    EngineBusy            another operation is in progress
    EngineRefused         the engine rejected the request
    ├── EngineFailed      the engine failed, for a reason that is not known here
    ├── NoRoom            the pool or the host's disk is full
    ├── EngineMissing     the object does not exist
    └── EngineTaken       the name is already in use

The engine's own message goes into the private context: it may name another tenant's objects.
"""

from collections.abc import Callable
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.instance.engine_errors import EngineBusy, EngineDown, EngineFailed, EngineRefused, NoRoom
from teraflock.instance.engine_errors import EngineMissing as EngineMissing


class EngineTaken(EngineRefused):
    """The name is already in use in the engine."""


def down(reason: str, *, hung_up: bool = False) -> EngineDown:
    return EngineDown(
        "The container engine does not answer",
        hint="Find the cause with `tera doctor`; start the engine with `make up`",
        context={"reason": reason, "hung_up": hung_up},
    )


def error_for(what: str, code: int, message: str) -> TeraflockError:
    """Return the error to raise when the engine answered `what` (method and path) with `code` and `message`."""
    context: dict[str, object] = {"asked": what, "code": code, "engine": message}
    by_code = _BY_CODE.get(code)
    if by_code:
        return by_code(context)
    folded = message.casefold()
    for words, make in _BY_WORDS:
        if any(word in folded for word in words):
            return make(context)
    return _failed(context)


def _missing(context: dict[str, object]) -> TeraflockError:
    return EngineMissing("Not found in the container engine", context=context)


def _taken(context: dict[str, object]) -> TeraflockError:
    return EngineTaken("The name already exists in the container engine", context=context)


def _busy(context: dict[str, object]) -> TeraflockError:
    return EngineBusy(
        "The container engine is still busy with another operation",
        hint="Try again in a moment",
        context=context,
    )


def _full(context: dict[str, object]) -> TeraflockError:
    return NoRoom(
        "The host's storage pool is full",
        hint="Delete instances, snapshots or images that are no longer needed, or enlarge the pool",
        context=context,
    )


def _restarting(context: dict[str, object]) -> TeraflockError:
    return down(str(context["engine"]))


def _failed(context: dict[str, object]) -> TeraflockError:
    return EngineFailed(
        "The container engine failed to do it",
        hint="See the server's log for the engine's message",
        context=context,
    )


_BY_WORDS: Final[tuple[tuple[tuple[str, ...], Callable[[dict[str, object]], TeraflockError]], ...]] = (
    (("no space left", "disk quota exceeded", "not enough space"), _full),
    (("is busy running", "already busy"), _busy),
    (
        (
            "already exists",
            "already in use",
            "already defined",
            "is already created",
            "not in pending state",
            "unique constraint",
        ),
        _taken,
    ),
    (
        (
            "instance not found",
            "image not found",
            "snapshot not found",
            "network not found",
            "no such object",
            "does not exist",
        ),
        _missing,
    ),
    (("is shutting down", "database is locked", "no available dqlite leader"), _restarting),
)
"""Errors by the engine's message, where it gives no code: failed operations have only a text. The first match
counts."""

_BY_CODE: Final = {404: _missing, 409: _taken, 423: _busy, 503: _restarting, 507: _full}
