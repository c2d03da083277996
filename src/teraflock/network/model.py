"""Values of networks."""

from datetime import datetime
from ipaddress import IPv4Network
from typing import Final, NewType

import msgspec

from teraflock.network.rules import subnet
from teraflock.tenant.model import ProjectId

NetworkId = NewType("NetworkId", str)
SubnetId = NewType("SubnetId", str)
DEFAULT: Final = "default"
"""The network of instances that name none, and the subnet of addresses that no other subnet has."""


class ProjectNetwork(msgspec.Struct, frozen=True, kw_only=True):
    id: NetworkId
    project_id: ProjectId
    name: str
    number: int
    """Its part of the address range."""
    engine_key: str
    """What engines know it by. Never reused: a network that is still being removed is not mistaken for a new one."""
    created_at: datetime

    @property
    def cidr(self) -> IPv4Network:
        return subnet(self.number)


class Subnet(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a network."""

    id: SubnetId
    project_id: ProjectId
    network_id: NetworkId
    name: str
    cidr: str
    created_at: datetime


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """A network with its subnets, by name. `default` is not among them: it has what they leave."""

    network: ProjectNetwork
    subnets: tuple[Subnet, ...] = ()


class SubnetView(msgspec.Struct, frozen=True, kw_only=True):
    """A subnet as a tenant sees it."""

    network: str
    name: str
    cidr: str
    """Of `default`: the whole network. What other subnets have is not part of it."""
    acl: str
    """The name of its ACL. Empty: it has none."""
    instances: tuple[str, ...]
    id: str = ""
    """Empty for `default`."""


class Tenancy(msgspec.Struct, frozen=True, kw_only=True):
    """An instance and one of its addresses."""

    instance_id: str
    instance: str
    address: str


class Interface(msgspec.Struct, frozen=True):
    """A place of an instance in a network."""

    network: ProjectNetwork
    address: str
