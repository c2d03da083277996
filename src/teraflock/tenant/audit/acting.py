"""Base class of services: a database, the clock, new ids, the audit log, and the loop to wake."""

import os
from collections.abc import Callable
from typing import TypeVar

from teraflock.base.clock import Clock
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.service import Audit

T = TypeVar("T")


class AuditedService:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._wake = wake
        self._audit = Audit(clock, random_bytes)

    def _write(self, work: Callable[[Transaction], T]) -> T:
        """Write, and wake the loop that loads the change into hosts."""
        done = self._database.write(work)
        self._wake()
        return done

    def _write_with_locks(self, work: Callable[[Transaction], T]) -> T:
        """Like `_write`, but isolated only by the rows that the work locks."""
        done = self._database.write_with_locks(work)
        self._wake()
        return done
