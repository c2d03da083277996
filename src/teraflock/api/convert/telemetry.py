"""Readings on the wire."""

from teraflock.fleet.telemetry.model import CardReading, GuestReading, LastOfHost, throttle_names
from teraflock.instance.telemetry.model import InstanceNow, ReadingHistory
from teraflock.wire.telemetry import (
    CardReadingAnswer,
    GuestReadingAnswer,
    HostReadingAnswer,
    InstanceReadingAnswer,
    ReadingsAnswer,
    SeriesAnswer,
)


def host_reading_answer(found: LastOfHost) -> HostReadingAnswer:
    return HostReadingAnswer(
        host_id=found.host_id,
        host=found.host,
        at=found.reading.at,
        simulated=found.reading.simulated,
        clock_off_seconds=found.reading.clock_off_seconds,
        cards=tuple(map(_card, found.reading.cards)),
        lost=found.reading.lost,
        instances=tuple(map(_guest, found.reading.guests)),
    )


def instance_reading_answer(found: InstanceNow) -> InstanceReadingAnswer:
    return InstanceReadingAnswer(
        instance_id=found.placed.id,
        name=found.placed.name,
        at=found.at,
        simulated=found.simulated,
        vcpus=found.placed.vcpus,
        ram_bytes=found.placed.ram_bytes,
        disk_bytes=found.placed.disk_bytes,
        usage=_guest(found.guest),
        cards=tuple(map(_card, found.cards)),
    )


def history_answer(found: ReadingHistory) -> ReadingsAnswer:
    series = (
        SeriesAnswer(slot=each.slot, instance_id=each.instance_id, times=each.times, values=each.values)
        for each in found.series
    )
    return ReadingsAnswer(
        period=found.period,
        step_seconds=found.step_seconds,
        until=found.until,
        simulated=found.simulated,
        series=tuple(series),
    )


def _card(card: CardReading) -> CardReadingAnswer:
    same = {name: getattr(card, name) for name in _CARD}
    return CardReadingAnswer(**same, throttle_reasons=throttle_names(card.throttle_reasons))


def _guest(guest: GuestReading) -> GuestReadingAnswer:
    return GuestReadingAnswer(**{name: getattr(guest, name) for name in GuestReadingAnswer.__struct_fields__})


_CARD = tuple(name for name in CardReadingAnswer.__struct_fields__ if name != "throttle_reasons")
