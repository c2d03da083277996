"""Load balancers as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.balancer import BackendAnswer, BalancerAnswer


def fields() -> "Fields[BalancerAnswer]":
    return (
        Field("BALANCER", lambda each: each.name, flexible=True),
        Field("ADDRESS", lambda each: f"{each.address}:{each.port}"),
        Field("PROTOCOL", protocol_text, worth=5),
        Field("PUBLISHED AT", published_text, worth=7),
        Field("BACKENDS", backends_text, flexible=True, worth=8),
    )


def backend_fields() -> "Fields[BackendAnswer]":
    return (
        Field("BACKEND", lambda each: each.instance, flexible=True),
        Field("ADDRESS", lambda each: each.address, worth=5),
        Field("STATE", lambda each: each.state),
        Field("SESSIONS", lambda each: str(each.sessions), right=True, worth=6),
        Field("TOTAL", lambda each: str(each.sessions_total), right=True, worth=4),
        Field("IN", lambda each: bytes_text(each.bytes_in), right=True, worth=3),
        Field("OUT", lambda each: bytes_text(each.bytes_out), right=True, worth=3),
        Field("REASON", lambda each: each.reason, flexible=True, worth=7),
    )


def facts(balancer: "BalancerAnswer") -> Iterator[tuple[str, str]]:
    """All details of a balancer as names and values. Missing values are empty."""
    yield "state", state_text(balancer)
    yield "address", f"{balancer.address}:{balancer.port} ({balancer.dns_name})"
    yield "published at", published_text(balancer)
    yield "protocol", protocol_text(balancer)
    ends = balancer.certificate_ends_at
    yield "certificate", f"valid until {time_text(ends)} UTC" if ends else ""
    yield "backend port", str(balancer.target_port)
    yield "label", balancer.label
    yield "check", f"{balancer.check}, out within {balancer.check_seconds} s"
    yield "connections", f"{balancer.sessions} open, {balancer.sessions_total} in all"
    yield "traffic", f"{bytes_text(balancer.bytes_in)} in, {bytes_text(balancer.bytes_out)} out"
    yield "id", balancer.id


def state_text(balancer: "BalancerAnswer") -> str:
    if balancer.ending:
        return "deleting"
    return "running" if balancer.running else "starting, or its host does not answer"


def protocol_text(balancer: "BalancerAnswer") -> str:
    return f"{balancer.protocol} with TLS" if balancer.tls else balancer.protocol


def published_text(balancer: "BalancerAnswer") -> str:
    return f"{balancer.published_address}:{balancer.published_port}" if balancer.published_port else ""


def backends_text(balancer: "BalancerAnswer") -> str:
    if balancer.ending:
        return "deleting"
    return ", ".join(each.instance for each in balancer.backends) or "none"
