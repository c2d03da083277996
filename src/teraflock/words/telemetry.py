"""Readings as text: the tables of `tera top` and the small charts of `tera host show`."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.base.quantities import bytes_text, count_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import SIMULATED

if TYPE_CHECKING:
    from teraflock.wire.host import HostCostAnswer
    from teraflock.wire.telemetry import (
        CardReadingAnswer,
        HostReadingAnswer,
        InstanceReadingAnswer,
        ReadingsAnswer,
    )

BARS: Final = "▁▂▃▄▅▆▇█"
IDLE_HOSTS_MAX: Final = 5
IDLE_PERCENT_MAX: Final = 5
"""A card below this does nothing: a display or a probe uses as much."""


class CardRow(msgspec.Struct, frozen=True):
    """One line of the operator's table: a card, or a host without cards."""

    host: "HostReadingAnswer"
    card: "CardReadingAnswer | None"
    holder: str = ""
    """The name of the instance, if it is known."""


def card_rows(hosts: Sequence["HostReadingAnswer"]) -> list[CardRow]:
    return [
        CardRow(host, card, card.instance_id if card else "")
        for host in hosts
        for card in host.cards or (None,)
    ]


HOSTS: "Fields[CardRow]" = (
    Field("HOST", lambda each: each.host.host, flexible=True),
    Field("CARD", lambda each: each.card.slot if each.card else "no cards", flexible=True),
    Field("GPU", lambda each: _card(each, _percent, "utilisation_percent"), right=True),
    Field("MEMORY", lambda each: memory_text(each.card) if each.card else "", right=True, worth=8),
    Field("POWER", lambda each: _card(each, _watts, "power_milliwatts"), right=True, worth=7),
    Field("TEMP", lambda each: _card(each, _celsius, "temperature_celsius"), right=True, worth=7),
    Field("CLOCK", lambda each: _card(each, _mhz, "sm_clock_mhz"), right=True, worth=4),
    Field("ECC", lambda each: _card(each, str, "ecc_uncorrected"), right=True, worth=3),
    Field("XID", lambda each: _card(each, _nonzero, "xid"), right=True, worth=5),
    Field("THROTTLED", lambda each: ", ".join(each.card.throttle_reasons) if each.card else "", worth=4),
    Field("INSTANCE", lambda each: each.holder or "free", flexible=True, worth=6),
    Field("MODEL", lambda each: each.card.name if each.card else "", flexible=True, worth=2),
)

INSTANCES: "Fields[InstanceReadingAnswer]" = (
    Field("INSTANCE", lambda each: each.name, flexible=True),
    Field("CPU", lambda each: _cpu(each), right=True),
    Field("RAM", lambda each: _part(each.usage.ram_used_bytes, each.ram_bytes), right=True),
    Field("DISK", lambda each: _part(each.usage.disk_used_bytes, each.disk_bytes), right=True, worth=5),
    Field("IN", lambda each: _rate(each.usage.received_bytes_per_second), right=True, worth=4),
    Field("OUT", lambda each: _rate(each.usage.sent_bytes_per_second), right=True, worth=4),
    Field("GPUS", lambda each: str(len(each.cards) or ""), right=True, worth=6),
    Field("GPU", lambda each: _mean(each.cards), right=True, worth=8),
    Field("GPU MEMORY", lambda each: _memory(each.cards), right=True, worth=7),
    Field("POWER", lambda each: _power(each.cards), right=True, worth=3),
    Field("TEMP", lambda each: _hottest(each.cards), right=True, worth=3),
)


class HostLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What the cards of a host do, in a few numbers. None: cannot be read."""

    percent: int | None
    """The mean utilisation."""
    watts: int | None
    celsius: int | None
    """Of the hottest card."""
    lost: int


def load_of(host: "HostReadingAnswer") -> HostLoad:
    percents = [card.utilisation_percent for card in host.cards if card.utilisation_percent is not None]
    watts = [card.power_milliwatts for card in host.cards if card.power_milliwatts is not None]
    degrees = [card.temperature_celsius for card in host.cards if card.temperature_celsius is not None]
    return HostLoad(
        percent=sum(percents) // len(percents) if percents else None,
        watts=sum(watts) // 1000 if watts else None,
        celsius=max(degrees, default=None),
        lost=len(host.lost),
    )


def summary_text(hosts: Sequence["HostReadingAnswer"]) -> str:
    """`6 hosts, 32 cards: 4 busy, 28 idle, 8 held, 10 kW`."""
    cards = [card for host in hosts for card in host.cards if "/" not in card.slot]
    busy = sum((card.utilisation_percent or 0) >= IDLE_PERCENT_MAX for card in cards)
    watts = sum(card.power_milliwatts or 0 for card in cards) / 1000
    held = sum(bool(card.instance_id) for card in cards)
    mark = f" {SIMULATED}" if any(host.simulated for host in hosts) else ""
    lost = sum(len(host.lost) for host in hosts)
    return (
        f"{count_text(len(hosts), 'host')}, {count_text(len(cards), 'card')}: {busy} busy, {held} held, {watts:,.0f} W"
        f"{f', {lost} LOST' if lost else ''}{mark}"
    )


def idle_text(hosts: Sequence["HostReadingAnswer"], costs: Sequence["HostCostAnswer"], now: datetime) -> str:
    """`Idle now: 4 cards of lab2, 1 of lab3. They cost 3.2 USD per hour`. Empty: no card is idle.

    A card costs its part of what its host costs. Hosts without a recorded cost have none here.
    """
    rates = {
        each.host_id: each for each in costs if each.starts_at <= now
    }  # a later entry replaces an earlier one
    idle: list[str] = []
    micros: dict[str, float] = {}
    for host in hosts:
        cards = [card for card in host.cards if card.utilisation_percent is not None]
        count = sum((card.utilisation_percent or 0) < IDLE_PERCENT_MAX for card in cards)
        if count:
            idle.append(f"{count} {'of ' if idle else 'cards of '}{host.host}")
        rate = rates.get(host.host_id)
        if count and rate and rate.micros_per_hour:
            micros[rate.currency] = micros.get(rate.currency, 0) + rate.micros_per_hour * count / len(cards)
    if not idle:
        return ""
    more = f", {len(idle) - IDLE_HOSTS_MAX} more hosts" if len(idle) > IDLE_HOSTS_MAX else ""
    amounts = " and ".join(f"{amount / 10**6:.4g} {currency}" for currency, amount in micros.items())
    price = f". They cost {amounts} per hour" if amounts else ""
    return f"Idle now: {', '.join(idle[:IDLE_HOSTS_MAX])}{more}{price}"


def memory_text(card: "CardReadingAnswer") -> str:
    return _part(card.memory_used_bytes, card.memory_bytes)


def chart_facts(history: "ReadingsAnswer", width: int) -> Iterator[tuple[str, str]]:
    """The utilisation of each card in the period as a line of bars, from the oldest to the newest."""
    by_slot: dict[str, dict[int, int]] = {}
    for series in history.series:
        values = series.values.get("utilisation_percent", ()) if series.slot else ()
        points = by_slot.setdefault(series.slot, {})
        points.update({t: v for t, v in zip(series.times, values, strict=False) if v is not None})
    until = int(history.until.timestamp())
    for slot, points in sorted(by_slot.items()):
        if slot and points:
            mean = sum(points.values()) / len(points)
            yield slot, f"{bars(points, until, history, width)} {mean:.0f} % mean"


def bars(points: dict[int, int], until: int, history: "ReadingsAnswer", width: int) -> str:
    """Each bar is the mean of its part of the period, on a scale to 100. A part without readings is a space."""
    seconds = {"hour": 3600, "day": 86_400, "month": 30 * 86_400}[history.period]
    parts: list[list[int]] = [[] for _ in range(width)]
    for t, value in points.items():
        place = (t - (until - seconds)) * width // seconds
        parts[min(max(place, 0), width - 1)].append(value)
    return "".join(_bar(sum(part) / len(part)) if part else " " for part in parts)


def _bar(percent: float) -> str:
    return BARS[min(len(BARS) - 1, int(percent * len(BARS) / 100))]


def _card(row: CardRow, text: object, name: str) -> str:
    value = getattr(row.card, name, None)
    return text(value) if callable(text) and value is not None else "-" if row.card else ""


def _percent(value: int) -> str:
    return f"{value} %"


def _watts(value: int) -> str:
    return f"{value / 1000:.0f} W"


def _celsius(value: int) -> str:
    return f"{value} °C"


def _mhz(value: int) -> str:
    return f"{value} MHz"


def _nonzero(value: int) -> str:
    return str(value) if value else ""


def _part(used: int | None, whole: int | None) -> str:
    return "-" if used is None or whole is None else f"{bytes_text(used)}/{bytes_text(whole)}"


def _rate(value: int | None) -> str:
    return "-" if value is None else f"{bytes_text(value)}/s"


def _cpu(each: "InstanceReadingAnswer") -> str:
    used = each.usage.cpu_millicores
    return "-" if used is None else f"{used / 1000:.2f}/{each.vcpus}"


def _mean(cards: Sequence["CardReadingAnswer"]) -> str:
    known = [card.utilisation_percent for card in cards if card.utilisation_percent is not None]
    return f"{sum(known) / len(known):.0f} %" if known else "-" if cards else ""


def _memory(cards: Sequence["CardReadingAnswer"]) -> str:
    if not cards:
        return ""
    return _part(
        sum(card.memory_used_bytes or 0 for card in cards), sum(card.memory_bytes or 0 for card in cards)
    )


def _power(cards: Sequence["CardReadingAnswer"]) -> str:
    known = [card.power_milliwatts for card in cards if card.power_milliwatts is not None]
    return _watts(sum(known)) if known else ""


def _hottest(cards: Sequence["CardReadingAnswer"]) -> str:
    known = [card.temperature_celsius for card in cards if card.temperature_celsius is not None]
    return _celsius(max(known)) if known else ""
