"""Hosts as text."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import SIMULATED, age_text

if TYPE_CHECKING:
    from teraflock.wire.host import HostAnswer, InvitationAnswer

_LIMITS: Final = {
    "hold": "hold",
    "lost": "NOT ENFORCED: the kernel is recounting what each disk uses",
    "off": "NOT ENFORCED: quotas are disabled in the storage pool",
}


def fields(now: datetime) -> "Fields[HostAnswer]":
    return (
        Field("HOST", lambda each: each.name, flexible=True),
        Field("STATE", state_text),
        Field("GPUS", _cards_text, flexible=True, worth=8),
        Field("GPUS FREE", _free_text, right=True, worth=7),
        Field("VCPUS HELD", lambda each: f"{each.vcpus_held}/{each.vcpus}", right=True, worth=6),
        Field("RAM HELD", lambda each: _part(each.ram_bytes_held, each.ram_bytes), right=True, worth=6),
        Field("DISK HELD", lambda each: _part(each.disk_bytes_held, each.disk_bytes), right=True, worth=4),
        Field("POOL FULL", lambda each: f"{_fill_percent(each)} %", right=True, worth=6),
        Field("ADDRESS", lambda each: each.address, worth=5),
        Field("REGION", lambda each: each.region, worth=2),
        Field("ZONE", lambda each: each.labels.get("zone", ""), worth=2),
        Field("SITE", lambda each: each.site, worth=2),
        Field("SEEN", lambda each: age_text(each.seen_at, now), right=True, worth=3),
    )


def state_text(host: "HostAnswer") -> str:
    return f"{host.state} {SIMULATED}" if host.simulated else host.state


def join_command(made: "InvitationAnswer") -> str:
    """What to run on the new host."""
    return f"tera host join '{made.token}@{made.server}#{made.fingerprint}'"


def cost_text(host: "HostAnswer") -> str:
    if host.cost_micros_per_hour is None:
        return ""
    return f"{host.cost_micros_per_hour / 10**6:.6g} {host.cost_currency} per hour"


def _cards_text(host: "HostAnswer") -> str:
    kinds = Counter(gpu.gpu for gpu in host.gpus)
    return ", ".join(f"{count}× {name}" for name, count in kinds.items())


def _free_text(host: "HostAnswer") -> str:
    return str(sum(gpu.free and gpu.healthy for gpu in host.gpus)) if host.gpus else ""


def _part(held: int, whole: int) -> str:
    return f"{bytes_text(held)}/{bytes_text(whole)}"


def _fill_percent(host: "HostAnswer") -> int:
    return host.disk_used_bytes * 100 // host.disk_bytes if host.disk_bytes else 0


def facts(host: "HostAnswer", now: datetime) -> Iterator[tuple[str, str]]:
    yield "id", host.id
    yield "site", host.site
    yield "kind", f"rented, {host.type}" if host.kind == "rented" else ""
    yield "region", host.zone or host.region
    yield "labels", ", ".join(f"{key}={value}" for key, value in sorted(host.labels.items()))
    yield "drained at", f"{host.drain_at:%Y-%m-%d %H:%M} UTC" if host.drain_at else ""
    yield "cost", cost_text(host)
    yield "provider's id", host.remote_id
    yield "address", host.address
    yield "vCPUs", f"{host.vcpus_held} of {host.vcpus} held"
    yield "memory", f"{bytes_text(host.ram_bytes_held)} of {bytes_text(host.ram_bytes)} held"
    yield "disk", f"{bytes_text(host.disk_bytes_held)} of {bytes_text(host.disk_bytes)} held"
    yield (
        "pool",
        f"{bytes_text(host.disk_used_bytes)} of {bytes_text(host.disk_bytes)} written, {_fill_percent(host)} %",
    )
    yield "disk limits", _LIMITS[host.disk_limits]
    yield "open networks", ", ".join(host.allow_out) or "only the internet"
    for gpu in host.gpus:
        state = "free" if gpu.free else "held"
        health = "" if gpu.healthy else ", UNHEALTHY"
        yield gpu.slot, f"{gpu.name}, {bytes_text(gpu.memory_bytes)}, {state}{health}"
    yield "seen", f"{age_text(host.seen_at, now)} ago"
