"""Values of budgets, and the notices about them."""

import msgspec

from teraflock.tenant.model import ProjectId


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    project_id: ProjectId
    currency: str
    micros: int
    """For a calendar month, UTC."""
    levels: tuple[int, ...] = (50, 80, 100)
    """The percentages at which a notice is sent."""
    hard_stop: bool = False
    notice_seconds: int = 3600
    """How long before a hard stop it is announced."""


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's limit for a project's month. It applies beside the tenant's budget, and the lower of both counts.

    The tenant sees it and cannot change it. Everything is stopped when it is reached.
    """

    project_id: ProjectId
    currency: str
    micros: int
    notice_seconds: int = 3600


class Purse(msgspec.Struct, frozen=True, kw_only=True):
    """What a project can spend: its budget, or its prepaid balance."""

    limit_micros: int
    spent_micros: int
    committed_micros: int
    """The amount if everything that runs stopped now: a short run is charged for the minimum."""
    micros_per_hour: int


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The notices that were sent this month."""

    levels: frozenset[int] = frozenset()
    announced_us: int | None = None
    announced_limit_micros: int = 0
    """What the project could spend then. If it is more now, the stop has to be announced again."""
    stopped_us: int | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    levels: tuple[int, ...] = ()
    """Newly reached."""
    announces: bool = False
    stops: bool = False
    stop_at_us: int | None = None
    """When the money will be spent, at the current rate."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A budget with what is spent of it, and the notices about it."""

    budget: Budget
    """What applies: the tenant's budget, or the operator's cap as a budget with a hard stop."""
    cap_micros: int | None = None
    """The operator's cap. None: there is none."""
    own_micros: int | None = None
    """The tenant's budget. None: there is only a cap."""
    month: str
    spent_micros: int
    micros_per_hour: int
    levels_reached: tuple[int, ...] = ()
    stop_at_us: int | None = None
    """When the hard stop comes at the current rate. None: there is none, or it does not come this month."""
    announced_us: int | None = None
    stopped_us: int | None = None
