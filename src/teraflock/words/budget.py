"""Budgets as text."""

from typing import TYPE_CHECKING

from teraflock.base.money import amount_text
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.budget import BudgetAnswer


def end_text(budget: "BudgetAnswer") -> str:
    """A warning that a budget will be spent soon, or is spent. Empty otherwise."""
    amount = amount_text(budget.micros, budget.currency)
    if budget.stopped_at:
        at = time_text(budget.stopped_at)
        return f"The budget of {amount} for {budget.month} is spent: all instances were stopped {at}"
    if budget.announced_at and budget.is_spent:
        return f"The budget of {amount} for {budget.month} is spent: all instances are being stopped"
    if budget.announced_at and budget.stops_at:
        return f"The budget of {amount} will be spent at {time_text(budget.stops_at)}, when all instances are stopped"
    return ""
