"""Credits on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Micros


class CreditRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    micros: Micros
    reason: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\u0000-\u001f]+$(?!\n)")]
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None


class CreditAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    reason: str
    currency: str
    micros: int
    left_micros: int
    starts_at: datetime
    expires_at: datetime | None
    is_expired: bool


class CreditList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[CreditAnswer, ...]
