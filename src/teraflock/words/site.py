"""Sites, and the machine types that can be rented there, as text."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from teraflock.base.quantities import bytes_text, count_text
from teraflock.words.shape import cards_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import SIMULATED, age_text

if TYPE_CHECKING:
    from teraflock.wire.site import MachineTypeAnswer, SiteAnswer


def state_text(site: "SiteAnswer") -> str:
    return f"{site.state} {SIMULATED}" if site.simulated else site.state


def _used_by(site: "SiteAnswer") -> str:
    """Empty if it is unknown: a site that never opened neither rents nor has capabilities."""
    if site.open or (site.capabilities and not site.rents):
        return "all"
    count = len(site.organisations)
    return count_text(count, "organisation") if count else "nobody" if site.rents else ""


def _prices_text(machine: "MachineTypeAnswer") -> str:
    prices = machine.prices_micros_per_hour.items()
    return ", ".join(f"{micros / 10**6:.6g} {machine.currency} {mode}" for mode, micros in prices)


FIELDS: "Final[Fields[SiteAnswer]]" = (
    Field("SITE", lambda each: each.name, flexible=True),
    Field("KIND", lambda each: each.kind),
    Field("STATE", state_text),
    Field("HOSTS", lambda each: str(each.hosts), right=True, worth=4),
    Field("INSTANCES", lambda each: str(each.instances), right=True, worth=4),
    Field("USED BY", _used_by, worth=5),
    Field("PROBLEM", lambda each: each.problem, flexible=True, worth=6),
)
TYPE_FIELDS: "Final[Fields[MachineTypeAnswer]]" = (
    Field("TYPE", lambda each: each.name, flexible=True),
    Field("REGION", lambda each: each.region),
    Field("GPUS", cards_text),
    Field("VCPUS", lambda each: str(each.vcpus), right=True, worth=4),
    Field("RAM", lambda each: bytes_text(each.ram_bytes), right=True, worth=4),
    Field("DISK", lambda each: bytes_text(each.disk_bytes), right=True, worth=3),
    Field("COST PER HOUR", _prices_text),
)


def facts(site: "SiteAnswer", now: datetime) -> Iterator[tuple[str, str]]:
    yield "problem", site.problem
    yield "since", f"{age_text(site.since, now)} ago" if site.since else ""
    yield "kind", site.kind
    yield "defined in", site.defined_in
    yield "machines", "rented, one per instance" if site.rents else "own hosts" if site.capabilities else ""
    yield "supports", ", ".join(site.capabilities)
    yield "hosts", str(site.hosts)
    yield "instances", str(site.instances)
    yield "used by", ", ".join(site.organisations) or _used_by(site)
    yield "options", ", ".join(f"{name}={value}" for name, value in site.options.items() if value)
