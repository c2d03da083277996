"""Who may buy, and for how much: the right `purchase.write`, or a limit that an owner or the operator set.

What holds:
- a purchase counts with all that it commits to: a month, or all instalments of a reservation;
- a limit is for a calendar month (UTC) and one member of one project; it bounds owners too, where one is set for them;
- the amount is noted in the transaction that buys, so two purchases at once cannot pass the limit together.
"""

import msgspec

from teraflock.base.errors import Forbidden
from teraflock.base.money import amount_text
from teraflock.bill.budget.admission import BudgetReached
from teraflock.bill.charge.store import month_of
from teraflock.bill.purchase import store
from teraflock.bill.purchase.model import Purchase, PurchaseLimit, Term
from teraflock.storage.database import Transaction
from teraflock.tenant.model import By
from teraflock.tenant.rules import Permission, in_project


def committed_micros(purchase: Purchase, term: Term) -> int:
    """What a buyer commits to with a term: of a reservation paid by the month, all of its months."""
    if purchase.years and not purchase.upfront and term.kind == "bought":
        return term.month_micros * 12 * purchase.years
    return max(0, term.fee_micros)


def check_right(tx: Transaction, by: By | None) -> PurchaseLimit | None:
    """Raise unless the buyer may; the limit, where there is one."""
    if by is None or by.project is None:
        return None
    limit = store.limit(tx, by.project.id, by.actor.member_id)
    if limit is None and Permission.PURCHASE_WRITE not in in_project(by.actor, by.project):
        raise Forbidden(
            f"This key may not `{Permission.PURCHASE_WRITE}` in project `{by.project.name}`: purchases are for owners",
            hint="An owner can buy it, or allow you an amount a month: `tera buy limit MEMBER 500`",
        )
    return limit


def check_owner(by: By | None, what: str) -> None:
    """Raise unless the actor may decide on purchases of others: a limit allows to buy, and no more."""
    if by and by.project and Permission.PURCHASE_WRITE not in in_project(by.actor, by.project):
        raise Forbidden(
            f"Only owners may {what} in project `{by.project.name}`: a purchase limit allows to buy",
            hint="Ask an owner of the project",
        )


def spend(tx: Transaction, by: By | None, micros: int, currency: str, now_us: int) -> None:
    """Count a purchase against the buyer's limit; raise where it would pass it."""
    limit = check_right(tx, by)
    if limit is None:
        return
    month = month_of(now_us)
    spent = limit.spent_micros if limit.month == month else 0
    if spent + micros > limit.micros:
        left = amount_text(max(0, limit.micros - spent), currency)
        raise BudgetReached(
            f"This purchase commits to {amount_text(micros, currency)}, and {left} is left of your purchase limit of"
            f" {amount_text(limit.micros, currency)} for this month",
            hint="An owner of the project or the operator can raise it with `tera buy limit`",
        )
    store.put_limit(tx, msgspec.structs.replace(limit, month=month, spent_micros=spent + micros))
