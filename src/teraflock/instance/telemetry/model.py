"""Readings of instances, and histories of hosts and instances."""

from datetime import datetime

import msgspec

from teraflock.fleet.model import HostId
from teraflock.fleet.telemetry.model import CardReading, GuestReading, ReadingPeriod, ReadingSeries


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A running instance: where it is, and what it may use."""

    id: str
    name: str
    host_id: HostId
    vcpus: int
    ram_bytes: int
    disk_bytes: int


class InstanceNow(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of an instance."""

    placed: Placed
    at: datetime | None
    """None: not read yet."""
    simulated: bool
    guest: GuestReading
    cards: tuple[CardReading, ...]
    """The cards that it held."""


class ReadingHistory(msgspec.Struct, frozen=True, kw_only=True):
    period: ReadingPeriod
    step_seconds: int
    until: datetime
    simulated: bool
    series: tuple[ReadingSeries, ...]
