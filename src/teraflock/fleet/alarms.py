"""Warnings about hosts for the operator. Pure."""

from typing import Final

import msgspec

from teraflock.fleet.model import DiskLimits, Host, HostReport

FILL_PERCENTS: Final = (80, 90, 95)


class Alarm(msgspec.Struct, frozen=True):
    kind: str
    details: dict[str, str | int | float | bool | None]
    sentence: str


def fill_level(used_bytes: int, total_bytes: int) -> int:
    """The highest of `FILL_PERCENTS` that is reached, or 0."""
    reached = [level for level in FILL_PERCENTS if total_bytes and used_bytes * 100 >= level * total_bytes]
    return max(reached, default=0)


def alarms(before: Host, now: HostReport) -> list[Alarm]:
    """What became worse since the last report, or better again."""
    found = []
    level = fill_level(now.disk_used_bytes, now.disk_bytes)
    if level > fill_level(before.disk_used_bytes, before.disk_bytes):
        percent = now.disk_used_bytes * 100 // now.disk_bytes
        sentence = f"the disk pool of {now.name} is {percent} % full"
        found.append(
            Alarm("host.disk-filling", {"host": now.name, "percent": percent, "level": level}, sentence)
        )
    if now.disk_limits != before.disk_limits:
        sentence = _LIMITS[now.disk_limits].format(now.name)
        found.append(Alarm("host.disk-limits", {"host": now.name, "limits": now.disk_limits.value}, sentence))
    return found


_LIMITS: Final = {
    DiskLimits.HOLD: "disk limits on {} are enforced again",
    DiskLimits.LOST: "disk limits on {} are not enforced: the kernel is counting the contents of all disks again",
    DiskLimits.OFF: "disk limits on {} are not enforced: quotas are switched off in the pool",
}
