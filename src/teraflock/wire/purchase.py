"""Purchases and purchase limits on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.word import closed


class PurchaseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    instance: Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\u0000-\u001f]+$(?!\n)")]
    years: Annotated[int, Meta(ge=0, le=3)] = 0
    """0: by the month. 1 to 3: reserved for this many years."""
    upfront: bool = False
    renews: bool = True


class PreviewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a purchase would cost now."""

    currency: str
    fee_micros: int
    """Charged immediately."""
    month_micros: int
    committed_micros: int
    """The total with all future instalments. It counts against a purchase limit."""
    starts_at: datetime
    paid_until: datetime


class LimitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    micros: Annotated[int, Meta(ge=0, le=10**15)]
    """The most the member can commit to by purchases in a calendar month (UTC)."""


class LimitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    member_id: str
    member: str
    currency: str
    micros: int
    month: str
    spent_micros: int


class LimitList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[LimitAnswer, ...]


class RenewalChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    renews: bool


class TermAnswer(msgspec.Struct, frozen=True, kw_only=True):
    kind: Annotated[str, closed("bought", "renewed", "continued", "upgraded", "ended")]
    starts_at: datetime
    ends_at: datetime
    fee_micros: int
    month_micros: int


class PurchaseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    instance_id: str
    instance: str = ""
    """The name of the instance."""
    mode: str
    years: int
    upfront: bool
    renews: bool
    ended: bool
    currency: str
    paid_until: datetime
    terms: tuple[TermAnswer, ...]


class PurchaseList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[PurchaseAnswer, ...]
