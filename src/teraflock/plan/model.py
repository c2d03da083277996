"""The values of a plan.

Those that a plan makes thousands of are kept from the garbage collector, which finds nothing there: none can be part of
a cycle.
"""

from typing import Final, Literal, get_args

import msgspec

from teraflock.offer.model import Mode, Offer, Shape

Sort = Literal["cost", "time", "risk"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)

Use = Literal["job", "hours", "monthly"]
"""A job that runs once to its end; a machine for so many hours; a machine for so many hours of every month."""


class Hours(msgspec.Struct, frozen=True, gc=False):
    """How long, as an interval: one time in ten it is below `p10`, one in ten above `p90`."""

    p10: float
    p50: float
    p90: float


class Misfit(msgspec.Struct, frozen=True, gc=False):
    """Why something cannot run there. The code is stable; the reason is for people, and ends without a period."""

    code: str
    reason: str
    by: float = 0.0
    """How far it missed, in units of what it missed by: for finding the nearest miss."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for, apart from the work itself."""

    use: Use
    hours: float = 0.0
    """For `hours` and `monthly`; a job's hours come from its estimate."""
    gpus_min: int = 1
    gpus_max: int | None = None
    """Of all instances together, as is `memory_total_bytes_min`."""
    instances_min: int = 1
    instances_max: int = 1
    """How many machines of one offer may work together."""
    memory_total_bytes_min: int | None = None
    memory_bytes_min: int | None = None
    modes: tuple[Mode, ...] = ()
    providers: tuple[str, ...] = ()
    deadline_hours: float | None = None
    budget_micros: int | None = None
    """In `currency`."""
    currency: str = "USD"
    disk_gb: float = 0.0
    egress_gb: float = 0.0
    egress_micros_per_gb: int = 0
    """What the user says a GB out costs, in `currency`; no price list of it is known here."""
    sort: Sort = "cost"


class Part(msgspec.Struct, frozen=True):
    """One addend of a cost, and the arithmetic behind it."""

    what: str
    micros: int
    because: str


class Cost(msgspec.Struct, frozen=True, gc=False):
    expected_micros: int
    low_micros: int
    """At the `p10` of the hours; as expected until the choice is itemised, as is `high_micros`, at their `p90`."""
    high_micros: int
    currency: str


class Choice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    shape: Shape
    instances: int = 1
    """Machines of this shape that work together."""
    hours: Hours
    cost: Cost
    parts: tuple[Part, ...]
    """Empty until the choice is itemised: of thousands, ten are shown."""
    interruptions: float
    """How often it is expected to be taken away before the end."""
    pareto: bool = False
    """No other choice is both cheaper and faster."""
    offer: Offer | None = None
    """The cheapest of the shape; filled in once the choice is made."""

    @property
    def gpu_count(self) -> int:
        """Of all its instances."""
        return self.instances * (self.shape.gpu_count or 0)


class Rejection(msgspec.Struct, frozen=True, gc=False):
    shape: Shape
    code: str
    reason: str
    by: float = 0.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    choices: tuple[Choice, ...]
    rejected: tuple[Rejection, ...]
    warnings: tuple[str, ...]
    without_gpu: int = 0
    """Offers without a GPU: counted, and not looked at one by one."""

    def counts(self) -> dict[str, int]:
        """How many offers each reason ruled out, the commonest first."""
        counts: dict[str, int] = {"no_gpu": self.without_gpu}
        for rejection in self.rejected:
            counts[rejection.code] = counts.get(rejection.code, 0) + rejection.shape.offers
        return {code: count for code, count in sorted(counts.items(), key=lambda each: -each[1]) if count}
