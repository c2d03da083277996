"""Explained placements on the wire."""

from collections.abc import Mapping

import msgspec

from teraflock.wire.shape import ShapeAnswer


class PlacedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    site: str
    region: str
    zone: str
    """The label `zone` of the host. Empty: it has none."""
    instances: int


class RejectedHostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    site: str
    region: str
    zone: str
    reason: str
    details: str
    """How much it has free. Empty for tenants."""


class PlacementAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a launch would run now, and why not elsewhere. Nothing is launched or reserved."""

    shape: ShapeAnswer
    instances: int
    fits: bool
    why: str
    """Why these hosts. Empty: no hosts were chosen."""
    chosen: tuple[PlacedAnswer, ...]
    others: tuple[str, ...]
    """The next best hosts that also have room, best first. At most 20."""
    others_total: int
    rejected: tuple[RejectedHostAnswer, ...]
    """At most 100, by name."""
    rejected_total: int
    reasons: Mapping[str, int]
    """How many hosts were rejected for each reason."""
