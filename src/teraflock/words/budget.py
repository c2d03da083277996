"""Budgets as text."""

from typing import TYPE_CHECKING

from teraflock.base.money import amount_text
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.budget import BudgetAnswer


def end_text(budget: "BudgetAnswer") -> str:
    """A warning that a budget ends soon, or has ended; empty otherwise."""
    amount = amount_text(budget.micros, budget.currency)
    if budget.stopped_at:
        at = time_text(budget.stopped_at)
        return f"The budget of {amount} for {budget.month} was reached: all was stopped {at}"
    if budget.announced_at and budget.stops_at:
        return f"The budget of {amount} is spent {time_text(budget.stops_at)}: all instances are stopped then"
    return ""
