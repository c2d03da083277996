"""The values of a plan.

A plan creates thousands of some of them. These have `gc=False`, which is safe because none can be part of a cycle.
"""

from typing import Final, Literal, get_args

import msgspec

from teraflock.catalog.costs import Extra
from teraflock.catalog.places import NO_FILTER, PlaceFilter
from teraflock.offer.model import GpuPart, Mode, Offer, Shape

Sort = Literal["cost", "time", "risk"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)

Use = Literal["job", "hours", "monthly"]
"""A job that runs once to its end, a machine for a number of hours, or a machine for a number of hours per month."""


class Hours(msgspec.Struct, frozen=True, gc=False):
    """An estimated time. It is below `p10` in one of ten cases, and above `p90` in one of ten."""

    p10: float
    p50: float
    p90: float


class Misfit(msgspec.Struct, frozen=True, gc=False):
    """Why a shape was rejected. The code is stable; the reason is text without a final period."""

    code: str
    reason: str
    by: float = 0.0
    """By how much the shape missed, in the unit of `code`. Used to find the nearest miss."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for, except the workload."""

    use: Use
    hours: float = 0.0
    """Set for `hours` and `monthly`. The hours of a job come from its estimate."""
    cards: tuple[str, ...] = ()
    """Ids of the requested GPU models. Empty for any."""
    sources: tuple[str, ...] = ()
    """Names of imported catalogs. Empty for any."""
    gpus_min: int = 1
    gpus_max: int | None = None
    """Of all machines together, as is `memory_total_bytes_min`."""
    instances_min: int = 1
    instances_max: int = 1
    """The largest number of machines of one offer that may work together."""
    memory_total_bytes_min: int | None = None
    memory_bytes_min: int | None = None
    modes: tuple[Mode, ...] = ()
    providers: tuple[str, ...] = ()
    places: PlaceFilter = NO_FILTER
    newer_than: str = ""
    """Only prices that were confirmed on this date or later."""
    slices: bool = False
    """Whether parts of GPUs may be chosen."""
    parts: tuple[GpuPart, ...] = ()
    """The requested slices. Empty unless `--gpu` names slices."""
    deadline_hours: float | None = None
    budget_micros: int | None = None
    """In `currency`."""
    currency: str = "USD"
    disk_gb: float = 0.0
    disk_prices: tuple[tuple[str, int], ...] = ()
    """The user's prices per GB of disk and month, in `currency`, by provider. The provider "" stands for any other."""
    egress_gb: float = 0.0
    egress_micros_per_gb: int | None = None
    """The user's price per GB of outgoing traffic, in `currency`. Without it, the provider's price counts."""
    address: bool = False
    """Whether each machine needs a public address."""
    sort: Sort = "cost"

    def disk_micros_per_gb(self, provider: str) -> int | None:
        """Return the user's own price of a disk at a provider, if there is one."""
        prices = dict(self.disk_prices)
        return prices.get(provider, prices.get(""))


class CostPart(msgspec.Struct, frozen=True):
    """One part of a cost, with its arithmetic."""

    what: str
    micros: int
    because: str


class Cost(msgspec.Struct, frozen=True, gc=False):
    expected_micros: int
    low_micros: int
    """The cost at `p10` of the hours; `high_micros` at `p90`. Both equal the expected cost until it is itemised."""
    high_micros: int
    currency: str


class Choice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    shape: Shape
    instances: int = 1
    """The number of machines that work together."""
    hours: Hours
    cost: Cost
    parts: tuple[CostPart, ...]
    """Empty until the choice is itemised."""
    interruptions: float
    """The expected number of interruptions until the job ends, or in the given hours."""
    uncounted: tuple[Extra, ...] = ()
    """Requested costs that are not in `cost`, because the provider's price is not known."""
    pareto: bool = False
    """Whether no other choice is both cheaper and faster. Compares only choices with the same uncounted costs."""
    offer: Offer | None = None
    """The cheapest offer of the shape. Set after choosing."""

    @property
    def gpu_count(self) -> int:
        """Return the GPUs of all its machines."""
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
    """The number of offers without a GPU. They are not judged one by one."""

    def counts(self) -> dict[str, int]:
        """Count the rejected offers by reason, most frequent first."""
        counts: dict[str, int] = {"no_gpu": self.without_gpu}
        for rejection in self.rejected:
            counts[rejection.code] = counts.get(rejection.code, 0) + rejection.shape.offers
        return {code: count for code, count in sorted(counts.items(), key=lambda each: -each[1]) if count}


def reason_text(code: str) -> str:
    """`no_gpu` → `no GPU`."""
    return code.replace("_", " ").replace("gpu", "GPU")
