"""Bills on the wire: the total of a month, its lines, current prices, and verification.

Amounts are integers in millionths of `currency`. They are never rounded on the way to a client.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from teraflock.wire.shape import SizeAnswer
from teraflock.wire.word import closed

ByWord = Literal["instance", "gpu", "user", "label", "day"]
MarginByWord = Literal["organisation", "project", "instance", "host"]


class GroupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    lines: int
    micros: int


class BillAnswer(msgspec.Struct, frozen=True, kw_only=True):
    project_id: str
    month: str
    currency: str
    micros: int
    """Charged so far."""
    unbooked_micros: int
    """Usage that is not charged yet. It is charged when it ends, or at the end of the day."""
    list_micros: int
    """What the charged usage would have cost on demand, without discounts."""
    lines: int
    by: ByWord
    groups: tuple[GroupAnswer, ...]
    micros_per_hour: int = 0
    """What everything that is in use now costs per hour."""
    forecast_micros: int = 0
    """The total of the month if everything keeps running as now. For a past month, its total."""


class LineAnswer(SizeAnswer, frozen=True, kw_only=True):
    number: int
    kind: Annotated[str, closed("usage", "fee", "refund", "reversal")]
    subject: str
    """The id of the instance or the purchase."""
    name: str
    starts_at: datetime
    ends_at: datetime
    egress_bytes: int
    mode: str
    purchase_id: str
    discount_percent: float
    version: int
    member: str
    labels: Mapping[str, str]
    currency: str
    micros: int
    parts: Mapping[str, int]
    """The amount of each component that costs something."""
    list_micros: int


class LinePage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[LineAnswer, ...]
    next: str | None


class CostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    instance_id: str
    name: str
    currency: str
    micros_per_hour: int
    micros: int
    """The total so far, over all months."""
    is_priced: bool
    paid_until: datetime | None = None
    """Until when it is paid ahead. Null: it is not paid ahead."""
    idle_gpus: int = 0
    """The number of its GPUs that are idle, if the host can measure that."""
    idle_since: datetime | None = None


class CostPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[CostAnswer, ...]
    next: str | None


class FaultAnswer(msgspec.Struct, frozen=True, kw_only=True):
    where: str
    what: str


class VerdictAnswer(msgspec.Struct, frozen=True, kw_only=True):
    sound: bool
    instances: int
    charges: int
    entries: int
    changes_to_come: int
    faults: tuple[FaultAnswer, ...]
    faults_beyond: int


class MarginRowAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """Empty: hosts that nobody used, or all rows beyond the first thousand."""
    name: str
    currency: str
    """Of the price book; another where the price book of that day has no exchange rate."""
    revenue_micros: int
    """Charges, before credits and tax."""
    cost_micros: int
    """What the hosts cost us."""
    idle_micros: int
    """The part of the cost that served nobody."""
    margin_micros: int


class MarginAnswer(msgspec.Struct, frozen=True, kw_only=True):
    month: str
    by: MarginByWord
    rows: tuple[MarginRowAnswer, ...]
    totals: tuple[MarginRowAnswer, ...]
    """One for each currency."""
    hosts_without_cost: int
    """Hosts with revenue whose cost is not known: their margin is too high."""
