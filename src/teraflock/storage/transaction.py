"""The part that transactions of both engines share: they fail with the first failed statement, and end once."""

from collections.abc import Callable
from typing import TypeVar

from teraflock.storage.database import Misuse

T = TypeVar("T")


class Guarded:
    """Every statement passes through `_do`.

    After a failed statement, PostgreSQL refuses further ones and silently turns the commit into a rollback. SQLite
    would continue with half of the changes. This class makes both refuse, and `finish` raises the error.
    """

    def __init__(self, translated: Callable[[Exception], Exception], *, locking: bool = False) -> None:
        self.locking = locking
        """Whether this is a `write_with_locks`."""
        self.failure: Exception | None = None
        """The error that failed the transaction, as the engine raised it."""
        self._translated = translated
        self._over = False

    def finish(self) -> None:
        """Raise if the work swallowed an error."""
        if self.failure is not None:
            raise self._translated(self.failure) from self.failure

    def _check_locking(self) -> None:
        """Checked on both engines, although only PostgreSQL needs it: in any other transaction the snapshot is older
        than the lock, so the rows read under the lock may be out of date."""
        if not self.locking:
            raise Misuse("rows can be locked only in `write_with_locks`")

    def _do(self, act: Callable[[], T]) -> T:
        if self._over:
            raise Misuse("this transaction has ended")
        if self.failure is not None:
            raise Misuse("an earlier statement of this transaction failed") from self.failure
        try:
            return act()
        except Exception as error:
            self.failure = error
            raised = self._translated(error)
            if raised is error:  # not from the engine, but from the code that makes the rows of `run_many`
                raise
            raise raised from error
