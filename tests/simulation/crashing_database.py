"""A database that ends its process at the n-th write from now, just before the commit or just after."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from teraflock.drivers.simulated.faults import Killed
from teraflock.storage.database import Database, Transaction

T = TypeVar("T")


class CrashingDatabase:
    """`look` reads at the end of each write. The result goes to `saw` after the commit."""

    def __init__(
        self, inner: Database, look: Callable[[Transaction], Any], saw: Callable[[Any], None]
    ) -> None:
        self._inner = inner
        self._look = look
        self._saw = saw
        self.where = inner.where
        self.dies_in: int | None = None
        self.dies_after_commit = False
        self.kills = 0
        self.writes = 0

    def read(self) -> AbstractContextManager[Transaction]:
        return self._inner.read()

    def write(self, work: Callable[[Transaction], T], /) -> T:
        return self._until_killed(self._inner.write, work)

    def write_with_locks(self, work: Callable[[Transaction], T], /) -> T:
        return self._until_killed(self._inner.write_with_locks, work)

    write_one = write_with_locks  # `look` makes more statements

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        return self._until_killed(self._inner.write_alone, work)

    def close(self) -> None:
        self._inner.close()

    def live(self) -> None:
        self.dies_in = None

    def _until_killed(self, write: Callable[..., Any], work: Callable[[Transaction], T]) -> T:
        self.writes += 1
        dies = self._dies_now()

        def watched(tx: Transaction) -> tuple[T, Any]:
            result = work(tx)
            if dies and not self.dies_after_commit:
                raise Killed
            return result, self._look(tx)

        result, seen = write(watched)
        self._saw(seen)
        if dies:
            raise Killed
        return result  # type: ignore[no-any-return]

    def _dies_now(self) -> bool:
        if self.dies_in is None:
            return False
        self.dies_in -= 1
        if self.dies_in > 0:
            return False
        self.dies_in = None
        self.kills += 1
        return True
