"""What the edges call: prices, quotes, bills, budgets, credits, purchases, invoices, export and verification."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, Literal

import msgspec

from teraflock.base.clock import DAY_US, HOUR_US, Clock
from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.base.exchange import Rates
from teraflock.base.kept import Kept
from teraflock.base.money import MICROS
from teraflock.bill import costs, store
from teraflock.bill.biller import Biller
from teraflock.bill.budget.purse import ahead_purse
from teraflock.bill.budget.service import BudgetService
from teraflock.bill.charge import store as charge_store
from teraflock.bill.charge.store import Booked
from teraflock.bill.credit import store as credit_store
from teraflock.bill.credit.service import CreditService
from teraflock.bill.desk import Desk, interval_of
from teraflock.bill.export.focus import focus_csv, focus_rows
from teraflock.bill.export.model import BillingAccount
from teraflock.bill.export.service import month_of_project
from teraflock.bill.invoice.service import DUE_DAYS, InvoiceService
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.ledger.model import REVENUE, owes, paid_ahead
from teraflock.bill.margin.report import Margin, MarginBy, margin
from teraflock.bill.margin.service import CostService
from teraflock.bill.price.model import PricePlace
from teraflock.bill.price.service import PriceService
from teraflock.bill.purchase.service import PurchaseService
from teraflock.bill.quote import Quote, most_expensive
from teraflock.bill.store import Profile
from teraflock.bill.times import microseconds, month_bounds
from teraflock.bill.verify.service import Verdict, verify
from teraflock.meter import store as meter_store
from teraflock.meter.model import Holding
from teraflock.meter.service import MeterService
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import By, ProjectId

SumBy = Literal["instance", "gpu", "user", "label", "day"]
QUOTE_US_MAX: Final = 3_653 * DAY_US  # a quote is computed day by day: a deadline in 9999 took 24 s
GROUPS_MAX: Final = 1_000  # of a bill; the lines of the bill have all of them, in pages


class Group(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    lines: int
    micros: int


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """The bill of a project for a month."""

    project_id: ProjectId
    month: str
    currency: str
    micros: int
    """Booked."""
    unbooked_micros: int
    """Used but not booked yet. It is booked when the instance is stopped or the day ends."""
    list_micros: int
    """The booked usage at on-demand prices."""
    lines: int
    groups: tuple[Group, ...]
    micros_per_hour: int
    forecast_micros: int


class BillService:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        rates: Rates,
        random_bytes: Callable[[int], bytes] = os.urandom,
        stop: Callable[[ProjectId], None] = lambda project_id: None,
        issuer: str = "Teraflock",
        invoice_days: int = DUE_DAYS,
    ) -> None:
        """`stop` asks all running instances of a project to stop. `issuer` is the sender of invoices, line by line."""
        self._database = database
        self.issuer = issuer
        self._clock = clock
        self._audit = Audit(clock, random_bytes)
        self.prices = PriceService(database, clock, rates)
        self.meter = MeterService(database, clock)
        self.biller = Biller(database, clock, random_bytes)
        self.purchases = PurchaseService(database, clock, random_bytes)
        self.credits = CreditService(database, clock, random_bytes)
        self.invoices = InvoiceService(database, clock, due_days=invoice_days)
        self.budgets = BudgetService(database, clock, random_bytes, stop)
        self.host_costs = CostService(database, clock, rates, random_bytes)
        self._margins: Kept[Margin] = Kept(clock)
        self._bills: Kept[Bill] = Kept(clock)
        self._pending: Kept[tuple[int, int]] = Kept(clock)

    # -- looking -------------------------------------------------------------------------------------------------

    def bill(self, project_id: ProjectId, month: str, by: SumBy = "gpu", label: str = "") -> Bill:
        """The bill of a month. With a thousand instances, it is a second old."""
        return self._bills.get(
            (project_id, month, by, label), lambda: self._bill(project_id, month, by, label)
        )

    def _bill(self, project_id: ProjectId, month: str, by: SumBy, label: str) -> tuple[Bill, int]:
        now_us = self._now_us()
        with self._database.read() as tx:
            desk = Desk(tx)
            currency = desk.currency(project_id)
            booked = charge_store.sums(tx, project_id, month)
            sums = [each for each in booked if each.currency in ("", currency)]
            micros = sum(each.micros for each in sums)
            pending = costs.not_booked(tx, desk, project_id, now_us, month, minimums=False)
            made = Bill(
                project_id=project_id,
                month=month,
                currency=currency,
                micros=micros,
                unbooked_micros=pending.micros,
                micros_per_hour=pending.micros_per_hour,
                forecast_micros=forecast(micros + pending.micros, pending.micros_per_hour, month, now_us),
                list_micros=sum(each.list_micros for each in sums),
                lines=sum(each.lines for each in sums),
                groups=_groups(tx, sums, project_id, month, by, label, currency),
            )
        return made, pending.intervals

    def lines(
        self, project_id: ProjectId, month: str, *, after: int = 0, limit: int = 200, instance_id: str = ""
    ) -> list[Booked]:
        """The charges of a month. With `instance_id`, only those of one instance."""
        with self._database.read() as tx:
            return charge_store.lines(tx, project_id, month, after=after, limit=limit, subject=instance_id)

    def costs(self, project_id: ProjectId, instance_ids: list[str]) -> Mapping[str, costs.InstanceCost]:
        """Costs per hour and so far of instances of one project."""
        now_us = self._now_us()
        with self._database.read() as tx:
            return costs.costs_of(tx, Desk(tx), project_id, instance_ids, now_us)

    def hosts_with_prices(self) -> tuple[str, ...]:
        """The ids of hosts that have prices of their own now."""
        with self._database.read() as tx:
            period = Desk(tx).book.at(self._now_us())
        return () if period is None else tuple(sorted(period.prices.hosts))

    def quote(
        self,
        project_id: ProjectId,
        held: Holding,
        *,
        places: Iterable[PricePlace] = (),
        instances: int = 1,
        until: datetime | None = None,
    ) -> Quote:
        """`places` are the places where the instance may run."""
        now_us = self._now_us()
        until_us = microseconds(until) if until else None
        if until_us is not None and until_us - now_us > QUOTE_US_MAX:
            raise BadInput("The deadline is more than ten years ahead", hint="Give an earlier deadline")
        with self._database.read() as tx:
            desk = Desk(tx)
            period = desk.book.at(now_us)
            if period is None:
                raise Refused(
                    "There are no prices yet", hint="The operator sets them with `tera price set FILE`"
                )
            return most_expensive(
                held, places, desk.tariff(project_id), period, now_us, instances=instances, until_us=until_us
            )

    def verify(self) -> Verdict:
        """Meter and charge everything, then verify the books."""
        self.turn()
        return verify(self._database)

    def margin(self, month: str, by: MarginBy) -> Margin:
        """Revenue, cost and margin of a month, over all tenants. With thousands of instances it is some seconds old."""

        def make() -> tuple[Margin, int]:
            with self._database.read() as tx:
                made = margin(tx, month, by, self._now_us())
            return made, made.amounts

        return self._margins.get((month, by), make)

    def focus(self, account: BillingAccount, month: str) -> Iterator[str]:
        """The month as FOCUS, streamed. The database snapshot is held until the last line is read."""
        with self._database.read() as tx:
            yield from focus_csv(focus_rows(month_of_project(tx, account, month)))

    def standing(self, project_id: ProjectId) -> tuple[Profile, int, int]:
        """How a project pays, its prepaid balance, and what it owes."""
        with self._database.read() as tx:
            desk = Desk(tx)
            currency = desk.currency(project_id)
            profile = desk.profiles.get(project_id) or Profile(project_id=project_id, currency=currency)
            ahead = ledger_store.account(tx, paid_ahead(project_id), currency).owed
            return profile, -ahead, ledger_store.account(tx, owes(project_id), currency).owed

    def pending(self, project_id: ProjectId) -> tuple[int, int]:
        """The usage of a project that is not booked yet, and what it can still spend if it pays in advance.

        It can spend its balance and credits, minus what it owes and what is not booked. `tera launch` checks the same
        amount. With a thousand instances, the amounts are a second old.
        """

        def make() -> tuple[tuple[int, int], int]:
            now_us = self._now_us()
            with self._database.read() as tx:
                desk = Desk(tx)
                pending = costs.not_booked(tx, desk, project_id, now_us, minimums=False)
                profile = desk.profiles.get(project_id)
                if profile is None or profile.pays != "prepaid":
                    return (pending.micros, 0), pending.intervals
                purse = ahead_purse(tx, desk, profile, now_us)
            return (pending.micros, purse.limit_micros - purse.spent_micros), pending.intervals

        return self._pending.get(project_id, make)

    def month_now(self) -> str:
        return charge_store.month_of(self._now_us())

    def cost_per_hour_in_all_projects(self) -> dict[str, float]:
        """By currency, for the metrics."""
        now_us = self._now_us()
        found: dict[str, float] = {}
        with self._database.read() as tx:
            desk = Desk(tx)
            for interval in map(interval_of, meter_store.open_meters(tx)):
                currency = desk.currency(interval.project_id)
                found[currency] = found.get(currency, 0.0) + costs.hourly(desk, interval, now_us) / MICROS
        return found

    def charged_in_all_projects(self) -> dict[str, float]:
        with self._database.read() as tx:
            accounts = [each for each in ledger_store.accounts(tx) if each.name == REVENUE]
        return {each.currency: -each.owed / MICROS for each in accounts}

    # -- changing --------------------------------------------------------------------------------------------------

    def set_profile(self, profile: Profile, *, by: By | None = None) -> Profile:
        """Set how a project pays. Its currency cannot change after the first charge."""

        def work(tx: Transaction) -> Profile:
            desk = Desk(tx)
            period = desk.book.at(self._now_us())
            if period and profile.currency not in period.prices.rates:
                raise BadInput(f"`{profile.currency}` has no exchange rate in the price book")
            if profile.currency != desk.currency(profile.project_id) and _has_money(
                tx, desk, profile.project_id
            ):
                raise Conflict(
                    "The currency of a project with charges, credits or money paid ahead cannot change"
                )
            store.set_profile(tx, profile)
            tax = f"{profile.tax_name} {profile.tax_bp / 100:g}%" if profile.tax_name else ""
            self._audit.note(
                tx, by, "billing.set", profile.project_id, currency=profile.currency, pays=profile.pays, tax=tax,
                customer=profile.customer, tax_number=profile.tax_number,
            )  # fmt: skip
            return profile

        return self._database.write(work)

    def turn(self) -> int:
        """Meter and charge everything. Return how much was done."""
        done = self.meter.catch_up() + self.biller.catch_up() + self.biller.close_days()
        return done + self.host_costs.catch_up()

    def _now_us(self) -> int:
        return microseconds(self._clock.now())


def _has_money(tx: Transaction, desk: Desk, project_id: ProjectId) -> bool:
    """Whether the project has money in its currency, which would be lost in another one."""
    balance = ledger_store.account(tx, paid_ahead(project_id), desk.currency(project_id)).owed
    credits = any(grant.left_micros for grant in credit_store.grants(tx, project_id))
    return charge_store.has_cost(tx, project_id) or bool(balance) or credits


def forecast(spent_micros: int, micros_per_hour: int, month: str, now_us: int) -> int:
    """The total of a month if everything keeps running as now. For a past or future month, what is spent."""
    starts_us, ends_us = month_bounds(month)
    if not starts_us <= now_us < ends_us:
        return spent_micros
    return spent_micros + micros_per_hour * (ends_us - now_us) // HOUR_US


def _groups(
    tx: Transaction,
    sums: list[charge_store.ChargeSum],
    project_id: ProjectId,
    month: str,
    by: SumBy,
    label: str,
    currency: str,
) -> tuple[Group, ...]:
    if by == "instance":
        return _bounded(charge_store.sums_by_name(tx, project_id, month))
    if by == "day":
        return tuple(
            Group(name=day, lines=lines, micros=micros)
            for day, lines, micros in charge_store.sums_by_day(tx, project_id, month, currency)
        )
    found: dict[str, tuple[int, int]] = {}
    for each in sums:
        name = (
            each.member
            if by == "user"
            else each.gpu or "no card"
            if by == "gpu"
            else _label(each.labels, label)
        )
        lines, micros = found.get(name, (0, 0))
        found[name] = (lines + each.lines, micros + each.micros)
    return _bounded([(name, *total) for name, total in found.items()])


def _bounded(groups: list[tuple[str, int, int]]) -> tuple[Group, ...]:
    """The most expensive groups first. Tenants choose the names, so groups beyond a limit are summed up."""
    groups.sort(key=lambda group: (-group[2], group[0]))
    shown = tuple(Group(name=name, lines=lines, micros=micros) for name, lines, micros in groups[:GROUPS_MAX])
    others = groups[GROUPS_MAX:]
    if not others:
        return shown
    lines, micros = sum(group[1] for group in others), sum(group[2] for group in others)
    return (*shown, Group(name=f"{len(others):,} others", lines=lines, micros=micros))


def _label(labels: str, key: str) -> str:
    """The value of one label, or all labels if none is given."""
    pairs = msgspec.json.decode(labels or "{}", type=dict[str, str])
    if key:
        return pairs.get(key, "without")
    return ", ".join(f"{name}={value}" for name, value in sorted(pairs.items())) or "without"
