"""Bills on the wire: the total of a month, its lines, current prices, and verification.

Amounts are integers in millionths of `currency`. They are never rounded on the way to a client.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from teraflock.wire.word import closed

ByWord = Literal["instance", "gpu", "user", "label"]


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


class LineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    kind: Annotated[str, closed("usage", "fee", "refund", "reversal")]
    subject: str
    """The id of the instance or the purchase."""
    name: str
    starts_at: datetime
    ends_at: datetime
    gpu: str
    gpus: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
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
