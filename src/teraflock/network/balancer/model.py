"""Values of load balancers."""

from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

import msgspec

from teraflock.tenant.model import ProjectId

BalancerId = NewType("BalancerId", str)
PREFIX: Final = "lbr"
HTTP_CHECK: Final = "http:"
TCP_CHECK: Final = "tcp"


class BalancerProtocol(StrEnum):
    TCP = "tcp"
    """Connections are passed on as they are."""
    HTTP = "http"
    """Each request is passed on separately, with the address of the client in `X-Forwarded-For`."""


class Balancer(msgspec.Struct, frozen=True, kw_only=True):
    id: BalancerId
    project_id: ProjectId
    name: str
    site: str
    host_id: str
    address: str
    """In the project's network. The instances see connections from this address."""
    protocol: BalancerProtocol
    port: int
    target_port: int
    """Of the instances."""
    health_check: str
    """`tcp`, or `http:` and a path."""
    check_seconds: int
    """An instance that does not answer gets no new connections after at most this time."""
    label_key: str = ""
    """Instances with this label are backends, besides those that were named. Empty: no label."""
    label_value: str = ""
    published: int | None = None
    """The port of the host that leads to it."""
    certificate: str = ""
    """PEM. Empty: no TLS."""
    sealed_key: str = ""
    certificate_ends_at: datetime | None = None
    ending: bool = False
    """It was deleted, and its host has yet to remove it."""
    sequence: int = 0
    """Of its newest event. 0: it is from before balancers had events."""
    created_by: str = ""
    """The member who created it."""
    created_at: datetime


class BalancerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant asks for."""

    name: str
    port: int
    target_port: int | None = None
    """None: the same as `port`."""
    instances: tuple[str, ...] = ()
    label: str = ""
    """`KEY=VALUE`."""
    protocol: str = BalancerProtocol.TCP
    health_check: str = TCP_CHECK
    check_seconds: int = 5
    certificate: str = ""
    key: str = ""
    publish: bool = False
    published: int | None = None
    """The port of the host. None: a free one."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that can be a backend."""

    instance_id: str
    name: str
    site: str
    host_id: str | None
    address: str | None
    """None: it has no address in the project's network."""


class BalancerHost(msgspec.Struct, frozen=True, kw_only=True):
    """An own host, as far as balancers need it."""

    id: str
    site: str
    state: str
    drain_at: datetime | None
    """When a drained host is emptied. None: it is not drained, or has no deadline."""
    seen_at: datetime


class ShownBalancer(msgspec.Struct, frozen=True, kw_only=True):
    """A balancer as a tenant sees it."""

    balancer: Balancer
    domain: str
    """Of the project's network, such as `vision.internal`."""
    host_address: str
    targets: tuple[Target, ...] = ()
    """By name."""
    seen: "BalancerSeen | None" = None
    """None: nobody asked, or its host does not answer."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate and its key, checked and written again by us."""

    chain: str
    key: str
    ends_at: datetime


class BackendSpec(msgspec.Struct, frozen=True, order=True):
    instance_id: str
    address: str


class BalancerPlace(msgspec.Struct, frozen=True):
    """Where a balancer is."""

    network: int
    network_key: str
    """What engines know the network by."""
    project: str
    """The project's name."""
    host: str
    """The host's name."""
    is_public: bool
    """A public address leads to it."""


class BalancerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an engine needs to run a balancer."""

    id: BalancerId
    name: str
    project_id: ProjectId
    network_number: int
    network_key: str
    """What engines know the network by."""
    domain: str
    host: str
    """The name that the engine uses for the host."""
    address: str
    protocol: BalancerProtocol
    port: int
    target_port: int
    health_check: str
    check_seconds: int
    certificate: str = ""
    key: str = ""
    backends: tuple[BackendSpec, ...] = ()
    """Sorted."""


class BackendState(StrEnum):
    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"
    """It has not been checked yet."""


class BackendSeen(msgspec.Struct, frozen=True, kw_only=True):
    instance_id: str
    state: BackendState
    reason: str = ""
    """Why it is down, such as `connection refused`."""
    sessions: int = 0
    """Open now."""
    sessions_total: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class BalancerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What a running balancer reports. Totals count from its last change."""

    id: BalancerId
    sessions: int = 0
    sessions_total: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    backends: tuple[BackendSeen, ...] = ()
