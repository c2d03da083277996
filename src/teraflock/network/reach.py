"""Who can reach whom, and by which rule. Pure: the same rules that the firewall is made of.

An end is an interface of an instance, the internet, or an address. A connection is stopped by the first of: the rules
of the sender's groups, networks that are not peered or that the host closes to guests, a port that the host does not
open, the ACLs of both ends' subnets, the rules of the receiver's groups.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from typing import Final

import msgspec

from teraflock.network.acl.model import AclRule
from teraflock.network.acl.rules import passes
from teraflock.network.ipv6 import four, holds, is_six, six
from teraflock.network.rules import CLOSED, number_of
from teraflock.network.security_group.model import Direction, Protocol, Rule
from teraflock.network.walls import (
    Borders,
    Packet,
    Permit,
    Walls,
    are_apart,
    border_of,
    decide,
    is_ours,
    permit,
)

INTERNET: Final = "internet"
ANYONE: Final = ("192.0.2.1", "8.8.8.8", "1.1.1.1", "203.0.113.1", "198.51.100.1", "9.9.9.9", "77.7.7.7")
"""Addresses that can stand for the internet: one that no narrower rule names is taken."""
ANYONE6: Final = "2001:db8::1"
REPLY_PORT: Final = 50_000
"""Stands for the ports that systems use for outgoing connections: replies go there."""


class Stop(StrEnum):
    """Why a connection does not pass."""

    OUT = "out"
    """No rule of the sender's groups allows it."""
    CLOSED = "closed"
    """The host does not let guests into this network."""
    APART = "apart"
    """The ends have no common network: other networks that are not peered, other sites."""
    INNER = "inner"
    """A further interface reaches private networks only."""
    ACL = "acl"
    """The ACL of an end's subnet drops it."""
    ACL_REPLY = "acl-reply"
    """The ACL of an end's subnet drops the replies."""
    UNPUBLISHED = "unpublished"
    """The host opens no port that leads to it."""
    IPV6 = "ipv6"
    """It leaves the networks of projects with IPv6."""
    IN = "in"
    """No rule of the receiver's groups allows it."""


class End(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str
    """Of the internet: one that stands for all."""
    site: str = ""
    """Empty: it is not an instance."""
    open_ports: frozenset[int] = frozenset()
    """Of an instance: the TCP ports that its host opens to the outside."""
    is_public: bool = False
    """Of an instance: it has a public address, which opens everything."""
    allowed_out: tuple[str, ...] = ()
    """Of an instance: networks that its host lets guests into though they are closed."""
    is_inner: bool = False
    """Of an instance: not its first interface. The internet neither reaches it nor is reached by it."""
    is_foreign: bool = False
    """It is an instance of another project, in a peered network. Its rules must not be named."""

    @property
    def is_internet(self) -> bool:
        """An instance can have this name, too."""
        return self.name == INTERNET and not self.site


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    stop: Stop | None = None
    """None: it passes."""
    leaving: Permit | None = None
    entering: Permit | None = None
    only_from: tuple[str, ...] = ()
    """If the internet is stopped at the receiver: networks that would pass."""


def reach(walls: Walls, source: End, target: End, protocol: Protocol, port: int) -> Reached:
    packet = Packet(source.address, target.address, protocol, port)
    leaving = permit(walls, source.address, Direction.OUT, packet) if source.site else None
    outside6 = is_six(target.address) and not is_ours(target.address)  # no rule of a group could let it out
    if source.site and leaving is None and not outside6:
        return Reached(stop=Stop.OUT)
    stop = _stop_on_the_way(walls, source, target, protocol, port) or _stop_at_borders(walls, packet)
    if stop is not None:
        return Reached(stop=stop, leaving=leaving)
    entering = permit(walls, target.address, Direction.IN, packet) if target.site else None
    if target.site and entering is None:
        only = _networks(walls, target, packet) if source.is_internet else ()
        return Reached(stop=Stop.IN, leaving=leaving, only_from=only)
    assert decide(walls, packet).passes, "the steps and the firewall agree"
    return Reached(leaving=leaving, entering=entering)


def _stop_on_the_way(walls: Walls, source: End, target: End, protocol: Protocol, port: int) -> Stop | None:
    if any(not end.site and not end.is_internet and is_ours(end.address) for end in (source, target)):
        return Stop.APART
    if source.site and target.site:
        apart = source.site != target.site or are_apart(walls, source.address, target.address)
        return Stop.APART if apart else None
    if is_six(source.address) or is_six(target.address):
        return Stop.IPV6
    if source.is_inner or target.is_inner:
        return Stop.INNER
    if target.site:
        is_open = target.is_public or (protocol == Protocol.TCP and port in target.open_ports)
        return None if is_open else Stop.UNPUBLISHED
    is_closed = is_in(target.address, CLOSED) and not is_in(target.address, source.allowed_out)
    return Stop.CLOSED if is_closed and not target.is_internet else None


def _stop_at_borders(walls: Walls, packet: Packet) -> Stop | None:
    if not crosses(walls.borders, packet.source, packet.target, packet.protocol, packet.port):
        return Stop.ACL
    reply_port = 0 if packet.protocol == Protocol.ICMP else REPLY_PORT
    is_answered = crosses(walls.borders, packet.target, packet.source, packet.protocol, reply_port)
    return None if is_answered else Stop.ACL_REPLY


def crosses(borders: Borders, source: str, target: str, protocol: Protocol, port: int) -> bool:
    """Whether the ACLs of both ends' subnets let a single packet pass. Inside a subnet, nothing is checked."""
    return all(
        passes(rules, side, peer, protocol, port) for rules, side, peer in guards(borders, source, target)
    )


def guards(
    borders: Borders, source: str, target: str
) -> Iterator[tuple[tuple[AclRule, ...], Direction, str]]:
    """Each ACL that a packet meets, with the direction and the address that it looks at."""
    from_subnet, leaving = border_of(borders, source)
    to_subnet, entering = border_of(borders, target)
    if from_subnet and from_subnet == to_subnet:
        return
    if leaving is not None:
        yield leaving, Direction.OUT, target
    if entering is not None:
        yield entering, Direction.IN, source


def _networks(walls: Walls, target: End, packet: Packet) -> tuple[str, ...]:
    found = []
    for group in walls.stations.get(four(target.address), ()):
        for rule in walls.groups.get(group, ()):
            if rule.direction == Direction.IN and not (rule.names_group or is_six(rule.peer)):
                first = str(IPv4Network(rule.peer).network_address)
                moved = msgspec.structs.replace(packet, source=first)
                alone = Walls(groups={group: (rule,)}, stations={four(target.address): (group,)})
                found += [rule.peer] if permit(alone, target.address, Direction.IN, moved) else []
    return tuple(dict.fromkeys(found))


def is_in(address: str, networks: Iterable[str]) -> bool:
    return any(holds(each, address) for each in networks)


def anyone(rules: Iterable[Rule | AclRule]) -> str:
    """An address that stands for the internet: in as few networks of the rules as possible."""
    peers = {rule.peer for rule in rules if not (isinstance(rule, Rule) and rule.names_group)}
    narrow = [IPv4Network(peer) for peer in peers if peer != "0.0.0.0/0" and not is_six(peer)]
    return min(ANYONE, key=lambda each: sum(IPv4Address(each) in network for network in narrow))


def used(interfaces: Sequence[End], target: str) -> End:
    """The interface through which an instance sends to an address: the one in the same network, or else the first."""
    return next((each for each in interfaces if _share_network(each.address, target)), interfaces[0])


def asked(sources: Sequence[End], targets: Sequence[End]) -> tuple[End, End]:
    """The interfaces of a connection between two instances: in a network that both have, or else the first ones."""
    for source in sources:
        for target in targets:
            if _share_network(source.address, target.address):
                return source, target
    return used(sources, targets[0].address), targets[0]


def _share_network(one: str, other: str) -> bool:
    return is_ours(one) and is_ours(other) and number_of(four(one)) == number_of(four(other))


def with_ipv6(end: End) -> End | None:
    """The same end with its IPv6 address. None: it has none."""
    if end.is_internet:
        return msgspec.structs.replace(end, address=ANYONE6)
    if is_ours(end.address):
        return msgspec.structs.replace(end, address=six(four(end.address)))
    return end if is_six(end.address) else None
