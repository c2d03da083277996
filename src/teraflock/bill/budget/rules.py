"""What to tell about a budget, when to stop, and what may still be started. No clock, no SQL.

A metering step is `STEP_SECONDS`, and budgets are looked at twice in it. What holds:
- a level is told once a month;
- a hard stop is announced in a look before the one that stops, however late it shows: that is what the second look in
  a step is for. Where it was announced in time, it comes in the last look before the budget would be passed;
- so from when a budget is passed, or set to what is spent already, what runs is asked to stop within one step, and a
  run is charged until it was asked;
- an announcement stands while there is not more to spend than when it was made: what is started again is stopped by
  the next look;
- what cannot last for a step, with the minimum that it is charged for, is not started.
"""

from typing import Final

from msgspec.structs import replace

from teraflock.bill.budget.model import Budget, Cap, Decision, Purse, Told

HOUR_US: Final = 3600 * 1_000_000
STEP_SECONDS: Final = 60
"""By what this costs, and no more, may a budget with a hard stop be passed."""
LOOK_SECONDS: Final = STEP_SECONDS // 2
LOOK_US: Final = LOOK_SECONDS * 1_000_000


def ruling(budget: Budget | None, cap: Cap | None) -> Budget | None:
    """What rules of a tenant's budget and the operator's cap: the lower one; a cap always stops.

    Where the tenant's soft budget is the lower one, it is told about as always, and the cap stops at its own amount
    (`watched`).
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
    """What has to be looked at: the one that rules, and the cap behind a lower budget that does not stop."""
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
    left_us = (
        left * HOUR_US // rate if left else 0
    )  # with nothing left, what is away or to start is stopped too
    stands = told.announced_us is not None and limit <= told.announced_limit_micros
    announces = not stands and left_us <= max(budget.notice_seconds * 1_000_000, 2 * LOOK_US)
    was_announced = stands and told.announced_us != now_us
    return Decision(
        levels=reached,
        announces=announces,
        stops=was_announced and left_us <= LOOK_US,
        stop_at_us=now_us + left_us,
    )


def is_spent(purse: Purse) -> bool:
    """Then nothing new is started, hard stop or not."""
    return purse.spent_micros >= purse.limit_micros


def lasts(purse: Purse, needed_micros: int) -> bool:
    """Whether what is left pays for this much more."""
    return purse.committed_micros + needed_micros <= purse.limit_micros
