"""Values of runs: the places where a run may be, what it has to do by when, and where it is.

A *place* is one zone in one purchase mode. Places in the modes `on-demand` and `own` are *steady*: once a run is there,
nobody takes it away. Places in the mode `spot` can disappear at any time. Machines of a gang count as one place,
because providers take them back together.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

RunMode = Literal["spot", "on-demand", "own"]


class RunPlace(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    mode: RunMode
    price_micros_per_hour: int
    changeover_hours: float
    """Time from the decision to start here until the run makes progress: launch, setup, restore."""
    egress_micros: int = 0
    """Cost to bring the checkpoint here from another place."""

    @property
    def steady(self) -> bool:
        return self.mode != "spot"


class RunTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What must be done by when."""

    work_hours: float
    deadline_hours: float
    tick_hours: float
    """The longest time between two decisions."""
    steady_wait_hours: float = 0.0
    """How long a steady place may be refused. The guard keeps this much time in reserve."""


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is. `held` and `last` are positions in the list of places."""

    left_hours: float
    time_left_hours: float
    held: int | None = None
    overhead_hours: float = 0.0
    """How much of the changeover to `held` is left."""
    last: int | None = None
    """Where the newest checkpoint is."""


class Sight(msgspec.Struct, frozen=True):
    """Whether a place can be had now, and for how long this has been so."""

    up: bool
    age_hours: float


class NextPlace(msgspec.Struct, frozen=True):
    """The decision: be at this place until the next decision, or nowhere."""

    place: int | None
    because: str


def sights_of(series: Sequence[bool], tick_hours: float) -> tuple[Sight, ...]:
    """Return what is seen at each tick of a series. The age at the first tick is one tick."""
    found: list[Sight] = []
    age = 0
    for tick, up in enumerate(series):
        age = age + 1 if tick and up == series[tick - 1] else 1
        found.append(Sight(up, age * tick_hours))
    return tuple(found)


def gang(counts: Sequence[float], nodes: int = 1) -> tuple[bool, ...]:
    """Turn counts of available machines into the availability of all `nodes` machines together."""
    return tuple(count >= nodes for count in counts)
