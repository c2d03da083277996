"""Budgets as text."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from teraflock.wire.budget import BudgetAnswer
from teraflock.words.budget import end_text

NOW = datetime(2026, 11, 18, 17, 0, tzinfo=UTC)
ENDING = BudgetAnswer(
    currency="USD",
    micros=5_000_000,
    levels=(50, 100),
    hard_stop=True,
    notice_seconds=3600,
    month="2026-11",
    spent_micros=4_900_000,
    micros_per_hour=200_000,
    is_spent=False,
    stops_at=NOW,
    announced_at=NOW,
)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (replace(ENDING, announced_at=None), ""),
        (
            ENDING,
            "The budget of 5.00 USD will be spent at 2026-11-18 17:00:00, when all instances are stopped",
        ),
        (
            replace(ENDING, spent_micros=611_000_000, is_spent=True),
            "The budget of 5.00 USD for 2026-11 is spent: all instances are being stopped",
        ),
        (
            replace(ENDING, is_spent=True, stopped_at=NOW),
            "The budget of 5.00 USD for 2026-11 is spent: all instances were stopped 2026-11-18 17:00:00",
        ),
    ],
    ids=["not announced", "ending", "spent", "stopped"],
)
def test_the_end_of_a_budget_is_in_the_right_tense(budget: BudgetAnswer, text: str) -> None:
    assert end_text(budget) == text
