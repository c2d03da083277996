"""From PostgreSQL's errors to the house's: the one place that knows its classes."""

from collections.abc import Callable
from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout, TooManyRequests

from teraflock.base.errors import StorageFailed, TeraflockError, Unavailable
from teraflock.storage.database import ConstraintBroken, MissingTable, Misuse, Overtaken

COLLIDED: Final = (errors.SerializationFailure, errors.DeadlockDetected)
"""Two transactions stood in each other's way; PostgreSQL undid one of them, to be run again."""


def translated(error: Exception, where: str) -> Exception:
    """The error to raise for one of PostgreSQL's. Any other is given back as it is."""
    if isinstance(error, Overtaken):
        return _busy(where, {})
    if not isinstance(error, psycopg.Error):
        return error
    for classes, told in _TOLD:
        if isinstance(error, classes):
            return told(where, {"sqlstate": error.sqlstate, "message": str(error)})
    return _failed(where, {"sqlstate": error.sqlstate, "message": str(error)})


def _busy(where: str, context: dict[str, object]) -> TeraflockError:
    return Unavailable(
        f"`{where}` is too busy: the change was not made", hint="Try again in a moment", context=context
    )


def _no_connection(where: str, context: dict[str, object]) -> TeraflockError:
    return Unavailable(
        f"All connections to `{where}` are in use", hint="Try again in a moment", context=context
    )


def _away(where: str, context: dict[str, object]) -> TeraflockError:
    return Unavailable(
        f"`{where}` cannot be reached",
        hint="Look whether PostgreSQL runs, and whether address, user and password are right",
        context=context,
    )


def _full(where: str, context: dict[str, object]) -> TeraflockError:
    return StorageFailed(
        f"The disk is full: nothing was written to `{where}`",
        hint="Free some space on the server, then try again",
        context=context,
    )


def _constraint(where: str, context: dict[str, object]) -> TeraflockError:
    return ConstraintBroken("A row breaks a rule of its table", context=context)


def _not_allowed(where: str, context: dict[str, object]) -> TeraflockError:
    return StorageFailed(
        f"`{where}` does not let this user read or write",
        hint="Let the user of the address own the database",
        context=context,
    )


def _failed(where: str, context: dict[str, object]) -> TeraflockError:
    return StorageFailed(
        f"`{where}` cannot be read or written", hint="See the log of PostgreSQL", context=context
    )


def _missing_table(where: str, context: dict[str, object]) -> Misuse:
    return MissingTable("a table is not there")


def _write_in_read(where: str, context: dict[str, object]) -> Misuse:
    return Misuse("a read changes nothing: use `write`")


def _misuse(where: str, context: dict[str, object]) -> Misuse:
    return Misuse("PostgreSQL does not take this statement")


# The first line that fits counts: psycopg's classes lie within each other.
_TOLD: Final[
    tuple[tuple[tuple[type[psycopg.Error], ...], Callable[[str, dict[str, object]], Exception]], ...]
] = (
    ((errors.UndefinedTable,), _missing_table),
    ((errors.ReadOnlySqlTransaction,), _write_in_read),
    ((errors.IntegrityError,), _constraint),
    ((errors.DiskFull,), _full),
    ((errors.InsufficientPrivilege,), _not_allowed),
    ((*COLLIDED, errors.LockNotAvailable, errors.QueryCanceled), _busy),
    ((errors.TooManyConnections, PoolTimeout, TooManyRequests), _no_connection),
    ((errors.DataCorrupted, errors.IndexCorrupted, errors.InternalError, errors.IoError), _failed),
    ((errors.ProgrammingError, errors.DataError, errors.NotSupportedError, errors.InterfaceError), _misuse),
    ((errors.OperationalError,), _away),
)
