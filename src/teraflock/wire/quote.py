"""Quotes as the API has them: what a launch would cost."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref
from teraflock.wire.instance import ModeWord
from teraflock.wire.shape import ShapeRequest


class QuoteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    shape: ShapeRequest = ShapeRequest()
    mode: ModeWord = "on-demand"
    instances: Annotated[int, Meta(ge=1, le=100)] = 1
    until: Annotated[datetime, Meta(tz=True)] | None = None
    """A deadline: what it costs up to then is told too. With a zone."""
    host: str = ""
    """On this host only: its prices and those of its region count."""
    site: Ref = ""
    type: Ref = ""
    """A machine type to rent at `site`, instead of a shape."""
    region: Ref = ""


class QuoteAnswer(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    instances: int
    mode: str
    gpu: str
    gpus: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    """Of each instance; the amounts are of all of them."""
    micros_per_hour: int
    micros_per_month: int
    micros_stopped_per_month: int
    egress_micros_per_gb: int
    """Each GB of 2**30 bytes that leaves the house."""
    snapshot_micros_per_gb: int
    """Each GB that snapshots keep, a month."""
    region: str
    """Where prices depend on the place: the region of the dearest it may come to, which this is the price of."""
    micros_until: int | None
    minimum_micros: int
    monthly_micros: int
    reserved_micros: Mapping[str, int]
    """A month of it, where so many years are reserved."""
    version: int
    is_priced: bool
