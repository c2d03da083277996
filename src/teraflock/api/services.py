"""The domain services that the API calls, and the configuration of the server.

`Services.within` returns the same services inside one transaction, which commits or rolls back all their work.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

import msgspec

from teraflock.api.limits import RequestRates
from teraflock.api.metrics import Metrics
from teraflock.api.refusals import RequestLog
from teraflock.base.clock import Clock
from teraflock.base.exchange import Rates
from teraflock.bill.service import BillService
from teraflock.catalog.model import Card
from teraflock.dataset.service import DatasetService
from teraflock.fleet.service import FleetService
from teraflock.fleet.slicing.service import SlicingService
from teraflock.image.service import ImageService
from teraflock.instance.account.service import AccountService
from teraflock.instance.join.service import JoinService
from teraflock.instance.operator import OperatorService
from teraflock.instance.service import InstanceService
from teraflock.instance.site.service import SiteService
from teraflock.instance.telemetry.service import TelemetryService
from teraflock.network.acl.service import AclService
from teraflock.network.address.service import AddressService
from teraflock.network.balancer.service import BalancerService
from teraflock.network.checking import NetworkChecks
from teraflock.network.peering.service import PeeringService
from teraflock.network.published_port.service import PublishedPortService
from teraflock.network.security_group.service import SecurityGroupService
from teraflock.network.service import NetworkService
from teraflock.network.subnet.service import SubnetService
from teraflock.offer.index.warm import WarmOffers
from teraflock.plan.task import PlannerTask
from teraflock.run.service import RunService
from teraflock.storage.database import Database, Misuse, Transaction
from teraflock.tenant.announcement.service import News
from teraflock.tenant.service import TenantService
from teraflock.tenant.session.service import SessionService

T = TypeVar("T")


class Nouns(msgspec.Struct, frozen=True, kw_only=True):
    """The services, all on one database."""

    tenants: TenantService
    sessions: SessionService
    instances: InstanceService
    operator: OperatorService
    fleet: FleetService
    slicings: SlicingService
    sites: SiteService
    accounts: AccountService
    joins: JoinService
    images: ImageService
    security_groups: SecurityGroupService
    acls: AclService
    addresses: AddressService
    balancers: BalancerService
    published_ports: PublishedPortService
    networks: NetworkService
    network_checks: NetworkChecks
    peerings: PeeringService
    subnets: SubnetService
    bills: BillService
    runs: RunService
    datasets: DatasetService
    telemetry: TelemetryService


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    body_bytes_max: int = 1_000_000
    streams_max: int = 200
    streams_per_organisation: int = 50
    threads: int = 16
    execs_max: int = 128
    execs_per_organisation: int = 32
    planners: int = 2
    metrics_open: bool = False


class Planner(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the planner: the operator's offers, rates and GPU models."""

    offers: WarmOffers
    rates: Callable[[], Rates]
    own_cards: Callable[[], Sequence[Card]]
    compute: Callable[[PlannerTask], bytes]
    """Computes estimates and plans, JSON to JSON, in a process that is killed if it takes too long."""


class RequestReads:
    """A database whose reads within one request see one consistent state and use one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open = threading.local()
        self.where = database.where
        self.write = database.write
        self.write_with_locks = database.write_with_locks
        self.write_one = database.write_one
        self.write_alone = database.write_alone
        self.close = database.close

    @contextmanager
    def request(self) -> Iterator[None]:
        """The context of a request that only reads."""
        with self._database.read() as tx:
            self._open.tx = tx
            try:
                yield
            finally:
                self._open.tx = None

    def read(self) -> AbstractContextManager[Transaction]:
        tx: Transaction | None = getattr(self._open, "tx", None)
        return self._database.read() if tx is None else nullcontext(tx)


class Services(msgspec.Struct, frozen=True, kw_only=True):
    database: Database
    clock: Clock
    nouns_on: Callable[[Database], Nouns]
    snapshots: RequestReads
    """The database that the services use."""
    nouns: Nouns
    reality: Callable[[], str]
    """`simulated`, `mixed` or `real`, as `Engines.reality` has it."""
    reads_inline: bool
    """Whether a read is faster than a switch of threads, as on SQLite."""
    planner: Planner
    request_rates: RequestRates
    news: News
    metrics: Metrics
    log: RequestLog
    access: logging.Logger | None = None
    """The log of all requests. None: no access log."""
    bounds: Bounds = Bounds()
    wake: Callable[[], None] = lambda: None
    """Wake up the loops."""
    openapi: Callable[[], bytes] = lambda: b"{}"
    """The OpenAPI document. It is generated from the routes, so a route cannot generate it."""
    seconds: Callable[[], float]
    """A monotonic clock, for durations."""
    processor_seconds: Callable[[], float]
    """The processor time that the calling thread has used."""

    def check(self) -> None:
        """Raise unless the database can be read."""
        with self.database.read():
            return

    def within(self, tx: Transaction, *, locking: bool = False) -> Nouns:
        """`locking`: the transaction is one of `write_with_locks`."""
        return self.nouns_on(Joined(tx, locking=locking))


class Joined:
    """Adapter that exposes one transaction as a Database.

    Work that expects the other kind of transaction would not be isolated in this one, so it is refused.
    """

    where = "the transaction"

    def __init__(self, tx: Transaction, *, locking: bool = False) -> None:
        self._tx = tx
        self._locking = locking

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        yield self._tx

    def write(self, work: Callable[[Transaction], T], /) -> T:
        if self._locking:
            raise Misuse("a route with `locks` must write with locks")
        return work(self._tx)

    def write_with_locks(self, work: Callable[[Transaction], T], /) -> T:
        if not self._locking:
            raise Misuse("a route that locks rows must be declared with `locks`")
        return work(self._tx)

    write_one = write_with_locks

    def write_alone(self, work: Callable[[Transaction], T], /) -> T:
        raise Misuse("a request cannot have the whole database to itself")

    def close(self) -> None:
        raise RuntimeError("a transaction is closed by the code that opened it")
