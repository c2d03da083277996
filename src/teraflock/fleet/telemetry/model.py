"""Readings of a host's cards and instances: as an engine gives them, and as the database stores them.

None means not readable. The integer fields of `CardReading` and `GuestReading` are what is stored over time.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from teraflock.fleet.model import HostId


class CardReading(msgspec.Struct, frozen=True, kw_only=True):
    """One card, or one slice of a card, now."""

    slot: str
    """As in `GpuReport`."""
    name: str = ""
    uuid: str = ""
    memory_bytes: int | None = None
    healthy: bool = True
    instance_id: str = ""
    """The instance that held it. Empty: none, or it changed during the reading. The engine leaves it empty."""
    hot: bool = False
    """Set by the server, see `fleet/telemetry/rules.py`."""
    utilisation_percent: int | None = None
    memory_utilisation_percent: int | None = None
    memory_used_bytes: int | None = None
    power_milliwatts: int | None = None
    energy_millijoules: int | None = None
    """Since the driver was loaded."""
    temperature_celsius: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    throttle_reasons: int | None = None
    """Bits, as NVML defines them. See `THROTTLE_REASONS`."""
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    xid: int | None = None
    """The last error code in the kernel log. 0: none."""
    nvlink_links: int | None = None
    """Active links."""
    nvlink_sent_bytes: int | None = None
    nvlink_received_bytes: int | None = None
    """Since the driver was loaded."""


class GuestCounters(msgspec.Struct, frozen=True, kw_only=True):
    """One running guest now, as its engine counts."""

    instance_id: str
    cpu_nanoseconds: int | None = None
    ram_used_bytes: int | None = None
    disk_used_bytes: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None


class GuestReading(msgspec.Struct, frozen=True, kw_only=True):
    """One running guest: what it uses, with rates since the reading before."""

    instance_id: str
    cpu_millicores: int | None = None
    """1000: one processor, all the time."""
    ram_used_bytes: int | None = None
    disk_used_bytes: int | None = None
    received_bytes_per_second: int | None = None
    sent_bytes_per_second: int | None = None


class HostReading(msgspec.Struct, frozen=True, kw_only=True):
    """One host now, as its engine gives it."""

    host: str
    now: datetime
    """The host's own clock."""
    cards: tuple[CardReading, ...] = ()
    guests: tuple[GuestCounters, ...] = ()


class LastReading(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of a host, as it is stored."""

    at: datetime
    simulated: bool
    clock_off_seconds: int = 0
    """How far the host's clock is ahead of the server's."""
    cards: tuple[CardReading, ...] = ()
    lost: tuple[str, ...] = ()
    """The slots of cards that stopped answering, and have not come back."""
    guests: tuple[GuestReading, ...] = ()
    counters: tuple[GuestCounters, ...] = ()
    """For the rates of the next reading."""


class LastOfHost(msgspec.Struct, frozen=True, kw_only=True):
    host_id: HostId
    host: str
    reading: LastReading


class ReadingPeriod(StrEnum):
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class ReadingSeries(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of one card or one instance."""

    slot: str
    """Empty: the instance itself."""
    instance_id: str
    """For a card: the instance that held it, if any."""
    times: tuple[int, ...]
    """Seconds since 1970."""
    values: dict[str, tuple[int | None, ...]]
    """For each field, a value for each time."""


CARD_FIELDS: Final = CardReading.__struct_fields__[7:]
GUEST_FIELDS: Final = GuestReading.__struct_fields__[1:]

THROTTLE_REASONS: Final = {
    0x1: "idle",
    0x2: "clock setting",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clock",
}


def throttle_names(bits: int | None) -> tuple[str, ...]:
    """Why the card runs below its highest clocks. An idle card lowers them by itself, which is not a reason."""
    return tuple(name for bit, name in THROTTLE_REASONS.items() if (bits or 0) & bit and bit != 1)
