"""Which names the DNS servers of a host must know besides those of its own instances. Pure.

In its own network, an instance on another host has the same names as one on this host. In a peered network of another
project, an instance is `NAME.PROJECT.internal`, while the networks are peered.

Names of projects are unique in an organisation only. A peer whose project has the name of the own project, or of
another peer's, has no names: nobody can take the name of somebody else's instance.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Protocol, runtime_checkable

import msgspec

TOP: Final = "internal"
SUBDOMAIN: Final = "lb"
"""Balancers have names below it, so that they never hide an instance."""


class NamedMember(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """An instance or a balancer in a network."""

    id: str
    name: str
    """With the subdomain, if it is a balancer: `web.lb`."""
    address: str
    site: str
    key: str
    """What engines know the network by."""
    number: int
    network: str
    """The name of the network."""
    project_id: str
    project: str
    """The name of the project."""

    @property
    def long(self) -> str:
        return f"{self.name}.{self.project}.{TOP}"


class KnownName(msgspec.Struct, frozen=True, order=True):
    """An address and its names, as the DNS servers of one network know them, or those of all networks of a project."""

    id: str
    """Of the instance or balancer."""
    address: str
    names: tuple[str, ...]
    network: str = ""
    """What engines know the network by. Empty: in all networks of the project."""
    project: str = ""
    is_peer: bool = False
    """The address is in another network, which is peered with this one."""


@runtime_checkable
class NamingDriver(Protocol):
    """An engine with DNS servers for the networks of projects."""

    def know(self, names: Sequence[KnownName]) -> None:
        """Make the DNS servers know exactly these names, besides those of the host's own instances. Names in networks
        that this host does not have are left out."""
        ...


def known_names(
    site: str, members: Iterable[NamedMember], peerings: Iterable[tuple[int, int]], linked: Collection[str]
) -> tuple[KnownName, ...]:
    """The names that a site must know. `linked` sites share the networks of projects."""
    by_network = defaultdict[int, list[NamedMember]](list)
    for member in members:
        if member.site == site or {member.site, site} <= set(linked):
            by_network[member.number].append(member)
    here = {each.number for own in by_network.values() for each in own if each.site == site}
    found: list[KnownName] = []
    for number in here:
        found += _of_other_hosts(site, by_network[number])
    pairs = sorted({*peerings, *((other, one) for one, other in peerings)})
    near = {number: [by_network[other] for one, other in pairs if one == number] for number in here}
    for number, peers in near.items():
        found += _of_peers(by_network[number][0], peers)
    return tuple(sorted(found))


def _of_other_hosts(site: str, members: Iterable[NamedMember]) -> Iterator[KnownName]:
    for each in members:
        if each.site != site:
            yield KnownName(each.id, each.address, (each.long, each.name), network=each.key)
            inner = f"{each.name}.{each.network}.{each.project}.{TOP}"
            yield KnownName(each.id, each.address, (inner,), project=each.project_id)


def _of_peers(own: NamedMember, peers: Sequence[Sequence[NamedMember]]) -> Iterator[KnownName]:
    projects = defaultdict[str, set[str]](set)
    for each in (own, *(member for network in peers for member in network)):
        projects[each.project].add(each.project_id)
    for network in peers:
        for each in network:
            if each.project_id != own.project_id and len(projects[each.project]) == 1:
                yield KnownName(each.id, each.address, (each.long,), network=own.key, is_peer=True)
