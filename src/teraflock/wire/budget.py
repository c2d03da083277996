"""Budgets as the API has them, and the operator's cap."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta


class BudgetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    micros: Annotated[int, Meta(ge=0, le=10**15)]
    """For a calendar month, UTC, in the currency the project pays in."""
    levels: Annotated[tuple[Annotated[int, Meta(ge=1, le=1000)], ...], Meta(max_length=20)] = (50, 80, 100)
    hard_stop: bool = False
    notice_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 3600


class BudgetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    micros: int
    """What rules: the lower one of the project's own budget and the operator's cap."""
    own_micros: int | None = None
    """The project's own budget; null: there is only a cap."""
    cap_micros: int | None = None
    """The operator's cap, which the project cannot change; null: there is none."""
    levels: tuple[int, ...]
    hard_stop: bool
    notice_seconds: int
    month: str
    spent_micros: int
    micros_per_hour: int
    is_spent: bool
    """Nothing new can be launched."""
    levels_reached: tuple[int, ...] = ()
    """Those that were told this month, by an event `budget.reached` each."""
    stops_at: datetime | None = None
    """When all is stopped, if what is held stays as it is; null without a hard stop, or where the month ends before."""
    announced_at: datetime | None = None
    """When that was announced, by an event `budget.ending`."""
    stopped_at: datetime | None = None


class CapRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's cap on a project's month."""

    micros: Annotated[int, Meta(ge=0, le=10**15)]
    notice_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 3600
