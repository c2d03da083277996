"""What the API stands on: the services of the domain, and how the server is set up.

`Services.within` gives the same services inside one transaction: all that is done there is kept or undone with it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from teraflock.api.limits import RateLimit
from teraflock.api.metrics import Metrics
from teraflock.base.clock import Clock
from teraflock.fleet.service import FleetService
from teraflock.image.service import ImageService
from teraflock.instance.service import InstanceService
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.service import TenantService

T = TypeVar("T")


class Nouns(msgspec.Struct, frozen=True, kw_only=True):
    """The services, all on one database."""

    tenants: TenantService
    instances: InstanceService
    fleet: FleetService
    images: ImageService


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    body_bytes_max: int = 1_000_000
    streams_max: int = 200
    threads: int = 16
    execs_max: int = 32
    metrics_open: bool = False


class Services(msgspec.Struct, frozen=True, kw_only=True):
    database: Database
    clock: Clock
    nouns_on: Callable[[Database], Nouns]
    nouns: Nouns
    simulated: bool
    reads_inline: bool
    """Whether reading the database is quicker than a change of threads: so on SQLite."""
    rate: RateLimit
    metrics: Metrics
    bounds: Bounds = Bounds()
    wake: Callable[[], None] = lambda: None
    """Tell the loops that there is something to do."""
    seconds: Callable[[], float]
    """A clock that only goes forward, for durations."""

    def check(self) -> None:
        """Raise unless the database can be read."""
        with self.database.read():
            return

    def within(self, tx: Transaction) -> Nouns:
        return self.nouns_on(Joined(tx))


class Joined:
    """A transaction in the dress of a database: what is written to it belongs to that transaction."""

    where = "the transaction"

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        yield self._tx

    def write(self, work: Callable[[Transaction], T], /) -> T:
        return work(self._tx)

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        return work(self._tx)

    def close(self) -> None:
        raise RuntimeError("a transaction is ended by whoever began it")
