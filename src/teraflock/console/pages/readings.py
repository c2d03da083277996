"""Readings of hosts and instances over time, as data for charts."""

from typing import Any, Final

import msgspec

from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.telemetry import ReadingsAnswer

pages = Pages()
PERIODS: Final = ("hour", "day", "month")
OF_CARD: Final = frozenset(
    {"utilisation_percent", "memory_used_bytes", "power_milliwatts", "temperature_celsius"}
)
OF_GUEST: Final = frozenset(
    {"cpu_millicores", "ram_used_bytes", "received_bytes_per_second", "sent_bytes_per_second"}
)


@pages.get("/hosts/{host}/readings", scope=Scope.INSTALLATION, may=Permission.HOST_READ)
def show_host_readings(call: PageCall) -> Answer:
    """The readings of a host's cards over a period."""
    period = _period(call)
    return _answer(call.client.telemetry.of_host(call.path["host"], period), OF_CARD)


@pages.get(
    "/projects/{project}/instances/{instance}/readings", scope=Scope.PROJECT, may=Permission.INSTANCE_READ
)
def show_instance_readings(call: PageCall) -> Answer:
    """The readings of an instance and its cards over a period."""
    period = _period(call)
    return _answer(call.client.telemetry.of_instance(call.path["instance"], period), OF_CARD | OF_GUEST)


def _period(call: PageCall) -> str:
    asked = call.request.query.text("period")
    return asked if asked in PERIODS else "hour"


def _answer(found: ReadingsAnswer, names: frozenset[str]) -> Answer:
    series: list[dict[str, Any]] = []
    for each in found.series:
        values = {name: numbers for name, numbers in each.values.items() if name in names}
        if values:
            series.append({"slot": each.slot, "times": each.times, "values": values})
    body = {"period": found.period, "step": found.step_seconds, "series": series}
    return Answer(body=msgspec.json.encode(body), media_type="application/json")
