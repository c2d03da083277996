"""Load balancers on the wire."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.field import Name, Ref
from teraflock.wire.published_port import PortNumber

BalancerProtocolWord = Literal["tcp", "http"]
BackendStateWord = Literal["up", "down", "unknown"]
BackendRefs = Annotated[tuple[Annotated[Ref, Meta(min_length=1)], ...], Meta(max_length=64)]
Pem = Annotated[str, Meta(max_length=65_536, pattern=r"^[\u0020-\u007e\r\n\t]*$")]


class BalancerRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    port: PortNumber
    """The TCP port that it listens on."""
    target_port: PortNumber | None = None
    """The TCP port of the backends. Default: the same as `port`."""
    instances: BackendRefs = ()
    """Backends by id or name."""
    label: Annotated[str, Meta(max_length=319)] = ""
    """`KEY=VALUE`: all instances with this label are backends, too."""
    protocol: BalancerProtocolWord = "tcp"
    check: Annotated[str, Meta(max_length=220)] = "tcp"
    """`tcp`, or `http:` and a path such as `http:/health`."""
    check_seconds: Annotated[int, Meta(ge=0, le=100_000)] = 5
    """A backend that does not answer gets no new connections after at most this time."""
    certificate: Pem = ""
    """PEM: the certificate, and those of its issuers after it."""
    key: Pem = ""
    """PEM, without a password. It is stored encrypted and never returned."""
    publish: bool = False
    """Publish the port on the host, so that clients outside the project reach it."""
    published_port: PortNumber | None = None
    """The port of the host, 30000 to 32767. Default: a free one."""


class BackendsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    instances: Annotated[BackendRefs, Meta(min_length=1)]


class BackendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    """The name of the instance."""
    address: str
    state: BackendStateWord
    """`unknown`: it was not asked for, or it has not been checked yet."""
    reason: str
    """Why it is down."""
    sessions: int
    """Open now."""
    sessions_total: int
    bytes_in: int
    bytes_out: int


class BalancerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    address: str
    """In the project's network. The backends see connections from this address."""
    dns_name: str
    port: int
    target_port: int
    protocol: BalancerProtocolWord
    check: str
    check_seconds: int
    label: str
    tls: bool
    certificate_ends_at: datetime | None
    published_address: str
    """The address of the host, if the port is published."""
    published_port: int | None
    ending: bool
    """It was deleted, and its host has yet to remove it."""
    running: bool | None
    """Whether its host runs it; only when one balancer is shown."""
    sessions: int
    sessions_total: int
    bytes_in: int
    bytes_out: int
    """Totals count from its last change."""
    backends: tuple[BackendAnswer, ...]
    created_at: datetime


class BalancerList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[BalancerAnswer, ...]
