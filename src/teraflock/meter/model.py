"""Values of the meter: what an instance holds, the changes that its events record, and the intervals between them."""

import msgspec

from teraflock.base.size import Size
from teraflock.instance.states import Phase
from teraflock.tenant.model import ProjectId


class Holding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything that a price can depend on or a bill can be grouped by. An interval has one holding."""

    size: Size = Size()
    snapshots_bytes: int = 0
    mode: str = "on-demand"
    """`on-demand`, `spot` or `bid`. Months and years are purchases, see bill/purchase."""
    card_micros_per_hour: int = 0
    """With mode `bid`: what each card costs, as the auction decided, in the first currency of the price book."""
    host: str = ""
    region: str = ""
    name: str = ""
    member: str = ""
    labels: str = "{}"
    """A JSON object as text. The meter does not read it."""


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event of an instance, reduced to what the meter needs."""

    instance_id: str
    project_id: ProjectId
    sequence: int
    generation: int
    at_us: int
    phase: Phase
    held: Holding
    asked_at_us: int | None = None
    """When the tenant asked for this change."""
    last_seen_us: int | None = None
    """When the host was last seen, if it was lost."""
    preempted: bool = False
    """It stopped because others needed its cards."""


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance holds since a change."""

    sequence: int
    generation: int
    from_us: int
    run_us: int | None
    """When the run began. None: the instance is stopped and only keeps its disk."""
    run_sequence: int | None
    """The sequence of the change that began the run. If the clock stands still, two runs can begin at the same time."""
    held: Holding


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the meter for one instance."""

    instance_id: str
    project_id: ProjectId
    sequence: int = 0
    at_us: int = 0
    """When the last change took effect."""
    phase: Phase = Phase.QUEUED
    open: Open | None = None


class Interval(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    instance_id: str
    sequence: int
    """The sequence of the change that opened the interval."""
    revision: int = 0
    generation: int
    project_id: ProjectId
    from_us: int
    until_us: int
    run_us: int | None
    ends_run: bool = False
    operator_fault: bool = False
    """The run ended because its host was lost or its cards were taken, not because the tenant stopped it."""
    held: Holding


class MeterStep(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one change: the new state of the meter, and the interval that the change closes, if any."""

    meter: Meter
    closed: Interval | None = None
    cut_us: int | None = None
    """The run ended at this time. Intervals of the run that were closed later must be cut back to it."""
