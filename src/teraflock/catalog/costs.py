"""What providers charge besides the machine: disks, outgoing traffic and public addresses.

Invariant: a price has a source, a date and its evidence; what is not in the table is unknown and never counts as free.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

import msgspec

from teraflock.base.money import parse_micros
from teraflock.catalog.cards import data_path
from teraflock.catalog.providers import CONFIRMED, Evidence

Extra = Literal["disk", "egress", "address"]

EXTRA_WORDS: Final[dict[Extra, str]] = {
    "disk": "disk", "egress": "outgoing traffic", "address": "public address",
}  # fmt: skip


class ExtraPrice(msgspec.Struct, frozen=True, kw_only=True):
    price: str
    currency: str = "USD"
    stopped: str | None = None
    """Of a disk: the price while the machine is stopped, if it differs."""
    prorated: bool = False
    """Of a disk: whether it is billed for the time it exists, and not for whole months."""
    free_gb: float = 0.0
    """Of outgoing traffic: free every month."""
    what: str
    as_of: str
    evidence: Evidence
    source: str

    @property
    def micros(self) -> int:
        return parse_micros(self.price)

    @property
    def stopped_micros(self) -> int:
        return self.micros if self.stopped is None else parse_micros(self.stopped)

    @property
    def because(self) -> str:
        sure = "" if self.evidence in CONFIRMED else ", not confirmed"
        return f"{self.what}; price of {self.as_of}{sure}"


class ProviderCosts(msgspec.Struct, frozen=True, kw_only=True):
    """The known prices of a provider. None means unknown, not free. Clients of older versions read it too."""

    stopped_machine: str = ""
    """Why a stopped machine still costs as much as a running one, or cannot be stopped. Empty if it is not known to."""
    disk: ExtraPrice | None = None
    egress: ExtraPrice | None = None
    address: ExtraPrice | None = None


UNKNOWN: Final = ProviderCosts()


def costs_of(provider: str) -> ProviderCosts:
    return _costs().get(provider, UNKNOWN)


@cache
def _costs() -> Mapping[str, ProviderCosts]:
    import tomllib  # imported here because most commands need no costs

    with open(data_path("costs.toml"), "rb") as lines:  # noqa: PTH123, see data_path
        return msgspec.convert(tomllib.load(lines), dict[str, ProviderCosts])
