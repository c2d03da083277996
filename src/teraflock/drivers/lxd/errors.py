"""From the engine's words to the house's errors: the one place that knows how LXD and Incus complain.

    EngineDown            nobody answers on the socket, or not in time
    EngineBusy            the thing is in the middle of another operation
    EngineRefused         the engine does not accept what was asked, or failed at it
    ├── NoRoom            the pool or the host's disk is full
    ├── EngineMissing     the thing named is not there
    └── EngineTaken       a thing of that name is there already

The engine's own sentence goes into the private context: it may name another tenant's things.
"""

from collections.abc import Callable
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.instance.driver import EngineBusy, EngineDown, EngineRefused, NoRoom
from teraflock.instance.driver import EngineMissing as EngineMissing


class EngineTaken(EngineRefused):
    """The name is already in use in the engine."""


def down(reason: str, *, hung_up: bool = False) -> EngineDown:
    return EngineDown(
        "The container engine does not answer",
        hint="`tera doctor` says what is wrong with it; `make up` starts it again",
        context={"reason": reason, "hung_up": hung_up},
    )


def told(what: str, code: int, message: str) -> TeraflockError:
    """The error to raise when the engine answered `code` and `message` to `what` (method and path)."""
    context: dict[str, object] = {"asked": what, "code": code, "engine": message}
    by_code = _BY_CODE.get(code)
    if by_code:
        return by_code(context)
    folded = message.casefold()
    for words, make in _BY_WORDS:
        if any(word in folded for word in words):
            return make(context)
    return _refused(context)


def _missing(context: dict[str, object]) -> TeraflockError:
    return EngineMissing("The container engine does not have it", context=context)


def _taken(context: dict[str, object]) -> TeraflockError:
    return EngineTaken("The container engine already has one of that name", context=context)


def _busy(context: dict[str, object]) -> TeraflockError:
    return EngineBusy(
        "The container engine is still busy with it", hint="Try again in a moment", context=context
    )


def _full(context: dict[str, object]) -> TeraflockError:
    return NoRoom(
        "The host's storage pool is full",
        hint="Delete instances, snapshots or images that are no longer needed, or enlarge the pool",
        context=context,
    )


def _restarting(context: dict[str, object]) -> TeraflockError:
    return down(str(context["engine"]))


def _refused(context: dict[str, object]) -> TeraflockError:
    return EngineRefused(
        "The container engine could not do it",
        hint="The server's log has the engine's own words",
        context=context,
    )


_BY_WORDS: Final[tuple[tuple[tuple[str, ...], Callable[[dict[str, object]], TeraflockError]], ...]] = (
    (("no space left", "disk quota exceeded", "not enough space"), _full),
    (("is busy running", "already busy"), _busy),
    (("already exists", "already in use", "already defined", "unique constraint"), _taken),
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
"""What the engine says where no code tells: of failed operations it has only words. The first that fits counts."""

_BY_CODE: Final = {404: _missing, 409: _taken, 423: _busy, 503: _restarting, 507: _full}
