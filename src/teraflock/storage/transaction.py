"""What the transactions of both engines share: the first failure spoils them, and they end once."""

from collections.abc import Callable
from typing import TypeVar

from teraflock.storage.database import Misuse

T = TypeVar("T")


class Guarded:
    """Every statement passes through `_do`.

    PostgreSQL refuses what follows a failed statement and turns the commit into a rollback in silence;
    SQLite would carry on with half the work. Here both refuse, and `finish` says so aloud.
    """

    def __init__(self, translated: Callable[[Exception], Exception], *, locking: bool = False) -> None:
        self.locking = locking
        """Whether it belongs to a `write_with_locks`."""
        self.failure: Exception | None = None
        """What spoiled the transaction, as the engine raised it."""
        self._translated = translated
        self._over = False

    def finish(self) -> None:
        """Raise if the work swallowed a failure."""
        if self.failure is not None:
            raise self._translated(self.failure) from self.failure

    def _check_locking(self) -> None:
        """On both engines, although only PostgreSQL needs it: in any other transaction a lock comes after the
        snapshot, and what is read under it may be out of date."""
        if not self.locking:
            raise Misuse("rows are locked in `write_with_locks` only")

    def _do(self, act: Callable[[], T]) -> T:
        if self._over:
            raise Misuse("this transaction is over")
        if self.failure is not None:
            raise Misuse("an earlier statement of this transaction failed") from self.failure
        try:
            return act()
        except Exception as error:
            self.failure = error
            told = self._translated(error)
            if told is error:  # not from the engine: raised by whoever makes the rows of `run_many`
                raise
            raise told from error
