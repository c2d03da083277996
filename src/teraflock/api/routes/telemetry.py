"""Readings: what cards and instances use, now and over time."""

from teraflock.api.call import Call
from teraflock.api.query import HostReadingsQuery, InProject, ReadingsInProject, ReadingsQuery
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.fleet.telemetry.model import (
    CardReading,
    GuestReading,
    LastOfHost,
    ReadingPeriod,
    throttle_names,
)
from teraflock.instance.telemetry.model import InstanceNow, ReadingHistory
from teraflock.tenant.rules import Permission
from teraflock.wire.telemetry import (
    CardReadingAnswer,
    GuestReadingAnswer,
    HostReadingAnswer,
    HostReadingList,
    InstanceReadingAnswer,
    InstanceReadingList,
    ReadingsAnswer,
    SeriesAnswer,
)

routes = Routes("readings", scope=Scope.INSTALLATION, read=Permission.HOST_READ)


@routes.get("/v1/host-readings")
def list_host_readings(call: Call, query: HostReadingsQuery) -> HostReadingList:
    """Get the last reading of own hosts: cards and instances. Default: all own hosts."""
    found = call.nouns.telemetry.last_of_hosts(query.host)
    return HostReadingList(items=tuple(map(host_reading_answer, found)))


@routes.get("/v1/hosts/{host}/readings")
def show_host_readings(call: Call, host: str, query: ReadingsQuery) -> ReadingsAnswer:
    """Get the readings of a host's cards and instances over an hour, a day or 30 days."""
    return history_answer(call.nouns.telemetry.of_host(host, ReadingPeriod(query.period), query.until))


@routes.get("/v1/instance-readings", scope=Scope.PROJECT, may=Permission.INSTANCE_READ)
def list_instance_readings(call: Call, query: InProject) -> InstanceReadingList:
    """Get the last reading of every running instance of a project, with its cards."""
    found = call.nouns.telemetry.last_of_instances(call.project.id)
    return InstanceReadingList(items=tuple(map(instance_reading_answer, found)))


@routes.get("/v1/instances/{instance}/readings", scope=Scope.PROJECT, may=Permission.INSTANCE_READ)
def show_instance_readings(call: Call, instance: str, query: ReadingsInProject) -> ReadingsAnswer:
    """Get the readings of an instance and its cards over an hour, a day or 30 days.

    The readings of a card begin when the instance got it.
    """
    found = call.nouns.telemetry.of_instance(
        call.project.id, instance, ReadingPeriod(query.period), query.until
    )
    return history_answer(found)


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
