"""Values of charges: parts of an interval and their amounts."""

from typing import NamedTuple

import msgspec

from teraflock.base.size import Size
from teraflock.meter.model import Holding
from teraflock.tenant.model import ProjectId


class Amounts(NamedTuple):
    """In micro-units of one currency."""

    gpu: int = 0
    vcpu: int = 0
    ram: int = 0
    disk: int = 0
    snapshot: int = 0
    egress: int = 0
    minimum: int = 0
    """What a short run costs beyond its time."""
    fee: int = 0

    def negated(self) -> "Amounts":
        return Amounts(*(-micros for micros in self))


class ChargeSlice(msgspec.Struct, frozen=True, order=True, gc=False):
    """A part of an interval during which day, prices and discount stay the same."""

    from_us: int
    until_us: int
    currency: str
    """Empty if there was no price."""
    amounts: Amounts
    list_micros: int
    """The amount at on-demand prices, without discounts."""
    egress_bytes: int
    version: int
    """Of the price book. 0: there was no price."""
    discount_bp: int
    purchase_id: str
    """The purchase that covers it, at least in part. Empty: none."""


class Covered(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an instance that a purchase pays for, and the time for which it does."""

    purchase_id: str
    from_us: int
    until_us: int
    size: Size


class Subject(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a charge is for: an interval of an instance, or a term of a purchase."""

    id: str
    generation: int
    sequence: int
    project_id: ProjectId
    held: Holding


class Charge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    subject: Subject
    segment: int
    kind: str
    """`usage`, `fee`, `refund` or `reversal`."""
    reverses: int = -1
    slice: ChargeSlice

    @property
    def micros(self) -> int:
        return sum(self.slice.amounts)
