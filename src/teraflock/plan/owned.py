"""Own hosts in a plan: what an hour of their GPUs costs.

The user records the purchase price, years of use, and the cost of power, hosting and staff of each server. Spread over
the hours in use, they give a cost per hour that compares with offers. The list is a JSON file in the user's folder.
"""

from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.exchange import Rates
from teraflock.base.money import HOURS_PER_MONTH, decimal_text, divided
from teraflock.catalog.names import resolve
from teraflock.offer.model import Offer, Shape

FILE_NAME: Final = "servers.json"
OLD_FILE_NAME: Final = "hosts.json"
"""Read where there is no file with the new name."""
MONTHS_PER_YEAR: Final = 12
PROVIDER: Final = "own"
OWN_SOURCE: Final = "own-servers"


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One own host and what it costs. Amounts are micro-units of `currency`."""

    name: str
    gpu: str
    """Any name of the GPU model."""
    gpu_count: int
    currency: str = "USD"
    purchase_micros: int
    years: float
    """Years of use until the host is sold or scrapped."""
    resale_micros: int = 0
    watts: float = 0.0
    """Power of the whole host while in use."""
    power_micros_per_kwh: int = 0
    hosting_micros_per_month: int = 0
    staff_micros_per_month: int = 0
    utilisation: float = 1.0
    """The fraction of all hours in which the host is in use. At 0.5, fixed costs per hour of use are twice as high."""
    vcpus: float | None = None
    ram_bytes: int | None = None
    as_of: str = ""


class Upkeep(msgspec.Struct, frozen=True):
    """The fixed monthly cost of an own host, and the cost per hour of use."""

    capital_micros: int
    hosting_micros: int
    staff_micros: int
    power_micros_per_hour: int

    @property
    def fixed_micros(self) -> int:
        return self.capital_micros + self.hosting_micros + self.staff_micros


def upkeep(server: Server) -> Upkeep:
    months = max(1, round(server.years * MONTHS_PER_YEAR))
    return Upkeep(
        capital_micros=divided(server.purchase_micros - server.resale_micros, months),
        hosting_micros=server.hosting_micros_per_month,
        staff_micros=server.staff_micros_per_month,
        power_micros_per_hour=round(server.watts / 1000 * server.power_micros_per_kwh),
    )


def micros_per_month(server: Server) -> int:
    """Return the cost of 730 hours of use: fixed costs divided by utilisation, plus power."""
    cost = upkeep(server)
    return round(cost.fixed_micros / server.utilisation) + cost.power_micros_per_hour * HOURS_PER_MONTH


def explained(server: Server) -> str:
    cost = upkeep(server)
    fixed = ", ".join(
        f"{what} {decimal_text(micros, 2)}"
        for what, micros in (
            ("capital", cost.capital_micros),
            ("hosting", cost.hosting_micros),
            ("staff", cost.staff_micros),
        )
    )
    power = decimal_text(cost.power_micros_per_hour, 4)
    return (
        f"{fixed} {server.currency} per month at {server.utilisation:.0%} of {HOURS_PER_MONTH} hours, plus power at"
        f" {power} {server.currency} per hour"
    )


def check(server: Server, rates: Rates) -> None:
    """Raise `BadInput` for impossible values."""
    wrong = {
        "an unknown GPU": resolve(server.gpu) is None,
        "no GPU": server.gpu_count < 1,
        "a currency without an exchange rate": not rates.knows(server.currency),
        "a negative amount": min(
            server.purchase_micros, server.resale_micros, server.hosting_micros_per_month
        )
        < 0
        or min(server.staff_micros_per_month, server.power_micros_per_kwh) < 0
        or server.watts < 0,
        "years of use outside 0 to 100": not 0 < server.years <= 100,
        "a utilisation outside 0 to 1": not 0 < server.utilisation <= 1,
        "a resale price above its purchase price": server.resale_micros > server.purchase_micros,
    }
    for fault, is_so in wrong.items():
        if is_so:
            raise BadInput(f"The host `{server.name}` has {fault}")


def shape_of(server: Server) -> Shape:
    found = resolve(server.gpu)
    assert found is not None, "hosts are checked when they are read"
    return Shape(
        provider=PROVIDER,
        instance_type=server.name,
        kind="gpu" if found.card else "other",
        gpu=found.id,
        gpu_name=server.gpu,
        gpu_count=server.gpu_count,
        gpu_share=1.0,
        gpu_memory_bytes=found.memory_bytes,
        vcpus=server.vcpus,
        ram_bytes=server.ram_bytes,
        mode="owned",
        term_months=None,
        standing="priced",
        currency=server.currency,
        doubtful=False,
        price_micros_per_month=micros_per_month(server),
        offers=1,
        as_of=server.as_of,
    )


def offer_of(server: Server) -> Offer:
    shape = shape_of(server)
    return Offer(
        source=OWN_SOURCE,
        provider=PROVIDER,
        kind=shape.kind,
        standing="priced",
        instance_type=server.name,
        gpu=shape.gpu,
        gpu_name=server.gpu,
        gpu_count=server.gpu_count,
        gpu_memory_bytes=shape.gpu_memory_bytes,
        vcpus=server.vcpus,
        ram_bytes=server.ram_bytes,
        mode="owned",
        currency=server.currency,
        price_micros_per_month=shape.price_micros_per_month,
        since=server.as_of,
        as_of=server.as_of,
        note=explained(server),
    )
