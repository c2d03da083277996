"""Translates SQLite errors to Teraflock errors. The only module that knows their codes."""

import sqlite3
from typing import Final

from teraflock.base.errors import StorageFailed, Unavailable
from teraflock.storage.database import ConstraintBroken, MissingTable, Misuse

CANNOT_OPEN: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
FULL: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_SHMSIZE,  # no space for the index of the log, which SQLite reports as an I/O error
    }
)
BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
BROKEN: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
MISUSE: Final = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_TOOBIG,
    }
)

HOME_HINT: Final = "Set `TERA_HOME` to a writable folder"


def translated(error: Exception, where: str, *, reading: bool) -> Exception:
    """The error to raise for a SQLite error. Other errors are returned unchanged."""
    if isinstance(error, OverflowError):
        return Misuse("a number does not fit into 64 bits")
    if not isinstance(error, sqlite3.Error):
        return error
    code = code_of(error)
    if code is None or code & 0xFF in MISUSE:
        return _misuse(error)
    if reading and code & 0xFF == sqlite3.SQLITE_READONLY:
        return Misuse("a read cannot change anything: use `write`")
    return _failure(code, where, context={"sqlite": error.sqlite_errorname, "message": str(error)})


def code_of(error: sqlite3.Error) -> int | None:
    """SQLite's extended error code, or None if Python's module raised the error."""
    return getattr(error, "sqlite_errorcode", None)


def _misuse(error: sqlite3.Error) -> Misuse:
    if str(error).startswith("no such table"):
        return MissingTable("a table does not exist")
    return Misuse("SQLite rejected this statement")


def _failure(code: int, where: str, context: dict[str, object]) -> StorageFailed | Unavailable:
    primary = code & 0xFF
    if code in FULL:
        return StorageFailed(
            f"The disk is full: nothing was written to `{where}`",
            hint="Free some space, then try again",
            context=context,
        )
    if primary in BUSY:
        return Unavailable(
            f"Another `tera` is writing to `{where}`", hint="Try again in a moment", context=context
        )
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return ConstraintBroken("A row violates a constraint of its table", context=context)
    if primary == sqlite3.SQLITE_READONLY:
        return StorageFailed(f"`{where}` cannot be written", hint=HOME_HINT, context=context)
    if primary in CANNOT_OPEN:
        return StorageFailed(
            f"`{where}` cannot be opened",
            hint=f"Check that its folder exists and belongs to you. {HOME_HINT}",
            context=context,
        )
    if primary in BROKEN:
        return StorageFailed(
            f"`{where}` is damaged or not a database",
            hint="Move it away; Teraflock then creates a new one",
            context=context,
        )
    return StorageFailed(
        f"`{where}` cannot be read or written",
        hint="Check that its disk works and has free space",
        context=context,
    )
