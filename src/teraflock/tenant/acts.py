"""What the acts on every noun here need: a database, the time, new ids, and the audit log beside what they change."""

from collections.abc import Callable
from os import urandom

from teraflock.base.clock import Clock
from teraflock.storage.database import Database
from teraflock.tenant.audit.service import Audit


class Acts:
    def __init__(
        self, database: Database, clock: Clock, random_bytes: Callable[[int], bytes] = urandom
    ) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._audit = Audit(clock, random_bytes)
