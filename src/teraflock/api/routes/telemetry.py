"""Readings: what cards and instances use, now and over time."""

from teraflock.api.call import Call
from teraflock.api.convert.telemetry import history_answer, host_reading_answer, instance_reading_answer
from teraflock.api.query import HostReadingsQuery, InProject, ReadingsInProject, ReadingsQuery
from teraflock.api.route import Routes, Scope
from teraflock.fleet.telemetry.model import ReadingPeriod
from teraflock.tenant.rules import Permission
from teraflock.wire.telemetry import HostReadingList, InstanceReadingList, ReadingsAnswer

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
