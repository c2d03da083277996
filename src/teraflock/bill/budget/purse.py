"""What a project can spend and has spent, as of a transaction, even if the loops have not processed it yet."""

from teraflock.bill import store
from teraflock.bill.budget.model import Budget, Purse
from teraflock.bill.charge.store import month_of
from teraflock.bill.costs import month_so_far, not_booked
from teraflock.bill.credit import store as credit_store
from teraflock.bill.desk import Desk
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.ledger.model import owes, paid_ahead
from teraflock.storage.database import Transaction


def budget_purse(tx: Transaction, desk: Desk, budget: Budget, now_us: int, month: str = "") -> Purse:
    spent = month_so_far(tx, desk, budget.project_id, month or month_of(now_us), now_us)
    return Purse(
        limit_micros=budget.micros,
        spent_micros=spent.micros,
        committed_micros=spent.committed_micros,
        micros_per_hour=spent.micros_per_hour,
    )


def ahead_purse(tx: Transaction, desk: Desk, profile: store.Profile, now_us: int) -> Purse:
    """What a prepaid project has left, with credits, and what it owes or has not been booked."""
    project_id = profile.project_id
    balance = -ledger_store.account(tx, paid_ahead(project_id), profile.currency).owed
    owed = max(0, ledger_store.account(tx, owes(project_id), profile.currency).owed)
    grants = credit_store.grants(tx, project_id)
    left = sum(grant.left_micros for grant in grants if grant.from_us <= now_us < grant.expires_us)
    pending = not_booked(tx, desk, project_id, now_us)
    return Purse(
        limit_micros=balance + left,
        spent_micros=pending.micros + owed,
        committed_micros=pending.committed_micros + owed,
        micros_per_hour=pending.micros_per_hour,
    )


def ahead_budget(profile: store.Profile, purse: Purse) -> Budget:
    """A prepaid balance is checked like a budget with a hard stop and without levels."""
    return Budget(
        project_id=profile.project_id, currency=profile.currency, micros=purse.limit_micros, levels=(), hard_stop=True
    )  # fmt: skip
