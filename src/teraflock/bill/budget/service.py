"""Watching budgets and prepaid balances: load, decide, tell and stop."""

from collections.abc import Callable
from typing import Final

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, QuotaReached
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.base.money import decimal_text
from teraflock.bill import store
from teraflock.bill.budget import store as budget_store
from teraflock.bill.budget.model import Budget, Decision, Purse
from teraflock.bill.budget.rules import allows_launch, decide
from teraflock.bill.charge.store import month_of
from teraflock.bill.costs import month_so_far, open_of, unbooked
from teraflock.bill.credit import store as credit_store
from teraflock.bill.desk import Desk, interval_of
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.ledger.model import owes, paid_ahead
from teraflock.bill.times import microseconds
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event

STEP_SECONDS: Final = 60
"""How often budgets are looked at: none is passed by more than this costs."""
LEVELS_MAX: Final = 20


class BudgetReached(QuotaReached):
    code = "budget_reached"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A budget and where it stands."""

    budget: Budget
    month: str
    spent_micros: int
    micros_per_hour: int


class BudgetService:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        stop: Callable[[str], None] = lambda project_id: None,
    ) -> None:
        """`stop` asks all running instances of a project to stop."""
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._stop = stop

    def set(self, budget: Budget) -> Standing:
        """Accepted whatever was spent: the answer says where it stands."""
        if (
            budget.micros < 0
            or len(budget.levels) > LEVELS_MAX
            or not all(0 < each <= 1000 for each in budget.levels)
        ):
            raise BadInput("A budget is an amount above zero with levels from 1 to 1000 per cent")
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> Standing:
            desk = Desk(tx)
            kept = msgspec.structs.replace(budget, currency=desk.currency(budget.project_id))
            budget_store.put(tx, kept)
            budget_store.forget(tx, budget.project_id, month_of(now_us))
            return _standing(tx, desk, kept, now_us)

        return self._database.write(work)

    def remove(self, project_id: str) -> bool:
        return self._database.write(lambda tx: budget_store.remove(tx, project_id))

    def standing(self, project_id: str) -> Standing | None:
        with self._database.read() as tx:
            budget = budget_store.budget(tx, project_id)
            return _standing(tx, Desk(tx), budget, microseconds(self._clock.now())) if budget else None

    def check_launch(self, project_id: str) -> None:
        """Refuse to start anything new for a project that has nothing left to spend."""
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            budget = budget_store.budget(tx, project_id)
            if budget is None and store.pays(tx, project_id) != "prepaid":
                return  # the usual case costs a launch two rows to read
            desk = Desk(tx)
            if budget and not allows_launch(_purse(tx, desk, budget, now_us)):
                amount = f"{decimal_text(budget.micros, 2)} {budget.currency}"
                raise BudgetReached(
                    f"The budget of {amount} for this month is spent", hint="Raise it with `tera budget set`"
                )
            ahead = ahead_purse(tx, desk, project_id, now_us)
            if ahead and not allows_launch(ahead):
                raise BudgetReached(
                    "Nothing is left of what was paid in advance", hint="Pay in, then launch again"
                )

    def turn(self, *, step_seconds: int = STEP_SECONDS) -> list[str]:
        """Look at every budget once; the projects that were stopped."""
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            desk = Desk(tx)
            purses = [
                (each, _purse(tx, desk, each, now_us)) for each in budget_store.budgets_in_all_projects(tx)
            ]
            for profile in desk.profiles.values():
                if profile.pays == "prepaid" and (purse := ahead_purse(tx, desk, profile.project_id, now_us)):
                    ahead = Budget(
                        project_id=profile.project_id, currency=profile.currency, micros=purse.limit_micros, levels=(),
                        hard_stop=True,
                    )  # fmt: skip
                    purses.append((ahead, purse))
        stopped = []
        for budget, purse in purses:
            if self._look(budget, purse, now_us, step_seconds * 1_000_000).stops:
                self._stop(budget.project_id)
                stopped.append(budget.project_id)
        return stopped

    def _look(self, budget: Budget, purse: Purse, now_us: int, step_us: int) -> Decision:
        month = month_of(now_us)
        with self._database.read() as tx:
            told = budget_store.told(tx, budget.project_id, month)
        decision = decide(budget, purse, told, now_us=now_us, step_us=step_us)
        notices = [("level", level) for level in decision.levels]
        notices += [("announced", 0)] if decision.announces else []
        notices += [("stopped", 0)] if decision.stops and told.stopped_us is None else []
        if notices:
            self._database.write(lambda tx: self._tell(tx, budget, purse, decision, notices, now_us))
        return decision

    def _tell(
        self,
        tx: Transaction,
        budget: Budget,
        purse: Purse,
        decision: Decision,
        notices: list[tuple[str, int]],
        now_us: int,
    ) -> None:
        for kind, level in notices:
            spent, limit = purse.spent_micros, purse.limit_micros
            budget_store.note(tx, budget.project_id, month_of(now_us), kind, level, now_us, spent, limit)
            words = {"level": "reached", "announced": "ending", "stopped": "stopped"}
            record_event(
                tx,
                Event(
                    id=EventId(new_id("evt", self._clock.now(), self._random_bytes)), at=self._clock.now(),
                    kind=f"budget.{words[kind]}", subject=budget.project_id, project=budget.project_id,
                    details={
                        "level": level, "spent_micros": spent, "limit_micros": limit, "currency": budget.currency,
                        "stop_at_us": decision.stop_at_us, "micros_per_hour": purse.micros_per_hour,
                    },
                ),
            )  # fmt: skip


def ahead_purse(tx: Transaction, desk: Desk, project_id: str, now_us: int) -> Purse | None:
    """What a project that pays in advance has left, with credits, beside what is not booked; None: it does not."""
    profile = desk.profiles.get(project_id)
    if profile is None or profile.pays != "prepaid":
        return None
    balance = -ledger_store.account(tx, paid_ahead(project_id), profile.currency).owed
    owed = ledger_store.account(tx, owes(project_id), profile.currency).owed
    grants = credit_store.grants(tx, project_id)
    left = sum(grant.left_micros for grant in grants if grant.from_us <= now_us < grant.expires_us)
    intervals = [interval_of(meter) for meter in open_of(tx, project_id)]
    pending = sum(unbooked(tx, desk, interval, now_us) for interval in intervals)
    _, rate = month_so_far(tx, desk, project_id, month_of(now_us), now_us)
    return Purse(limit_micros=balance + left, spent_micros=pending + max(0, owed), micros_per_hour=rate)


def _purse(tx: Transaction, desk: Desk, budget: Budget, now_us: int) -> Purse:
    spent, rate = month_so_far(tx, desk, budget.project_id, month_of(now_us), now_us)
    return Purse(limit_micros=budget.micros, spent_micros=spent, micros_per_hour=rate)


def _standing(tx: Transaction, desk: Desk, budget: Budget, now_us: int) -> Standing:
    purse = _purse(tx, desk, budget, now_us)
    return Standing(
        budget=budget,
        month=month_of(now_us),
        spent_micros=purse.spent_micros,
        micros_per_hour=purse.micros_per_hour,
    )
