"""What operators ask of accounts: add, check, share, limit, sweep and remove them.

Invariants:
- an account and its site are written and removed by one transaction;
- credentials are encrypted before they reach the database, and never leave this service except to the driver;
- an account is removed only when its provider lists no machine of ours, or the operator forces it.
"""

import hashlib
import os
from collections.abc import Callable

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, Refused, TeraflockError, not_found
from teraflock.catalog.renting import check_provider
from teraflock.instance.account import rules, store
from teraflock.instance.account.model import (
    SEALED,
    AccountCheck,
    AccountUse,
    AccountView,
    CloudAccount,
    CloudDriver,
    NewAccount,
    Orphans,
    Spending,
    UseView,
    Vault,
)
from teraflock.instance.across import store as across
from teraflock.instance.driver import ComputeDriver, Handle
from teraflock.instance.ending import StillEnding
from teraflock.instance.engines import Engines
from teraflock.instance.model import InstanceId
from teraflock.instance.site import store as sites
from teraflock.instance.site.model import SiteRecord
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import NO_PROJECT, Actor, Project, ProjectId
from teraflock.tenant.project.store import project_of_any_organisation

Spent = Callable[[Transaction, CloudAccount, ProjectId], Spending]
"""What an account's machines cost; the last argument is a project's id, or empty for all projects."""
KEY = "key"


def spends_nothing(tx: Transaction, account: CloudAccount, project_id: ProjectId) -> Spending:
    return Spending()


class AccountService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        engines: Engines,
        vault: Vault,
        *,
        check_record: Callable[[SiteRecord], None],
        open_site: Callable[[SiteRecord], ComputeDriver],
        spent: Spent = spends_nothing,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """`check_record` raises where a driver does not accept the options of a site."""
        super().__init__(database, clock, random_bytes)
        self._engines = engines
        self._vault = vault
        self._check_record = check_record
        self._open_site = open_site
        self._spent = spent

    # Reading

    def accounts(self) -> tuple[AccountView, ...]:
        with self._database.read() as tx:
            return tuple(self._view(tx, each) for each in store.accounts(tx))

    def account(self, name: str) -> AccountView:
        with self._database.read() as tx:
            return self._view(tx, _found(tx, name))

    def check(self, name: str) -> AccountCheck:
        """Make one read-only call with the credentials of an account, and explain what is wrong."""
        try:
            driver = self._driver(name)
            found = driver.check() if isinstance(driver, CloudDriver) else ""
        except TeraflockError as error:
            return AccountCheck(name=name, problem=error.sentence, hint=error.hint, code=error.code)
        return AccountCheck(name=name, found=found)

    def orphans(self, name: str) -> Orphans:
        """What the provider has with our mark that belongs to no instance."""
        driver = self._driver(name)
        seen = tuple(driver.sightings())
        leftovers = tuple(driver.leftovers()) if isinstance(driver, CloudDriver) else ()
        ids = [each.instance_id for each in seen] + [InstanceId(each.instance_id) for each in leftovers]
        with self._database.read() as tx:
            known = across.ids_known_in_all_projects(tx, ids)
        return Orphans(machines=rules.orphans(seen, known), leftovers=rules.left_over(leftovers, known))

    # Acts

    def add(self, actor: Actor, new: NewAccount) -> AccountView:
        """Store an account and define its site. Every server process opens it within seconds."""
        check_provider(new.provider)
        rules.check(new)
        reference = new.secret_from or f"{SEALED}{new.name}"
        currency, more = rules.currency_of(new)
        record = SiteRecord(name=new.name, kind=new.provider, options={**new.options, **more, KEY: reference})
        self._check_record(record)
        account = CloudAccount(
            name=new.name,
            provider=new.provider,
            sealed=self._sealed(new.name, new.secret) if new.secret else "",
            currency=currency,
            limit_micros=new.limit_micros,
            created_at=self._clock.now(),
        )

        def work(tx: Transaction) -> AccountView:
            taken = {*self._engines.records, *(driver.site for driver in self._engines)}
            if new.name in taken | {each.name for each in sites.records(tx)} or store.account(tx, new.name):
                raise Conflict(f"There is a site or account `{new.name}` already", hint="Choose another name")
            sites.insert(tx, record, self._clock.now())
            store.insert(tx, account)
            self._audit.record(tx, actor, "account.add", new.name, provider=new.provider)
            return self._view(tx, account)

        return self._database.write(work)

    def set_secret(self, actor: Actor, name: str, secret: str) -> AccountView:
        """Replace the stored credentials, for example after a rotation at the provider."""
        rules.check(NewAccount(name=name, provider="", secret=secret))

        def work(tx: Transaction) -> AccountView:
            found = _found(tx, name)
            if not found.sealed:
                raise Refused(
                    f"The credentials of `{name}` are in a file or variable of the server",
                    hint="Change them there, then restart the server",
                )
            sealed = self._sealed(name, secret)
            store.set_sealed(tx, name, sealed)
            revision = hashlib.sha256(sealed.encode()).hexdigest()[:8]
            sites.set_option(tx, name, KEY, f"{SEALED}{name}:{revision}")  # every process opens it again
            self._audit.record(tx, actor, "account.key", name)
            return self._view(tx, replace(found, sealed=sealed))

        return self._database.write(work)

    def set_limit(self, actor: Actor, name: str, limit_micros: int | None) -> AccountView:
        def work(tx: Transaction) -> AccountView:
            found = _found(tx, name)
            store.set_limit(tx, name, limit_micros)
            self._audit.record(tx, actor, "account.limit", name, limit_micros=limit_micros)
            return self._view(tx, replace(found, limit_micros=limit_micros))

        return self._database.write(work)

    def share(
        self, actor: Actor, name: str, project: Project, *, limit_micros: int | None = None, may: bool = True
    ) -> AccountView:
        """Let a project rent machines with an account, or stop that. What runs already keeps running."""

        def work(tx: Transaction) -> AccountView:
            found = _found(tx, name)
            use = AccountUse(account=name, project_id=project.id, limit_micros=limit_micros)
            if may:
                store.set_use(tx, use)
            else:
                store.remove_use(tx, name, project.id)
            act = "account.share" if may else "account.unshare"
            self._audit.record(tx, actor, act, name, project, limit_micros=limit_micros)
            return self._view(tx, found)

        return self._database.write(work)

    def sweep(self, actor: Actor, name: str) -> Orphans:
        """Delete what two listings in a row show and no instance owns. Return what was deleted."""
        first, second = self.orphans(name), self.orphans(name)
        seen = {_key(each) for each in first.machines}
        confirmed = tuple(each for each in second.machines if _key(each) in seen)
        left = tuple(each for each in second.leftovers if each in first.leftovers)
        driver = self._driver(name)
        for each in confirmed:
            _delete(driver, Handle(each.instance_id, "", each.made.remote_id if each.made else ""))
        if isinstance(driver, CloudDriver):
            for leftover in left:
                driver.remove_leftover(leftover)
        self._database.write(
            lambda tx: self._audit.record(
                tx, actor, "account.sweep", name, machines=len(confirmed), leftovers=len(left)
            )
        )
        return Orphans(machines=confirmed, leftovers=left)

    def remove(self, actor: Actor, name: str, *, force: bool = False) -> None:
        """Forget an account without machines. `force` skips the question to the provider."""
        if not force:
            self._refuse_machines(name)

        def work(tx: Transaction) -> None:
            _found(tx, name)
            if count := sites.counts(tx).get(name, (0, 0))[1]:
                raise Conflict(f"The account `{name}` still has instances: {count}", hint="Delete them first")
            store.remove(tx, name)
            sites.remove(tx, name)
            self._audit.record(tx, actor, "account.remove", name, force=force)

        self._database.write(work)

    def _refuse_machines(self, name: str) -> None:
        try:
            machines = len(tuple(self._driver(name).sightings()))
        except TeraflockError as error:
            self.account(name)
            raise Conflict(
                f"The provider of `{name}` could not be asked for machines: {error.sentence}",
                hint="Repair the account first. `--force` removes it, and its machines keep running",
            ) from None
        if machines:
            raise Conflict(
                f"The account `{name}` still has machines at its provider: {machines}",
                hint=f"Delete the instances, then run `tera account sweep {name}`",
            )

    def _driver(self, name: str) -> ComputeDriver:
        """The driver of an account, opened here if this process has not opened its site yet."""
        with self._database.read() as tx:
            _found(tx, name)
            record = next(each for each in sites.records(tx) if each.name == name)
        if name in self._engines and self._engines.records.get(name) == record:
            return self._engines.at(name)
        return self._open_site(record)

    def _sealed(self, name: str, secret: str) -> str:
        return self._vault.seal(secret.strip(), bound_to=name)

    def _view(self, tx: Transaction, account: CloudAccount) -> AccountView:
        record = next((each for each in sites.records(tx) if each.name == account.name), None)
        options = dict(record.options) if record else {}
        reference = options.pop(KEY, "")
        state = sites.states(tx).get(account.name)
        return AccountView(
            account=account,
            secret_from="" if reference.startswith(SEALED) else reference,
            options=options,
            problem=self._engines.broken.get(account.name) or (state.problem if state else ""),
            since=state.since if state else None,
            instances=sites.counts(tx).get(account.name, (0, 0))[1],
            spending=self._spent(tx, account, NO_PROJECT),
            uses=tuple(self._use(tx, account, use) for use in store.uses(tx) if use.account == account.name),
        )

    def _use(self, tx: Transaction, account: CloudAccount, use: AccountUse) -> UseView:
        project = project_of_any_organisation(tx, use.project_id)
        return UseView(
            project_id=use.project_id,
            project_name=project.name if project else "",
            limit_micros=use.limit_micros,
            spending=self._spent(tx, account, use.project_id),
        )


def _found(tx: Transaction, name: str) -> CloudAccount:
    found = store.account(tx, name)
    if found is None:
        names = [each.name for each in store.accounts(tx)]
        raise not_found("account", name, names, see="`tera account list` lists them")
    return found


def _key(sighting: object) -> tuple[str, str]:
    made = getattr(sighting, "made", None)
    return str(getattr(sighting, "instance_id", "")), made.remote_id if made else ""


def _delete(driver: ComputeDriver, handle: Handle) -> None:
    try:
        driver.delete(handle)
    except StillEnding:
        return  # accepted; the next sweep shows whether it is gone
