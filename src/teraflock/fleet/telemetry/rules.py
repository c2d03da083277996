"""Rules for readings: rates, samples, means over longer steps, and series. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import microseconds
from teraflock.fleet.telemetry.model import (
    CARD_FIELDS,
    GUEST_FIELDS,
    CardReading,
    GuestCounters,
    GuestReading,
    HostReading,
    LastReading,
    ReadingPeriod,
    ReadingSeries,
)
from teraflock.fleet.telemetry.packing import SAMPLES, Key, Pack, Record, fields_of

FINE_SECONDS: Final = 10
COARSE_SECONDS: Final = FINE_SECONDS * SAMPLES
"""A pack of fine samples becomes one coarse sample."""
KEPT: Final = {FINE_SECONDS: timedelta(days=1), COARSE_SECONDS: timedelta(days=30)}
PERIODS: Final = {
    ReadingPeriod.HOUR: (timedelta(hours=1), FINE_SECONDS, 1),
    ReadingPeriod.DAY: (timedelta(days=1), COARSE_SECONDS, 1),
    ReadingPeriod.MONTH: (timedelta(days=30), COARSE_SECONDS, SAMPLES),
}
"""For each period: its length, the step of its samples, and how many of them become one point."""
RATE_SECONDS_MAX: Final = 120.0
"""A rate over a longer time would hide what happened since."""
MICROS: Final = 1_000_000
HOT_CELSIUS: Final = 88
COOL_CELSIUS: Final = 80
"""A card is hot from the first on, until it is below the second: one alert, however the temperature wavers."""
LOST_MAX: Final = 64
_LAST: Final = frozenset(
    {
        "energy_millijoules", "ecc_corrected", "ecc_uncorrected", "xid", "nvlink_links", "nvlink_sent_bytes",
        "nvlink_received_bytes",
    }
)  # fmt: skip
"""Counters and states: a longer step has their last value."""
_BITS: Final = frozenset({"throttle_reasons"})

_card_values = attrgetter(*CARD_FIELDS)
_guest_values = attrgetter(*GUEST_FIELDS)


def pack_start_us(now: datetime, step_seconds: int) -> int:
    """When the pack begins that has the sample of this time."""
    length_us = step_seconds * SAMPLES * MICROS
    return microseconds(now) // length_us * length_us


def sample_number(now: datetime, step_seconds: int) -> int:
    return microseconds(now) // (step_seconds * MICROS) % SAMPLES


def last_reading(
    found: HostReading,
    before: LastReading | None,
    holders: Mapping[str, str],
    now: datetime,
    *,
    simulated: bool,
) -> LastReading:
    """What to store. `holders` are the instances that hold cards, by slot."""
    since = (now - before.at).total_seconds() if before else 0.0
    counted = {each.instance_id: each for each in before.counters} if before else {}
    seconds = since if 0 < since <= RATE_SECONDS_MAX else 0.0
    return LastReading(
        at=now,
        simulated=simulated,
        clock_off_seconds=round((found.now - now).total_seconds()),
        cards=_cards(found.cards, before, holders),
        lost=_lost(found.cards, before),
        guests=tuple(_rates(each, counted.get(each.instance_id), seconds) for each in found.guests),
        counters=found.guests,
    )


def _cards(
    found: Iterable[CardReading], before: LastReading | None, holders: Mapping[str, str]
) -> tuple[CardReading, ...]:
    past = {card.slot: card for card in before.cards} if before else {}
    return tuple(
        replace(
            card,
            instance_id=holders.get(card.slot, ""),
            hot=is_hot(past.get(card.slot), card.temperature_celsius),
        )
        for card in found
    )


def _lost(found: Iterable[CardReading], before: LastReading | None) -> tuple[str, ...]:
    """The slots of whole cards that were there once and are missing. Slices come and go."""
    known = {card.slot for card in before.cards if "/" not in card.slot} | {*before.lost} if before else set()
    return tuple(sorted(known - {card.slot for card in found}))[:LOST_MAX]


def is_hot(before: CardReading | None, celsius: int | None) -> bool:
    """Whether a card is hot. Without a temperature it stays as it was."""
    was_hot = before is not None and before.hot
    return was_hot if celsius is None else celsius >= (COOL_CELSIUS if was_hot else HOT_CELSIUS)


def _rates(now: GuestCounters, before: GuestCounters | None, seconds: float) -> GuestReading:
    def rate(name: str, unit: float) -> int | None:
        new: int | None = getattr(now, name)
        old: int | None = getattr(before, name, None)
        if not seconds or new is None or old is None or new < old:  # less: the guest was started again
            return None
        return round((new - old) / unit / seconds)

    return GuestReading(
        instance_id=now.instance_id,
        cpu_millicores=rate("cpu_nanoseconds", MICROS),
        ram_used_bytes=now.ram_used_bytes,
        disk_used_bytes=now.disk_used_bytes,
        received_bytes_per_second=rate("received_bytes", 1),
        sent_bytes_per_second=rate("sent_bytes", 1),
    )


def sample_of(reading: LastReading) -> dict[Key, Record]:
    """The reading as records, by series."""
    cards = {(card.slot, card.instance_id): _card_values(card) for card in reading.cards}
    guests = {("", each.instance_id): _guest_values(each) for each in reading.guests}
    return {**cards, **guests}


def joined(pack: Pack) -> dict[Key, Record]:
    """All samples of a pack as one sample of a longer step."""
    return {key: _joined(fields_of(key), records) for key, records in pack.items() if records}


def _joined(fields: tuple[str, ...], records: Mapping[int, Record]) -> Record:
    rows = [records[number] for number in sorted(records)]
    return tuple(_one(name, [row[at] for row in rows]) for at, name in enumerate(fields))


def _one(name: str, values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if name in _LAST:
        return known[-1]
    if name in _BITS:
        bits = 0
        for value in known:
            bits |= value
        return bits
    return round(sum(known) / len(known))


def series_of(
    packs: Mapping[int, Pack], period: ReadingPeriod, until: datetime, *, instance: str = ""
) -> tuple[ReadingSeries, ...]:
    """The series of a period that ends at `until`. `packs` are by their start, in microseconds.

    `instance` leaves out everything that it did not hold at the time.
    """
    length, step_seconds, at_once = PERIODS[period]
    last = microseconds(until) // MICROS
    first = last - int(length.total_seconds())
    found: dict[Key, dict[int, Record]] = {}
    for start_us, pack in sorted(packs.items()):
        for key, records in pack.items():
            if instance and key[1] != instance:
                continue
            mine = found.setdefault(key, {})
            if at_once > 1:
                mine[start_us // MICROS] = _joined(fields_of(key), records)
            else:
                mine.update({start_us // MICROS + n * step_seconds: record for n, record in records.items()})
    within = {key: {t: row for t, row in rows.items() if first < t <= last} for key, rows in found.items()}
    return tuple(_series(key, rows) for key, rows in sorted(within.items()) if rows)


def _series(key: Key, rows: Mapping[int, Record]) -> ReadingSeries:
    times = tuple(sorted(rows))
    values = {name: tuple(rows[t][at] for t in times) for at, name in enumerate(fields_of(key))}
    return ReadingSeries(slot=key[0], instance_id=key[1], times=times, values=values)
