"""Quotes on the wire: the price of an instance before it is launched."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref
from teraflock.wire.instance import ModeWord
from teraflock.wire.shape import ShapeRequest, SizeAnswer


class QuoteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    shape: ShapeRequest = ShapeRequest()
    mode: ModeWord = "on-demand"
    instances: Annotated[int, Meta(ge=1, le=100)] = 1
    until: Annotated[datetime, Meta(tz=True)] | None = None
    """A deadline with a time zone. The response then includes the price until then."""
    host: str = ""
    """Use the prices of this host and its region."""
    site: Ref = ""
    type: Ref = ""
    """A machine type to rent at `site`, instead of a shape."""
    region: Ref = ""
    provider: Ref = ""
    """Rent at this provider, with the cheapest account that the project may use. Needs `type`, or a GPU in `shape`."""


class QuoteAnswer(SizeAnswer, frozen=True, kw_only=True):
    """The size is that of each instance. The amounts are for all instances."""

    currency: str
    instances: int
    mode: str
    micros_per_hour: int
    micros_per_month: int
    micros_stopped_per_month: int
    egress_micros_per_gb: int
    """Per GB (2**30 bytes) sent to the internet."""
    snapshot_micros_per_gb: int
    """Per GB of snapshots and month."""
    region: str
    """If prices differ by region: the most expensive region that could run it. The amounts are for this region."""
    micros_until: int | None
    minimum_micros: int
    monthly_micros: int
    reserved_micros: Mapping[str, int]
    """The price per month, by number of reserved years."""
    version: int
    is_priced: bool
