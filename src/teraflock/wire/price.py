"""Prices and the price book on the wire.

Amounts are integers in millionths of `currency`. They are never rounded on the way to a client.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

BOOK_CHARACTERS_MAX = 1 << 20


class BookRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=BOOK_CHARACTERS_MAX)]
    """The price book as YAML; see docs/bill.md."""
    name: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\u0000-\u001f]+$(?!\n)")] = (
        "prices.yaml"
    )
    """The name of the file, for error messages."""


class UnitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    """The id of a GPU model, or `vcpu`, `ram`, `disk`, `snapshot`, `image`, `data`, `address`, `egress`."""
    place: str
    """Where the price applies: `region NAME` or `host NAME`. Empty: everywhere."""
    on_demand_micros_per_hour: int | None
    """Null for `egress`, which is not charged by time."""
    on_demand_micros_per_month: int
    """The price of 730 hours. For `egress`, the price of each GB sent."""
    monthly_micros: int | None
    """The price of a month that is paid ahead. Null: the discount applies."""
    spot_micros_per_hour: int | None


class PricesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    currency: str
    starts_at: datetime
    ends_at: datetime | None
    minimum_seconds: int
    monthly_percent_off: float
    spot_percent_off: float
    reserved_percent_off: Mapping[str, float]
    """Discount in percent by number of years."""
    upfront_percent_off: float
    long_term_percent_off: Mapping[str, float]
    """Discount in percent by days of a run."""
    refund_percent: float
    tax_name: str
    tax_percent: float
    items: tuple[UnitAnswer, ...]


class PeriodsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The periods of the new price book."""

    items: tuple[PricesAnswer, ...]
