"""The spending limits of accounts at clouds, per account and per project, for one calendar month (UTC).

A launch is refused unless the month's cost so far, and one hour of everything that would then run, are within the
limits. `reconcile/accounts.py` ends machines when a limit is reached.
"""

from collections.abc import Callable
from datetime import datetime

from teraflock.base.clock import Clock, microseconds
from teraflock.base.money import decimal_text
from teraflock.bill.budget.admission import BudgetReached
from teraflock.bill.margin import store
from teraflock.bill.margin.rules import cost_between
from teraflock.instance.account import store as accounts
from teraflock.instance.account.model import CloudAccount, Spending
from teraflock.storage.database import Transaction
from teraflock.tenant.model import NO_PROJECT, ProjectId

Admits = Callable[[Transaction, ProjectId], None]


def spending(clock: Clock) -> Callable[[Transaction, CloudAccount, ProjectId], Spending]:
    """For `AccountService`."""
    return lambda tx, account, project_id: spent(tx, account, project_id, clock.now())


def spent(tx: Transaction, account: CloudAccount, project_id: ProjectId, now: datetime) -> Spending:
    """What the machines of an account cost: those of one project, or all."""
    begin_us = microseconds(now.replace(day=1, hour=0, minute=0, second=0, microsecond=0))
    today_us = microseconds(now.replace(hour=0, minute=0, second=0, microsecond=0))
    rates = store.rates_at_site(tx, account.name, project_id, begin_us)
    return Spending(
        month_micros=sum(cost_between(each, begin_us, microseconds(now)) for each in rates.values()),
        today_micros=sum(cost_between(each, today_us, microseconds(now)) for each in rates.values()),
        per_hour_micros=store.per_hour_at_site(tx, account.name, project_id),
    )


def in_turn(*checks: Admits) -> Admits:
    """Ask several checks whether a project may start more."""

    def check(tx: Transaction, project_id: ProjectId) -> None:
        for each in checks:
            each(tx, project_id)

    return check


def within_limits(clock: Clock) -> Admits:
    """For `InstanceService`: raise if an account that the project uses would exceed a limit."""

    def check(tx: Transaction, project_id: ProjectId) -> None:
        known = accounts.accounts(tx)
        uses = accounts.uses(tx) if known else ()
        limits = {use.account: use.limit_micros for use in uses if use.project_id == project_id}
        for account in known:
            if not store.per_hour_at_site(tx, account.name, project_id):
                continue  # this project rents nothing there
            limit = limits.get(account.name)
            if account.limit_micros is not None or limit is not None:
                # Launches of other projects count against the same limit, and a loop that rents again does not
                # lock the project.
                accounts.hold(tx, account.name)
            _check(tx, account, NO_PROJECT, account.limit_micros, clock.now())
            _check(tx, account, project_id, limit, clock.now())

    return check


def _check(
    tx: Transaction, account: CloudAccount, project_id: ProjectId, limit: int | None, now: datetime
) -> None:
    if limit is None:
        return
    so_far = spent(tx, account, project_id, now)
    if so_far.month_micros + so_far.per_hour_micros > limit:
        whose = "this project" if project_id else "all projects"
        amount = f"{decimal_text(limit, 2)} {account.currency}"
        raise BudgetReached(
            f"The account `{account.name}` has a limit of {amount} per month for {whose}, and this would exceed it",
            hint="Delete machines that you no longer need, or ask the operator for a higher limit",
        )
