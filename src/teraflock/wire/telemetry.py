"""Readings on the wire. Null means that a value cannot be read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from teraflock.wire.word import closed


class CardReadingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One card, or one slice of a card."""

    slot: str
    """PCI address. A MIG slice has its UUID after it."""
    name: str
    uuid: str
    instance_id: str
    """The instance that held it. Empty: none."""
    healthy: bool
    utilisation_percent: int | None
    memory_utilisation_percent: int | None
    memory_bytes: int | None
    memory_used_bytes: int | None
    power_milliwatts: int | None
    energy_millijoules: int | None
    """Since the driver was loaded."""
    temperature_celsius: int | None
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    throttle_reasons: tuple[str, ...]
    """Why it runs below its highest clocks, such as `power cap` or `hardware thermal`."""
    ecc_corrected: int | None
    ecc_uncorrected: int | None
    xid: int | None
    """The last error code in the kernel log. 0: none."""
    nvlink_links: int | None
    """Active NVLink links."""
    nvlink_sent_bytes: int | None
    nvlink_received_bytes: int | None


class GuestReadingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance uses. Rates are over the time since the reading before."""

    instance_id: str
    cpu_millicores: int | None
    """1000: one processor, all the time."""
    ram_used_bytes: int | None
    disk_used_bytes: int | None
    received_bytes_per_second: int | None
    sent_bytes_per_second: int | None


class HostReadingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of a host."""

    host_id: str
    host: str
    at: datetime
    simulated: bool
    """The values are invented."""
    clock_off_seconds: int
    """How far the host's clock is ahead of the server's."""
    cards: tuple[CardReadingAnswer, ...]
    lost: tuple[str, ...]
    """The slots of cards that stopped answering."""
    instances: tuple[GuestReadingAnswer, ...]


class HostReadingList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[HostReadingAnswer, ...]


class InstanceReadingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of an instance."""

    instance_id: str
    name: str
    at: datetime | None
    """Null: not read yet."""
    simulated: bool
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    usage: GuestReadingAnswer
    cards: tuple[CardReadingAnswer, ...]


class InstanceReadingList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[InstanceReadingAnswer, ...]


class SeriesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Readings of one card or one instance over time."""

    slot: str
    """The card. Empty: the instance itself."""
    instance_id: str
    """For a card: the instance that held it. Empty: none."""
    times: tuple[int, ...]
    """Seconds since 1970, UTC."""
    values: Mapping[str, tuple[int | None, ...]]
    """For each field of a reading, a value for each time. `throttle_reasons` are NVML's bits."""


class ReadingsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    period: Annotated[str, closed("hour", "day", "month")]
    step_seconds: int
    """Between two points. Values of longer steps are means; counters have their last value."""
    until: datetime
    simulated: bool
    series: tuple[SeriesAnswer, ...]
