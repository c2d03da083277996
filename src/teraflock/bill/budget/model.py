"""A budget, and what was told about it."""

import msgspec


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    project_id: str
    currency: str
    micros: int
    """For a calendar month, UTC."""
    levels: tuple[int, ...] = (50, 80, 100)
    """Per cent at which it is told."""
    hard_stop: bool = False
    notice_seconds: int = 3600
    """How long before the hard stop it is announced."""


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's own limit on a project's month, beside the tenant's budget: the lower one rules.

    The tenant sees it and cannot change it. All is stopped when it is reached."""

    project_id: str
    currency: str
    micros: int
    notice_seconds: int = 3600


class Purse(msgspec.Struct, frozen=True, kw_only=True):
    """What is there to spend: a budget, or what was paid ahead."""

    limit_micros: int
    spent_micros: int
    committed_micros: int
    """What it comes to if all that runs stops now: a short run is charged for the minimum."""
    micros_per_hour: int


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What was told already this month."""

    levels: frozenset[int] = frozenset()
    announced_us: int | None = None
    announced_limit_micros: int = 0
    """What there was to spend then: where there is more now, the end has to be announced anew."""
    stopped_us: int | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    levels: tuple[int, ...] = ()
    """Newly reached."""
    announces: bool = False
    stops: bool = False
    stop_at_us: int | None = None
    """When it will be spent, at the present rate."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A budget, where it stands, and what was told about it."""

    budget: Budget
    """What rules: the tenant's own, or the operator's cap as one with a hard stop."""
    cap_micros: int | None = None
    """The operator's cap; None: there is none."""
    own_micros: int | None = None
    """The tenant's own budget; None: there is only a cap."""
    month: str
    spent_micros: int
    micros_per_hour: int
    levels_reached: tuple[int, ...] = ()
    stop_at_us: int | None = None
    """When the hard stop comes at the present rate; None: there is none, or it does not come this month."""
    announced_us: int | None = None
    stopped_us: int | None = None
