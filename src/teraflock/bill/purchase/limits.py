"""Who may buy, and for how much: the permission `purchase.write`, or a limit that an owner or the operator set.

Invariants:
- a purchase counts with everything that it commits to: a month, or all instalments of a reservation;
- a limit is for a calendar month (UTC) and one member of one project. If one is set for an owner, it applies too;
- the amount is stored in the transaction of the purchase, so two simultaneous purchases cannot exceed the limit
  together.
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
    """What a term commits the buyer to. For a reservation that is paid by the month: all of its months."""
    if purchase.years and not purchase.upfront and term.kind == "bought":
        return term.month_micros * 12 * purchase.years
    return max(0, term.fee_micros)


def check_right(tx: Transaction, by: By | None) -> PurchaseLimit | None:
    """Raise unless the buyer may buy. Return the limit, if there is one."""
    if by is None or by.project is None:
        return None
    limit = store.limit(tx, by.project.id, by.actor.member_id)
    if limit is None and Permission.PURCHASE_WRITE not in in_project(by.actor, by.project):
        raise Forbidden(
            f"This key may not `{Permission.PURCHASE_WRITE}` in project `{by.project.name}`: purchases are for owners",
            hint="Ask an owner to buy it, or to give you a monthly limit: `tera buy limit MEMBER 500`",
        )
    return limit


def check_owner(by: By | None, what: str) -> None:
    """Raise unless the actor may manage purchases. A limit only allows to buy."""
    if by and by.project and Permission.PURCHASE_WRITE not in in_project(by.actor, by.project):
        raise Forbidden(
            f"Only owners may {what} in project `{by.project.name}`: a purchase limit only allows you to buy",
            hint="Ask an owner of the project",
        )


def spend(tx: Transaction, by: By | None, micros: int, currency: str, now_us: int) -> None:
    """Count a purchase against the buyer's limit. Raise if it would exceed the limit."""
    limit = check_right(tx, by)
    if limit is None:
        return
    month = month_of(now_us)
    spent = limit.spent_micros if limit.month == month else 0
    if spent + micros > limit.micros:
        left = amount_text(max(0, limit.micros - spent), currency)
        raise BudgetReached(
            f"This purchase commits you to {amount_text(micros, currency)}, but {left} is left of your limit of"
            f" {amount_text(limit.micros, currency)} for this month",
            hint="An owner of the project or the operator can raise the limit with `tera buy limit`",
        )
    store.put_limit(tx, msgspec.structs.replace(limit, month=month, spent_micros=spent + micros))
