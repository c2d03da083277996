"""Budgets and the operator's cap on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta


class BudgetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    micros: Annotated[int, Meta(ge=0, le=10**15)]
    """The budget for a calendar month (UTC), in the project's currency."""
    levels: Annotated[tuple[Annotated[int, Meta(ge=1, le=1000)], ...], Meta(max_length=20)] = (50, 80, 100)
    hard_stop: bool = False
    notice_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 3600


class BudgetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    micros: int
    """The limit that applies: the lower of the project's own budget and the operator's cap."""
    own_micros: int | None = None
    """The project's own budget. Null: there is only a cap."""
    cap_micros: int | None = None
    """The operator's cap, which the project cannot change. Null: there is none."""
    levels: tuple[int, ...]
    hard_stop: bool
    notice_seconds: int
    month: str
    spent_micros: int
    micros_per_hour: int
    is_spent: bool
    """Whether the budget is spent. New launches are refused then."""
    levels_reached: tuple[int, ...] = ()
    """The levels reached this month. Each has an event `budget.reached`."""
    stops_at: datetime | None = None
    """When all instances will be stopped at the current rate. Null without a hard stop, or if the month ends first."""
    announced_at: datetime | None = None
    """When the stop was announced with an event `budget.ending`."""
    stopped_at: datetime | None = None


class CapRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's cap on a project's month."""

    micros: Annotated[int, Meta(ge=0, le=10**15)]
    notice_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 3600
