"""Readings on the wire."""

from teraflock.base.filling import filled
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
    return filled(
        HostReadingAnswer,
        found.reading,
        host_id=found.host_id,
        host=found.host,
        cards=tuple(map(_card, found.reading.cards)),
        instances=tuple(map(_guest, found.reading.guests)),
    )


def instance_reading_answer(found: InstanceNow) -> InstanceReadingAnswer:
    return filled(
        InstanceReadingAnswer,
        found.placed,
        instance_id=found.placed.id,
        at=found.at,
        simulated=found.simulated,
        usage=_guest(found.guest),
        cards=tuple(map(_card, found.cards)),
    )


def history_answer(found: ReadingHistory) -> ReadingsAnswer:
    series = (filled(SeriesAnswer, each) for each in found.series)
    return filled(ReadingsAnswer, found, series=tuple(series))


def _card(card: CardReading) -> CardReadingAnswer:
    return filled(CardReadingAnswer, card, throttle_reasons=throttle_names(card.throttle_reasons))


def _guest(guest: GuestReading) -> GuestReadingAnswer:
    return filled(GuestReadingAnswer, guest)
