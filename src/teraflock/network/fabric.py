"""The networks of projects across hosts: what each host must know to reach the instances on other hosts. Pure values.

A network is a bridge on each host that has instances in it. A VXLAN link joins the bridges. Each host knows which
hardware address is at which host, so nothing is flooded, and a frame from another host is accepted only if it comes
from an instance that is known to run there.
"""

from typing import Protocol, runtime_checkable

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """How other hosts reach a host."""

    address: str
    """Its address on the wire between hosts."""
    key: str = ""
    """Its WireGuard public key. Empty: it does not encrypt, and the wire must be trusted."""
    port: int = 0
    """Its WireGuard port."""
    inner: str = ""
    """Its address inside WireGuard."""


class Remote(msgspec.Struct, frozen=True, order=True):
    """An instance on another host."""

    project_id: str
    network: int
    """The number of its network."""
    address: str
    host: str
    """The address of its host on the wire, as in `Wire.address`."""


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """What a host needs to know about all other hosts."""

    own: Wire | None = None
    """Its own end. None: it is not joined to other hosts."""
    peers: tuple[Wire, ...] = ()
    """Sorted by address."""
    remotes: tuple[Remote, ...] = ()
    """Instances on other hosts in the networks that this host has. Sorted."""


@runtime_checkable
class FabricDriver(Protocol):
    """An engine that can join its networks with those of other hosts."""

    def link(self, fabric: Fabric) -> None:
        """Make the links between this host and others exactly these. Returns at once if nothing changed."""
        ...
