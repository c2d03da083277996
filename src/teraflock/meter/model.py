"""What an instance holds, the changes its events tell of, and the intervals between them."""

import msgspec

from teraflock.base.size import Size
from teraflock.instance.states import Phase


class Holding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that a price may depend on, or a bill is sorted by. Two equal holdings are one interval."""

    size: Size = Size()
    snapshots_bytes: int = 0
    mode: str = "on-demand"
    """`on-demand` or `spot`; months and years are bought apart, see bill/purchase."""
    host: str = ""
    region: str = ""
    name: str = ""
    member: str = ""
    labels: str = "{}"
    """A JSON object, as text: nothing here looks into it."""


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event of an instance, as far as the meter cares."""

    instance_id: str
    project_id: str
    sequence: int
    generation: int
    at_us: int
    phase: Phase
    held: Holding
    asked_at_us: int | None = None
    """When the tenant asked for what is now done."""
    last_seen_us: int | None = None
    """When the host was last seen, where it was lost."""


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """What is held since a change, and still."""

    sequence: int
    generation: int
    from_us: int
    run_us: int | None
    """When the run began; None: it only keeps its disk."""
    run_sequence: int | None
    """Of the change that began it: where clocks stand still, two runs may begin at one time."""
    held: Holding


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """Where one instance stands."""

    instance_id: str
    project_id: str
    sequence: int = 0
    at_us: int = 0
    """When the last change took effect."""
    phase: Phase = Phase.QUEUED
    open: Open | None = None


class Interval(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    instance_id: str
    sequence: int
    """Of the change that opened it."""
    revision: int = 0
    generation: int
    project_id: str
    from_us: int
    until_us: int
    run_us: int | None
    ends_run: bool = False
    house_fault: bool = False
    """The run was ended by the loss of its host, not by the tenant."""
    held: Holding


class MeterStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one change does: the meter from then on, and the interval it closes, if any."""

    meter: Meter
    closed: Interval | None = None
    cut_us: int | None = None
    """The run ended at this time, behind which it has intervals closed by other changes: they are to be cut back."""
