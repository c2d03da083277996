"""Prices as the API has them: the price book and what each thing costs.

Amounts are integers of millionths of `currency`; nothing is rounded on the way to a client.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

BOOK_CHARACTERS_MAX = 1 << 20


class BookRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=BOOK_CHARACTERS_MAX)]
    """YAML; see docs/bill.md."""
    name: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\u0000-\u001f]+$(?!\n)")] = (
        "prices.yaml"
    )
    """What errors call it."""


class UnitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    """A card's id, or vcpu, ram, disk, snapshot, egress."""
    place: str
    """Empty: everywhere; else `region NAME` or `host NAME`."""
    on_demand_micros_per_hour: int
    on_demand_micros_per_month: int
    """730 hours. What leaves the house costs this much a GB, whenever it does."""
    monthly_micros: int | None
    """Of a month that is bought ahead; null: the discount counts."""
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
    """By years."""
    upfront_percent_off: float
    long_term_percent_off: Mapping[str, float]
    """By days of a run."""
    refund_percent: float
    tax_name: str
    tax_percent: float
    items: tuple[UnitAnswer, ...]


class PeriodsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The periods of a book that was taken."""

    items: tuple[PricesAnswer, ...]
