"""What to tell about a budget, and when to stop. No clock, no SQL.

What holds:
- a level is told once a month;
- a hard stop comes at the last step before the budget would be passed, and never in the step in which it was announced:
  so where rates do not rise, a budget is not passed by more than what is held costs for one step;
- once stopped, what is started again is stopped in the next step: the announcement stands for the month.
"""

from teraflock.bill.budget.model import Budget, Decision, Purse, Told

HOUR_US = 3600 * 1_000_000


def decide(budget: Budget, purse: Purse, told: Told, *, now_us: int, step_us: int) -> Decision:
    limit, spent, rate = purse.limit_micros, purse.spent_micros, purse.micros_per_hour
    reached = tuple(
        level for level in budget.levels if spent * 100 >= level * limit and level not in told.levels
    )
    if not budget.hard_stop or rate <= 0:
        return Decision(levels=reached)
    left_us = max(0, limit - spent) * HOUR_US // rate
    announces = told.announced_us is None and left_us <= budget.notice_seconds * 1_000_000
    was_announced = told.announced_us is not None and told.announced_us < now_us
    return Decision(
        levels=reached,
        announces=announces,
        stops=was_announced and left_us <= step_us,
        stop_at_us=now_us + left_us,
    )


def allows_launch(purse: Purse) -> bool:
    """Whether anything new may be started: not once all is spent, hard stop or not."""
    return purse.spent_micros < purse.limit_micros
