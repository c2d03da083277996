"""Decides whether a project may start more, inside the transaction of the launch and after its writes.

So the second of two simultaneous launches sees the first, and a refusal rolls back the whole launch. Every committed
change counts, whether it is charged or not: neither the meter nor the biller must have processed it.
"""

from collections.abc import Callable, Sequence

from teraflock.base.clock import SECOND_US, Clock
from teraflock.base.errors import QuotaReached
from teraflock.base.money import decimal_text
from teraflock.bill.budget import store as budget_store
from teraflock.bill.budget.model import Purse
from teraflock.bill.budget.purse import ahead_purse, budget_purse
from teraflock.bill.budget.rules import STEP_SECONDS, is_spent, lasts, watched
from teraflock.bill.budget.store import Wished
from teraflock.bill.charge.rules import slices
from teraflock.bill.charge.store import month_of
from teraflock.bill.desk import Desk
from teraflock.bill.price.model import FOREVER_US
from teraflock.bill.times import microseconds
from teraflock.meter.model import Interval
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId
from teraflock.tenant.project.store import claim

PAY_IN = "Pay in, then launch again"
RAISE = "Raise it with `tera budget set`"
CAPPED = "The operator set this cap; ask the operator to raise it"


class BudgetReached(QuotaReached):
    """The project's budget, the operator's cap or the prepaid balance does not allow more spending."""

    code = "budget_reached"
    remedy = "Raise the budget (`PUT /v1/budget`), pay in, or wait for the next month."


def admission(clock: Clock) -> Callable[[Transaction, ProjectId], None]:
    """For `InstanceService`: raise if the project may not have what was just written for it."""
    return lambda tx, project_id: check_launch(tx, project_id, microseconds(clock.now()))


def check_launch(tx: Transaction, project_id: ProjectId, now_us: int, more: Sequence[Wished] = ()) -> None:
    """`more` is what is not written yet."""
    if not budget_store.is_limited(tx, project_id):
        return  # the usual case
    own, cap = budget_store.budget(tx, project_id), budget_store.cap(tx, project_id)
    desk = Desk(tx)
    needed = _needed(tx, desk, project_id, now_us, more)
    for budget in watched(own, cap):
        hint = RAISE if own and own.micros == budget.micros else CAPPED
        purse, words = budget_purse(tx, desk, budget, now_us), _words(budget.micros, budget.currency)
        if is_spent(purse):
            raise BudgetReached(f"The budget of {words} for this month is spent", hint=hint)
        if budget.hard_stop and not lasts(purse, needed):
            raise _too_little(f"the budget of {words}", purse, budget.currency, hint)
    profile = desk.profiles.get(project_id)
    if profile and profile.pays == "prepaid":
        purse = ahead_purse(tx, desk, profile, now_us)
        if is_spent(purse):
            raise BudgetReached("The prepaid balance is spent", hint=PAY_IN)
        if not lasts(purse, needed):
            raise _too_little("the prepaid balance", purse, profile.currency, PAY_IN)


def affords(
    tx: Transaction,
    project_id: ProjectId,
    fee_micros: int,
    at_us: int,
    now_us: int,
    *,
    soft_too: bool = False,
) -> bool:
    """Whether a fee that is due at a time fits into the hard budget of its month, the operator's cap and the prepaid
    balance.

    With `soft_too`, also into a budget without a hard stop. Claims the project, as a launch does.
    """
    claim(tx, project_id)
    own, cap, desk = budget_store.budget(tx, project_id), budget_store.cap(tx, project_id), Desk(tx)
    purses = [
        budget_purse(tx, desk, budget, now_us, month_of(at_us))
        for budget in watched(own, cap)
        if budget.hard_stop or soft_too
    ]
    profile = desk.profiles.get(project_id)
    if profile and profile.pays == "prepaid":
        purses.append(ahead_purse(tx, desk, profile, now_us))
    return all(lasts(purse, fee_micros) for purse in purses)


def _needed(tx: Transaction, desk: Desk, project_id: ProjectId, now_us: int, more: Sequence[Wished]) -> int:
    """The minimum cost of everything that should run: for one step, or for the minimum charge of a run."""
    period = desk.book.at(now_us)
    minimum = period.prices.minimum_seconds if period else 0
    wished = [*budget_store.wanted_running(tx, project_id), *more]
    return sum(_cost(desk, each, project_id, now_us, STEP_SECONDS if each.runs else max(STEP_SECONDS, minimum))
               for each in wished)  # fmt: skip


def _cost(desk: Desk, wished: Wished, project_id: ProjectId, now_us: int, seconds: int) -> int:
    run = Interval(
        instance_id=wished.id, sequence=0, generation=0, project_id=project_id, from_us=now_us, until_us=FOREVER_US,
        run_us=now_us, held=wished.held,
    )  # fmt: skip
    made = slices(run, now_us + seconds * SECOND_US, desk.tariff(project_id), desk.covers(wished.id))
    return sum(sum(each.amounts) for each in made)


def _too_little(what: str, purse: Purse, currency: str, hint: str) -> BudgetReached:
    left = _words(max(0, purse.limit_micros - purse.committed_micros), currency)
    return BudgetReached(f"The rest of {what}, {left}, does not pay for one minute of this", hint=hint)


def _words(micros: int, currency: str) -> str:
    return f"{decimal_text(micros, 2)} {currency}"
