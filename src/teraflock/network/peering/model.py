"""Values of peerings."""

from datetime import datetime
from enum import StrEnum

import msgspec


class PeeringState(StrEnum):
    REQUESTED = "requested"
    """This side agreed; the other has not, or does not exist."""
    OFFERED = "offered"
    """The other side agreed; this one has not."""
    ACTIVE = "active"
    """Both agreed: packets cross, as far as the security groups of both ends allow."""


class Peering(msgspec.Struct, frozen=True, kw_only=True):
    """A peering as one side sees it."""

    peer_project_id: str
    peer_project: str
    """The name of the other project. Empty until that side has agreed: a request must not reveal what exists."""
    peer_network: str
    peer_cidr: str
    """The other network's addresses. Empty unless it is active."""
    state: PeeringState
    since: datetime
