"""Warnings about hosts for the operator. The rules are pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.fleet.model import DiskLimits, Host, HostReport
from teraflock.fleet.telemetry.model import CardReading, LastReading

FILL_PERCENTS: Final = (80, 90, 95)
CLOCK_OFF_SECONDS: Final = 5
ALERTS: Final = (
    "host.disk-filling", "host.disk-limits", "host.card-lost", "host.card-back", "host.xid", "host.ecc", "host.hot",
    "host.cool", "host.clock-off", "host.clock-right",
)  # fmt: skip
"""The kinds of events that are alerts. The webhook gets these."""


Details = dict[str, str | int | float | bool | None]
_LIMITS: Final = {
    DiskLimits.HOLD: "disk limits on {} are enforced again",
    DiskLimits.LOST: "disk limits on {} are not enforced: the kernel is counting the contents of all disks again",
    DiskLimits.OFF: "disk limits on {} are not enforced: quotas are switched off in the pool",
}


class Alarm(msgspec.Struct, frozen=True):
    kind: str
    details: Details
    sentence: str


ALARMS_PER_HOUR: Final = 200
"""Of one host. A host that fails in all ways at once has fewer; one that invents failures does not fill the database,
the log or the webhook."""


class AlarmBudget:
    """Counts the alarms of each host in this hour, in memory."""

    def __init__(self) -> None:
        self._spent: dict[str, tuple[datetime, int]] = {}

    def allowed(self, host: str, found: Sequence[Alarm], now: datetime) -> Sequence[Alarm]:
        """The first of these alarms, as many as the host may still raise."""
        if not found:
            return found
        hour = now.replace(minute=0, second=0, microsecond=0)
        began, count = self._spent.get(host, (hour, 0))
        count = count if began == hour else 0
        self._spent[host] = (hour, min(count + len(found), ALARMS_PER_HOUR))
        return found[: ALARMS_PER_HOUR - count]


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


def reading_alarms(host: str, before: LastReading | None, now: LastReading) -> list[Alarm]:
    """What became worse since the last reading, or better again. Each change is reported once."""
    past = {card.slot: card for card in before.cards} if before else {}
    found = _lost_and_back(host, before, now) if before else []
    for card in now.cards:
        found += _card_alarms(host, past.get(card.slot), card)
    was_off = before is not None and abs(before.clock_off_seconds) > CLOCK_OFF_SECONDS
    if (is_off := abs(now.clock_off_seconds) > CLOCK_OFF_SECONDS) != was_off:
        details: Details = {"host": host, "seconds": now.clock_off_seconds}
        sentence = (
            f"the clock of {host} is {now.clock_off_seconds} s off"
            if is_off
            else f"the clock of {host} is right"
        )
        found.append(Alarm("host.clock-off" if is_off else "host.clock-right", details, sentence))
    return found


def _lost_and_back(host: str, before: LastReading, now: LastReading) -> list[Alarm]:
    """Whole cards only: slices come and go."""
    old = {card.slot for card in before.cards if card.healthy and "/" not in card.slot}
    new = {card.slot for card in now.cards if card.healthy and "/" not in card.slot}
    lost = [_alarm("host.card-lost", host, slot, "does not answer") for slot in sorted(old - new)]
    known = {card.slot for card in before.cards} | {*before.lost}
    return lost + [
        _alarm("host.card-back", host, slot, "answers again") for slot in sorted((new - old) & known)
    ]


def _card_alarms(host: str, before: CardReading | None, card: CardReading) -> list[Alarm]:
    found = []
    if card.xid and (before is None or before.xid != card.xid):
        text = f"logged an error (Xid {card.xid})"
        found.append(_alarm("host.xid", host, card.slot, text, xid=card.xid))
    errors = card.ecc_uncorrected or 0
    if before is not None and errors > (before.ecc_uncorrected or 0):
        text = f"has {errors} uncorrectable memory errors"
        found.append(_alarm("host.ecc", host, card.slot, text, errors=errors))
    celsius, hot = card.temperature_celsius, card.hot
    if celsius is not None and hot != (before is not None and before.hot):
        text = f"is at {celsius} °C"
        found.append(_alarm("host.hot" if hot else "host.cool", host, card.slot, text, celsius=celsius))
    return found


def _alarm(kind: str, host: str, slot: str, text: str, **more: int) -> Alarm:
    return Alarm(kind, {"host": host, "card": slot, **more}, f"the card {slot} of {host} {text}")
