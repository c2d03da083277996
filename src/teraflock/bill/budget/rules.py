"""Decides which notices to send about a budget, when to stop, and what may still start. Pure.

A metering step is `STEP_SECONDS`, and budgets are checked twice in it. Invariants:
- a notice about a level is sent once a month;
- a hard stop is announced in a check before the one that stops, even if it is noticed late. That is why there are two
  checks in a step. If it was announced in time, the stop comes in the last check before the budget would be exceeded;
- so once a budget is exceeded, or set to what is already spent, instances are asked to stop within one step. A run is
  charged until it was asked;
- an announcement is valid while there is not more to spend than when it was made. What starts again is stopped by the
  next check;
- an instance that the rest cannot pay for one step, with its minimum charge, is not started.
"""

from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import HOUR_US
from teraflock.bill.budget.model import Budget, Cap, Decision, Purse, Told

STEP_SECONDS: Final = 60
"""A budget with a hard stop may be exceeded by the cost of this time and no more."""
LOOK_SECONDS: Final = STEP_SECONDS // 2
LOOK_US: Final = LOOK_SECONDS * 1_000_000


def ruling(budget: Budget | None, cap: Cap | None) -> Budget | None:
    """The limit that applies: the lower one of the tenant's budget and the operator's cap. A cap always stops.

    If the tenant's budget is lower and has no hard stop, its notices are sent as usual, and the cap stops at its own
    amount (`watched`).
    """
    if cap is None:
        return budget
    as_budget = Budget(
        project_id=cap.project_id, currency=cap.currency, micros=cap.micros, hard_stop=True,
        notice_seconds=cap.notice_seconds,
    )  # fmt: skip
    if budget is None or cap.micros <= budget.micros:
        return replace(as_budget, levels=budget.levels) if budget else as_budget
    return budget


def watched(budget: Budget | None, cap: Cap | None) -> list[Budget]:
    """What to check: the limit that applies, and the cap if a lower budget does not stop."""
    rules = ruling(budget, cap)
    if rules is None:
        return []
    behind = ruling(None, cap) if not rules.hard_stop else None
    return [rules, replace(behind, levels=())] if behind else [rules]


def decide(budget: Budget, purse: Purse, told: Told, *, now_us: int) -> Decision:
    limit, spent, rate = purse.limit_micros, purse.spent_micros, purse.micros_per_hour
    reached = tuple(
        level for level in budget.levels if spent * 100 >= level * limit and level not in told.levels
    )
    left = max(0, limit - purse.committed_micros)
    if not budget.hard_stop or (rate <= 0 and left):
        return Decision(levels=reached)
    left_us = left * HOUR_US // rate if left else 0  # nothing is left: stop also what is away or starting
    is_valid = told.announced_us is not None and limit <= told.announced_limit_micros
    announces = not is_valid and left_us <= max(budget.notice_seconds * 1_000_000, 2 * LOOK_US)
    was_announced = is_valid and told.announced_us != now_us
    return Decision(
        levels=reached,
        announces=announces,
        stops=was_announced and left_us <= LOOK_US,
        stop_at_us=now_us + left_us,
    )


def is_spent(purse: Purse) -> bool:
    """If it does, nothing new starts, with or without a hard stop."""
    return purse.spent_micros >= purse.limit_micros


def lasts(purse: Purse, needed_micros: int) -> bool:
    """Whether the rest pays for this much more."""
    return purse.committed_micros + needed_micros <= purse.limit_micros
