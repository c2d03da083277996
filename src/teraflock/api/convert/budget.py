"""Budgets on the wire."""

from datetime import datetime

from teraflock.base.filling import filled
from teraflock.bill.budget.model import Standing
from teraflock.bill.times import moment
from teraflock.wire.budget import BudgetAnswer


def _moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)


def budget_answer(standing: Standing) -> BudgetAnswer:
    budget = standing.budget
    return filled(
        BudgetAnswer,
        standing,
        currency=budget.currency,
        micros=budget.micros,
        levels=budget.levels,
        hard_stop=budget.hard_stop,
        notice_seconds=budget.notice_seconds,
        is_spent=standing.spent_micros >= budget.micros,
        stops_at=_moment(standing.stop_at_us),
        announced_at=_moment(standing.announced_us),
        stopped_at=_moment(standing.stopped_us),
    )
