"""The site service for operators: list and check sites, and decide who may rent machines there."""

import os
from collections.abc import Callable

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, Refused, TeraflockError, not_found
from teraflock.instance.account import store as accounts
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.instance.site import store
from teraflock.instance.site.model import SiteCheck, SiteRecord, SiteView
from teraflock.instance.site.rules import removed
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, OrganisationId


class SiteService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        engines: Engines,
        *,
        check_record: Callable[[SiteRecord], None] = lambda record: None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """`check_record` raises if a driver does not accept the options of a site."""
        super().__init__(database, clock, random_bytes)
        self._engines = engines
        self._check_record = check_record

    def sites(self) -> tuple[SiteView, ...]:
        with self._database.read() as tx:
            return self._views(tx)

    def site(self, name: str) -> SiteView:
        with self._database.read() as tx:
            return self._found(tx, name)

    def check(self, name: str) -> SiteCheck:
        """Ask a site for what it has. Change nothing there."""
        view = self.site(name)
        if view.driver is None:
            return SiteCheck(name=name, problem=view.problem)
        try:
            return _checked(view.driver)
        except TeraflockError as error:
            return SiteCheck(name=name, problem=error.sentence, hint=error.hint)

    def add(self, actor: Actor, record: SiteRecord) -> SiteView:
        """Add a site. Every server process opens it within seconds."""
        self._check_record(record)

        def work(tx: Transaction) -> SiteView:
            if record.name in [each.record.name for each in self._views(tx)]:
                raise Conflict(f"A site `{record.name}` already exists", hint="Choose another name")
            store.insert(tx, record, self._clock.now())
            self._audit.record(tx, actor, "site.add", record.name, kind=record.kind)
            return self._found(tx, record.name)

        return self._database.write(work)

    def remove(self, actor: Actor, name: str) -> None:
        """Remove a site that has no instances."""

        def work(tx: Transaction) -> None:
            view = self._found(tx, name)
            if not view.record.is_kept:
                raise Refused(f"The site `{name}` is defined in the settings", hint="Remove it there")
            if accounts.account(tx, name):
                raise Refused(
                    f"The site `{name}` belongs to an account", hint=f"Use `tera account remove {name}`"
                )
            if view.instances:
                raise Conflict(
                    f"The site `{name}` still has instances: {view.instances}", hint="Delete them first"
                )
            store.remove(tx, name)
            self._audit.record(tx, actor, "site.remove", name)

        self._database.write(work)

    def allow(self, actor: Actor, name: str, organisation: OrganisationId, *, may: bool) -> SiteView:
        """Allow an organisation to rent machines at a site, or stop allowing it. Existing instances keep running."""

        def work(tx: Transaction) -> SiteView:
            view = self._found(tx, name)
            if view.driver is not None and Capability.PLACEMENT in view.driver.capabilities:
                raise Refused(
                    f"The site `{name}` has own hosts, which all tenants may use",
                    hint="Limit their usage with quotas: `tera quota set`",
                )
            store.set_use(tx, name, organisation, may=may)
            self._audit.record(
                tx, actor, "site.allow" if may else "site.deny", name, organisation=organisation
            )
            return self._found(tx, name)

        return self._database.write(work)

    def _found(self, tx: Transaction, name: str) -> SiteView:
        views = {each.record.name: each for each in self._views(tx)}
        if name not in views:
            raise not_found("site", name, views, see="`tera site list` lists them")
        return views[name]

    def _views(self, tx: Transaction) -> tuple[SiteView, ...]:
        kept = {record.name: record for record in store.records(tx)}
        opened = {driver.site: driver for driver in self._engines}
        over = removed(self._engines.records, kept.values())
        records = {
            **{name: SiteRecord(name=name, kind="") for name in opened},
            **self._engines.records,
            **kept,
        }
        states, uses, counts = store.states(tx), store.uses(tx), store.counts(tx)
        return tuple(
            SiteView(
                record=record,
                driver=opened.get(name),
                problem=self._engines.broken.get(name) or (states[name].problem if name in states else ""),
                since=states[name].since if name in states else None,
                for_all=name in self._engines.for_all,
                organisations=uses.get(name, ()),
                hosts=counts.get(name, (0, 0))[0],
                instances=counts.get(name, (0, 0))[1],
            )
            for name, record in sorted(records.items())
            if name not in over
        )


def _checked(driver: ComputeDriver) -> SiteCheck:
    return SiteCheck(
        name=driver.site,
        hosts=len(driver.hosts()),
        machines=sum(1 for _ in driver.sightings()),
        types=len(driver.types()),
    )
