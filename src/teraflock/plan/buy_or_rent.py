"""Buy or rent: compare an own host with the cheapest offers of the same GPU model, by utilisation.

Pure. An own host costs capital, hosting and staff every month, and power while it is in use. A machine rented by the
hour costs money only while it is in use. A monthly or reserved machine costs the same every month.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from teraflock.base.filling import filled
from teraflock.base.money import HOURS_PER_MONTH
from teraflock.catalog.providers import is_market
from teraflock.plan.owned import Server, upkeep

CURVE_STEPS: Final = 20

Verdict = Literal["buy above", "buy below", "always buy", "always rent"]


class Rent(msgspec.Struct, frozen=True, kw_only=True):
    """The cheapest machines of one purchase mode that together have as many GPUs as the own host, or more."""

    mode: str
    provider: str
    instance_type: str
    gpu: str
    gpu_count: int
    """GPUs of one machine."""
    machines: int
    micros_per_month: int
    """All machines together, for 730 hours."""
    flat: bool
    """Whether a month costs the same at any utilisation."""
    as_of: str
    flags: tuple[str, ...] = ()
    """What is uncertain, as for offers."""
    quoted_currency: str = ""
    """The currency of the source."""


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    rent: Rent
    verdict: Verdict
    utilisation: float | None
    """The utilisation at which both cost the same. `None` if there is none between 0 and 1."""


class CostCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Monthly cost at each utilisation from 0 to 1."""

    label: str
    micros: tuple[int, ...]


class MachineRent(msgspec.Struct, frozen=True, kw_only=True):
    """A whole machine that can be rented, with its price for 730 hours."""

    provider: str
    instance_type: str
    gpu: str
    gpu_count: int
    micros_per_month: int
    as_of: str
    flags: tuple[str, ...] = ()
    currency: str = ""
    """The currency of the source, not of `micros_per_month`."""


def cheapest_rent(gpus: int, mode: str, machines: Iterable[MachineRent]) -> Rent | None:
    """Find the cheapest machines with that many GPUs together. `machines` are in the order of their price per GPU."""
    best: Rent | None = None
    for each in machines:
        if best and each.micros_per_month * gpus >= best.micros_per_month * each.gpu_count:
            break  # even without unused GPUs, no further machine is cheaper
        count = -(-gpus // each.gpu_count)
        if count > 1 and is_market(each.provider):  # a machine of a marketplace exists once
            continue
        if best is None or count * each.micros_per_month < best.micros_per_month:
            best = filled(
                Rent,
                each,
                mode=mode,
                machines=count,
                micros_per_month=count * each.micros_per_month,
                flat=mode in ("monthly", "reserved"),
                quoted_currency=each.currency,
            )
    return best


def own_month(server: Server, utilisation: float) -> int:
    cost = upkeep(server)
    return cost.fixed_micros + round(cost.power_micros_per_hour * HOURS_PER_MONTH * utilisation)


def rent_month(rent: Rent, utilisation: float) -> int:
    return rent.micros_per_month if rent.flat else round(rent.micros_per_month * utilisation)


def break_even(server: Server, rent: Rent) -> BreakEven:
    """Find the break-even point. Both costs are linear in the utilisation, so they cross at most once."""
    cost = upkeep(server)
    fixed_gap = cost.fixed_micros - (rent.micros_per_month if rent.flat else 0)
    own_slope = cost.power_micros_per_hour * HOURS_PER_MONTH
    slope_gap = (0 if rent.flat else rent.micros_per_month) - own_slope
    at = fixed_gap / slope_gap if slope_gap else None
    if at is not None and 0 < at < 1:
        return BreakEven(rent=rent, verdict="buy above" if slope_gap > 0 else "buy below", utilisation=at)
    cheaper = own_month(server, 0.5) < rent_month(rent, 0.5)
    return BreakEven(rent=rent, verdict="always buy" if cheaper else "always rent", utilisation=None)


def curves(server: Server, rents: Sequence[Rent]) -> list[CostCurve]:
    steps = [step / CURVE_STEPS for step in range(CURVE_STEPS + 1)]
    own = CostCurve(label=f"own {server.name}", micros=tuple(own_month(server, each) for each in steps))
    rented = [
        CostCurve(
            label=f"{rent.mode}, {rent.provider}", micros=tuple(rent_month(rent, each) for each in steps)
        )
        for rent in rents
    ]
    return [own, *rented]
