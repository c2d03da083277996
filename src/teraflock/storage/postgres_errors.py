"""Translates PostgreSQL errors to Teraflock errors. The only module that knows their classes."""

from collections.abc import Callable
from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout, TooManyRequests

from teraflock.base.errors import StorageFailed, TeraflockError, Unavailable
from teraflock.storage.database import ConstraintBroken, MissingTable, Misuse, Overtaken

COLLIDED: Final = (errors.SerializationFailure, errors.DeadlockDetected)
"""Two transactions conflicted. PostgreSQL rolled one of them back, and it must run again."""


def translated(error: Exception, where: str) -> Exception:
    """The error to raise for a PostgreSQL error. Other errors are returned unchanged."""
    if isinstance(error, Overtaken):
        return _busy(where, {})
    if not isinstance(error, psycopg.Error):
        return error
    for classes, make in _ERRORS:
        if isinstance(error, classes):
            return make(where, {"sqlstate": error.sqlstate, "message": str(error)})
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
        hint="Check that PostgreSQL is running and that address, user and password are correct",
        context=context,
    )


def _full(where: str, context: dict[str, object]) -> TeraflockError:
    return StorageFailed(
        f"The disk is full: nothing was written to `{where}`",
        hint="Free some space on the server, then try again",
        context=context,
    )


def _constraint(where: str, context: dict[str, object]) -> TeraflockError:
    return ConstraintBroken("A row violates a constraint of its table", context=context)


def _not_allowed(where: str, context: dict[str, object]) -> TeraflockError:
    return StorageFailed(
        f"The database user may not read or write `{where}`",
        hint="Make this user the owner of the database",
        context=context,
    )


def _failed(where: str, context: dict[str, object]) -> TeraflockError:
    return StorageFailed(
        f"`{where}` cannot be read or written", hint="Check the PostgreSQL log", context=context
    )


def _missing_table(where: str, context: dict[str, object]) -> Misuse:
    return MissingTable("a table does not exist")


def _write_in_read(where: str, context: dict[str, object]) -> Misuse:
    return Misuse("a read cannot change anything: use `write`")


def _misuse(where: str, context: dict[str, object]) -> Misuse:
    return Misuse("PostgreSQL rejected this statement")


# The first match counts, because psycopg's error classes are nested.
_ERRORS: Final[
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
