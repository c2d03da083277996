"""What guests use, from the engine's list of instances with their states."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from teraflock.drivers.lxd import guest
from teraflock.fleet.telemetry.model import GuestCounters, HostReading
from teraflock.host.readings import card_readings


def reading(host: str, found: Iterable[Mapping[str, Any]], now: datetime) -> HostReading:
    """`found` is the list of instances with recursion 2: one request, however many guests there are."""
    guests = (counters(each) for each in found if guest.ID in each["config"] and each["status"] == "Running")
    return HostReading(host=host, now=now, cards=card_readings(), guests=tuple(guests))


def counters(found: Mapping[str, Any]) -> GuestCounters:
    """The engine leaves out what it cannot read. A guest that is just stopping has no state."""
    state = found.get("state") or {}
    network = ((state.get("network") or {}).get("eth0") or {}).get("counters") or {}
    disk = (state.get("disk") or {}).get("root") or {}
    return GuestCounters(
        instance_id=str(found["config"][guest.ID]),
        cpu_nanoseconds=_count(state.get("cpu"), "usage"),
        ram_used_bytes=_count(state.get("memory"), "usage"),
        disk_used_bytes=_count(disk, "usage"),
        received_bytes=_count(network, "bytes_received"),
        sent_bytes=_count(network, "bytes_sent"),
    )


def _count(part: Mapping[str, Any] | None, name: str) -> int | None:
    """-1 means that the engine cannot count it."""
    value = (part or {}).get(name)
    return int(value) if isinstance(value, int) and value >= 0 else None
