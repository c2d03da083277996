"""Builds a server from its parts: database, services, engines, loops. Answers no requests itself."""

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from teraflock import __version__
from teraflock.api.idempotency import forget_old
from teraflock.api.limits import RequestRates
from teraflock.api.openapi import document_bytes
from teraflock.api.refusals import RequestLog
from teraflock.api.services import Bounds, Nouns, Planner, RequestReads, Services
from teraflock.app.argon2_passwords import Argon2Passwords
from teraflock.app.bucket import run_buckets, run_store
from teraflock.app.data import add_data_loops, dataset_files, dataset_service
from teraflock.app.engines import (
    SiteKeys,
    check_record,
    engine_mark,
    open_engines,
    open_record,
    synchronise,
)
from teraflock.app.home import RATES_NAME
from teraflock.app.installation.keeper import EngineKeeper
from teraflock.app.installation.places import Places
from teraflock.app.joining.listener import JoinPort, own_gpus
from teraflock.app.joining.packing import package
from teraflock.app.local import SHIPPED_RATES, filled_up, load_rates
from teraflock.app.more_loops import add_loops
from teraflock.app.planner.files import PlannerFiles
from teraflock.app.planner.pool import PlannerPool
from teraflock.app.runs import RunWorkers, add_run_loop
from teraflock.app.server_log import access_log
from teraflock.app.server_metrics import balancers_seen, metrics_of
from teraflock.app.settings import ACCESS_LOG_FILE, Place, Settings
from teraflock.app.vault import FileVault
from teraflock.app.webhook import webhook_of
from teraflock.base.clock import Clock, SystemClock, microseconds
from teraflock.base.errors import Refused
from teraflock.base.exchange import Rates
from teraflock.base.filling import filled
from teraflock.bill.budget.admission import admission
from teraflock.bill.floors import card_floors
from teraflock.bill.margin.spending import Admits, in_turn, spending, within_limits
from teraflock.bill.service import BillService
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.placement import Policy
from teraflock.fleet.service import FleetService
from teraflock.fleet.slicing.service import SlicingService
from teraflock.image.service import ImageService
from teraflock.instance import store as instances
from teraflock.instance.account import store as accounts
from teraflock.instance.account.service import AccountService
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.instance.join.service import JoinService
from teraflock.instance.operator import OperatorService
from teraflock.instance.service import InstanceService
from teraflock.instance.site import store as sites
from teraflock.instance.site.model import SiteRecord
from teraflock.instance.site.service import SiteService
from teraflock.instance.telemetry.service import TelemetryService
from teraflock.instance.terminal.service import TerminalService
from teraflock.meter.store import gpu_seconds_in_all_projects
from teraflock.network.acl.service import AclService
from teraflock.network.address.rules import pool_from
from teraflock.network.address.service import AddressService
from teraflock.network.balancer.model import Balancer, BalancerSeen
from teraflock.network.balancer.service import BalancerService, Hosting
from teraflock.network.checking import NetworkChecks
from teraflock.network.peering.service import PeeringService
from teraflock.network.published_port.service import PublishedPortService
from teraflock.network.security_group.service import SecurityGroupService
from teraflock.network.service import NetworkService
from teraflock.network.subnet.service import SubnetService
from teraflock.offer.index.warm import WarmOffers
from teraflock.reconcile.alerts import AlertLoop
from teraflock.reconcile.bills import stopper
from teraflock.reconcile.copying import CopyLoop
from teraflock.reconcile.linked import linked_sites
from teraflock.reconcile.loops import Loops
from teraflock.reconcile.rehearsal import dies_at
from teraflock.run.files import RunFiles
from teraflock.run.service import RunService
from teraflock.storage.database import Database, Transaction
from teraflock.storage.open import POSTGRES, open_database
from teraflock.tenant.announcement.service import News
from teraflock.tenant.model import Defaults
from teraflock.tenant.quota.parse import parse_organisation_quota, parse_project_quota
from teraflock.tenant.service import TenantService
from teraflock.tenant.session.service import SessionService

LOG: Final = logging.getLogger("teraflock.server")
FORGET_SECONDS: Final = 3600.0
SESSIONS_KEPT_FOR: Final = timedelta(days=30)  # after their end, for anyone who looks for a break-in
ENGINE_SECONDS: Final = 2.0
SITES_SECONDS: Final = 2.0
RUNS_FOLDER: Final = "runs"
ALERTS_SECONDS: Final = 5.0

SHARE_WINDOW: Final = timedelta(days=1)
"""What a project used in this time counts for its share of the queue."""

RandomBytes = Callable[[int], bytes]


class Cloud:
    """A server without its socket. `start` starts the loops, `stop` ends them and closes the database."""

    def __init__(
        self,
        at: Place,
        settings: Settings,
        *,
        clock: Clock | None = None,
        random_bytes: RandomBytes = os.urandom,
        engines: Engines | None = None,
    ) -> None:
        self.at = at
        self.settings = settings
        self.address_pool = pool_from(settings.address_pool)
        self.clock: Clock = clock or SystemClock()
        webhook = webhook_of(settings, self.clock)
        at.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        address = at.database(settings)
        self.is_postgres = address.startswith(POSTGRES)
        self.database = open_database(address, self.clock)
        try:
            tenants = TenantService(self.database, self.clock, random_bytes, defaults_of(settings))
            self.installed = tenants.install()
            self.database.write_alone(instances.move_labels)
            if self.installed.secret:
                _keep_secret(at, self.installed.secret)
            with self.database.read() as tx:
                kept = sites.records(tx)
            self.vault = FileVault(at.folder)
            self.run_files = RunFiles(at.folder / RUNS_FOLDER, run_store(settings.run_store))
            self.dataset_files = dataset_files(at, settings)
            self.run_buckets = run_buckets(settings.run_buckets)
            self._keys = SiteKeys(account_secret=self._account_secret, derive=self.vault.derive)
            self.engines = engines or open_engines(
                at, settings, self.installed.installation_id, self.clock, kept, self._keys
            )
        except BaseException:
            self.database.close()
            raise
        self.join_port = JoinPort(self.vault.derive, settings)
        self.loops = Loops(
            self.database,
            self.clock,
            self.engines,
            alone=not self.is_postgres,
            random_bytes=random_bytes,
            fault=dies_at(settings.faults),
            policy=policy_of(settings),
            admits=self._admits(),
        )
        self.rates = installation_rates(at)
        self.passwords = Argon2Passwords()
        self.terminals = TerminalService(self.database, self.clock, self.engines, random_bytes)
        self.planner_files = PlannerFiles(str(at.home), self.clock)
        self.planner_pool = PlannerPool(str(at.home))
        self.services = self._services(random_bytes)
        self.join_port.join = self.services.nouns.joins.join
        self.copying = CopyLoop(
            self.loops.around, timedelta(minutes=settings.copy_minutes), worker=self.loops.worker
        )
        add_loops(self.loops, self.services.nouns, self.vault, self.copying, settings)
        self._run_workers = RunWorkers()
        stored = (self.run_files, self.dataset_files)
        self._runs = add_run_loop(
            self.loops, self.services, stored, self.vault, self._run_workers.submit, self.run_buckets
        )
        self._data_workers = add_data_loops(self.loops, self.dataset_files)
        if webhook is not None:
            self.loops.also("alerts", AlertLoop(self.database, self.clock, webhook.send).turn, ALERTS_SECONDS)
        if settings.engine == "lxd" and Path(settings.lxd_socket).parent == (places := Places(at.home)).lxd:
            keeper = EngineKeeper(places, self.database, self.clock, random_bytes)
            self.loops.also("engine", keeper.turn, ENGINE_SECONDS)
        self._ending = threading.Event()
        self._started = False

    def start(self) -> None:
        self._started = True
        if self.settings.loops:
            if not self.is_postgres:
                self._runs.take_over()
            self.loops.start()
        threading.Thread(target=self._forget, name="forget", daemon=True).start()
        threading.Thread(target=self._follow_sites, name="sites", daemon=True).start()

    def stop(self) -> None:
        self._ending.set()
        self.join_port.close()
        if self._started and self.settings.loops:
            self.loops.stop()
        self._run_workers.close()
        self._data_workers.close()
        self.terminals.close()
        self.planner_pool.close()
        self.services.planner.offers.close()
        self.planner_files.close()
        self.database.close()
        for handler in self.services.access.handlers if self.services.access else ():
            handler.close()

    def _services(self, random_bytes: RandomBytes) -> Services:
        settings = self.settings
        nouns_on = partial(self._nouns, random_bytes, FleetMemory(self.clock))
        snapshots = RequestReads(self.database)
        return Services(
            database=self.database,
            clock=self.clock,
            nouns_on=nouns_on,
            snapshots=snapshots,
            nouns=nouns_on(snapshots, self.loops.wake),
            reality=lambda: self.engines.reality,
            reads_inline=not self.is_postgres,
            news=News(self.database, self.clock),
            planner=self._planner(),
            request_rates=RequestRates(
                settings.rate_per_second,
                settings.rate_burst,
                time.monotonic,
                organisation_per_second=settings.rate_per_organisation,
                failures_per_minute=settings.failed_keys_per_minute,
            ),
            metrics=metrics_of(
                self.database,
                self.clock,
                self.engines,
                lambda: self.loops.turns,
                lambda: self.services.nouns.bills,
            ),
            log=RequestLog(time.monotonic),
            access=access_log(self.at.folder / ACCESS_LOG_FILE) if settings.access_log else None,
            bounds=filled(Bounds, settings),
            wake=self.loops.wake,
            openapi=document_bytes,
            seconds=time.monotonic,
            processor_seconds=time.thread_time,
        )

    def _nouns(
        self,
        random_bytes: RandomBytes,
        memory: FleetMemory,
        database: Database,
        wake: Callable[[], None] = lambda: None,
    ) -> Nouns:
        settings, policy = self.settings, policy_of(self.settings)
        by_instance = InstanceService(
            database,
            self.clock,
            self.engines,
            policy=policy,
            memory=memory,
            random_bytes=random_bytes,
            wake=wake,
            admits=self._admits(),
            used_by=used_lately,
            read_prices=card_floors,
        )
        bills = BillService(
            database,
            self.clock,
            self.rates,
            random_bytes,
            stopper(database, by_instance),
            issuer_lines(settings),
            settings.invoice_days,
        )
        return Nouns(
            bills=bills,
            tenants=TenantService(database, self.clock, random_bytes, defaults_of(settings)),
            sessions=SessionService(database, self.clock, random_bytes, self.passwords),
            instances=by_instance,
            operator=OperatorService(database, self.clock, by_instance, random_bytes),
            networks=NetworkService(database, self.clock, random_bytes, wake),
            network_checks=NetworkChecks(database, lambda tx: linked_sites(tx, self.engines)),
            peerings=PeeringService(database, self.clock, random_bytes, wake),
            subnets=SubnetService(database, self.clock, random_bytes, wake),
            acls=AclService(database, self.clock, random_bytes, wake),
            addresses=AddressService(database, self.clock, self.address_pool, random_bytes, wake),
            balancers=BalancerService(database, self.clock, self._hosting(), random_bytes, wake),
            published_ports=PublishedPortService(database, self.clock, random_bytes, wake),
            security_groups=SecurityGroupService(database, self.clock, random_bytes, wake),
            fleet=FleetService(database, self.clock, policy=policy, random_bytes=random_bytes),
            slicings=SlicingService(database, self.clock, random_bytes),
            sites=SiteService(
                database, self.clock, self.engines, check_record=check_record, random_bytes=random_bytes
            ),
            accounts=self._accounts(database, random_bytes),
            joins=self._joins(database, random_bytes),
            runs=RunService(
                database,
                self.clock,
                self.run_files,
                self.vault,
                random_bytes=random_bytes,
                wake=wake,
                buckets=self.run_buckets,
            ),
            datasets=dataset_service(
                database, self.clock, self.dataset_files, self.run_files, random_bytes, wake, self._admits()
            ),
            telemetry=TelemetryService(database, self.clock),
            images=ImageService(
                database, self.clock, publish=by_instance.publish, random_bytes=random_bytes, wake=wake
            ),
        )

    def _admits(self) -> Admits:
        """Whether budgets and spending limits allow what a project has."""
        return in_turn(admission(self.clock), within_limits(self.clock))

    def _hosting(self) -> Hosting:
        return Hosting(
            can=lambda site: self.engines.can(site, Capability.BALANCER),
            linked=lambda tx: linked_sites(tx, self.engines),
            seen=self._balancer_seen,
            seal=lambda text, id: self.vault.seal(text, bound_to=id),
        )

    def _balancer_seen(self, balancer: Balancer) -> BalancerSeen | None:
        return next(
            (each for each in balancers_seen(self.engines, balancer.site) if each.id == balancer.id), None
        )

    def _accounts(self, database: Database, random_bytes: RandomBytes) -> AccountService:
        return AccountService(
            database,
            self.clock,
            self.engines,
            self.vault,
            check_record=check_record,
            open_site=self._open_site,
            spent=spending(self.clock),
            random_bytes=random_bytes,
        )

    def _joins(self, database: Database, random_bytes: RandomBytes) -> JoinService:
        return JoinService(
            database,
            self.clock,
            self.engines,
            self.join_port,
            version=__version__,
            mark=engine_mark(self.installed.installation_id),
            package=package,
            own_cards=partial(own_gpus, self.settings),
            random_bytes=random_bytes,
        )

    def _open_site(self, record: SiteRecord) -> ComputeDriver:
        return open_record(self.at, record, self.installed.installation_id, self.clock, self._keys)

    def _account_secret(self, name: str) -> str:
        with self.database.read() as tx:
            found = accounts.account(tx, name)
        if found is None:
            raise Refused(f"There is no account `{name}`", hint="`tera account list` lists them")
        return self.vault.open(found.sealed, bound_to=name)

    def _planner(self) -> Planner:
        files = self.planner_files
        return Planner(
            offers=WarmOffers(files.database, files.rates, self.clock),
            rates=files.rates,
            own_cards=files.own_cards,
            compute=self.planner_pool.compute,
        )

    def synchronise_sites(self) -> None:
        """Open sites that were added to the database, and close those that were removed."""
        with self.database.read() as tx:
            kept = sites.records(tx)
        installation = self.installed.installation_id
        synchronise(self.engines, self.at, self.settings, kept, installation, self.clock, self._keys)

    def _follow_sites(self) -> None:
        while not self._ending.wait(SITES_SECONDS):
            try:
                self.synchronise_sites()
                self.join_port.follow(self.services.nouns.joins.has_open_invitations())
            except Exception:
                if not self._ending.is_set():
                    LOG.exception("could not read the sites in the database")

    def _forget(self) -> None:
        while not self._ending.is_set():
            try:
                forget_old(self.database, self.clock)
                self.services.nouns.sessions.forget_old(self.clock.now() - SESSIONS_KEPT_FOR)
                self.services.nouns.sessions.forget_used()
            except Exception:
                if not self._ending.is_set():
                    LOG.exception("could not delete old answers")
            self._ending.wait(FORGET_SECONDS)


def used_lately(tx: Transaction, now: datetime) -> dict[str, float]:
    """What each project used lately, in GPU-seconds, for the fair share of the queue."""
    return gpu_seconds_in_all_projects(tx, microseconds(now - SHARE_WINDOW), microseconds(now))


def policy_of(settings: Settings) -> Policy:
    return Policy(vcpu_overcommit=settings.vcpu_overcommit, disk_overcommit=settings.disk_overcommit)


def defaults_of(settings: Settings) -> Defaults:
    """The quotas of new organisations and projects."""
    return Defaults(
        organisation=parse_organisation_quota(settings.default_organisation_quota),
        project=parse_project_quota(settings.default_project_quota),
    )


def issuer_lines(settings: Settings) -> str:
    """The sender of invoices, line by line."""
    if not settings.issuer_tax_number:
        return settings.issuer
    return f"{settings.issuer}\nTax number {settings.issuer_tax_number}"


def installation_rates(at: Place) -> Rates:
    """The exchange rates in this home, plus the shipped ones for all other currencies."""
    own = at.home / RATES_NAME
    return filled_up(load_rates(str(own))) if own.is_file() else load_rates(SHIPPED_RATES)


def _keep_secret(at: Place, secret: str) -> None:
    """Save the operator's key, readable only by its owner, before anyone can ask for it."""
    path = at.operator_key
    temporary = path.with_suffix(f".{os.getpid()}.new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
        file.write(f"{secret}\n")
    temporary.replace(path)
