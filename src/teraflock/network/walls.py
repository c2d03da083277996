"""What the firewall of a host enforces, and what it decides about a connection. Pure.

A new connection passes if a rule of the sender's groups allows it out and a rule of the receiver's groups allows it
in. An end that is not one of our instances needs no rule. Replies pass, so `port` is always the receiver's. An instance
without a group, or an address of our range that nobody has, reaches nothing and is not reached.
No rule joins two networks: packets cross between them only if they are peered. ACLs are no part of this decision: they
look at single packets at the border of a subnet, see `border_of`.
The walls name instances by their IPv4 addresses and hold for IPv6, too: see `ipv6.py`.
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Network

import msgspec

from teraflock.network.acl.model import AclRule
from teraflock.network.ipv6 import four, holds, is_six
from teraflock.network.rules import RANGE, number_of, subnet
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule


class Published(msgspec.Struct, frozen=True, order=True):
    """A port of a host that leads to a port of a guest."""

    host: str
    port: int
    address: str
    guest_port: int


class Floating(msgspec.Struct, frozen=True, order=True):
    """A public address that leads to an address of a project's network, and from there to the outside."""

    public: str
    private: str


Borders = Mapping[str, tuple[AclRule, ...] | None]


class Walls(msgspec.Struct, frozen=True, kw_only=True):
    groups: Mapping[GroupId, tuple[Rule, ...]] = {}
    stations: Mapping[str, tuple[GroupId, ...]] = {}
    """The groups of each instance, sorted, by its address."""
    published: tuple[Published, ...] = ()
    """Sorted."""
    floating: tuple[Floating, ...] = ()
    """Sorted."""
    borders: Borders = {}
    """The ACL of each subnet, or None, for networks that have one anywhere. The subnet `default` is the whole network,
    less the others. An ACL sees all packets between its subnet and the outside."""
    peers: frozenset[tuple[str, str]] = frozenset()
    """Every two networks that are peered, such as `10.128.0.0/20`, the smaller text first: see `pair`."""


class Packet(msgspec.Struct, frozen=True):
    """The first packet of a connection."""

    source: str
    target: str
    protocol: Protocol
    port: int = 0
    """0 for ICMP."""

    @property
    def ends(self) -> tuple[str, str]:
        return self.source, self.target


class Permit(msgspec.Struct, frozen=True):
    """A rule that allows a connection, and its group."""

    group: GroupId
    rule: Rule


class WallDecision(msgspec.Struct, frozen=True, kw_only=True):
    passes: bool
    leaving: Permit | None = None
    """What lets it out of the sender; None: nothing does, or the sender is not an instance."""
    entering: Permit | None = None
    stopped: Direction | None = None
    """Which side stops it: `out` at the sender, `in` at the receiver."""
    apart: bool = False
    """The ends are in two networks that are not peered, or one of them is outside and has an IPv6 address."""


def decide(walls: Walls, packet: Packet) -> WallDecision:
    leaving = entering = None
    if are_apart(walls, packet.source, packet.target):
        return WallDecision(passes=False, apart=True)
    if four(packet.source) in walls.stations or is_ours(packet.source):
        leaving = permit(walls, packet.source, Direction.OUT, packet)
        if leaving is None:
            return WallDecision(passes=False, stopped=Direction.OUT)
    if four(packet.target) in walls.stations or is_ours(packet.target):
        entering = permit(walls, packet.target, Direction.IN, packet)
        if entering is None:
            return WallDecision(passes=False, leaving=leaving, stopped=Direction.IN)
    return WallDecision(passes=True, leaving=leaving, entering=entering)


@lru_cache(maxsize=65_536)
def is_ours(address: str) -> bool:
    """Whether an address belongs to the networks of projects."""
    return holds(str(RANGE), address)


def are_apart(walls: Walls, source: str, target: str) -> bool:
    """Whether two addresses are in two of our networks that are not peered. IPv6 does not leave our networks."""
    if not (is_ours(source) and is_ours(target)):
        return is_six(source) or is_six(target)
    if is_six(source) != is_six(target):
        return True
    one, other = network_of(source), network_of(target)
    return one != other and pair(one, other) not in walls.peers


def pair(one: str, other: str) -> tuple[str, str]:
    """Two networks in the order of `Walls.peers`."""
    return (one, other) if one < other else (other, one)


@lru_cache(maxsize=65_536)
def network_of(address: str) -> str:
    """The network that has an address, such as `10.128.0.0/20`."""
    return str(subnet(number_of(four(address))))


def border_of(borders: Borders, address: str) -> tuple[str, tuple[AclRule, ...] | None]:
    """The subnet that has an address, and its ACL. An empty subnet: no ACL guards the network."""
    found = [each for each in borders if holds(each, address)]
    smallest = max(found, key=lambda each: IPv4Network(each).prefixlen, default="")
    return smallest, borders[smallest] if smallest else None


def permit(walls: Walls, address: str, direction: Direction, packet: Packet) -> Permit | None:
    """The first rule, by group and then by rule, that allows the packet on one side."""
    peer = packet.source if direction == Direction.IN else packet.target
    joined = walls.stations.get(four(peer), ())
    for group in walls.stations.get(four(address), ()):
        for rule in walls.groups.get(group, ()):
            if rule.direction == direction and _matches(rule, packet, peer, joined):
                return Permit(group, rule)
    return None


def _matches(rule: Rule, packet: Packet, peer: str, peer_groups: tuple[GroupId, ...]) -> bool:
    if rule.protocol != Protocol.ANY:
        if rule.protocol != packet.protocol:
            return False
        if rule.protocol != Protocol.ICMP and not rule.port_first <= packet.port <= rule.port_last:
            return False
    if rule.names_group:
        return rule.peer in peer_groups
    return holds(rule.peer, peer)


def tightened(before: Walls, after: Walls) -> set[str]:
    """IPv4 addresses of instances with connections that `before` may have allowed and `after` may forbid.

    Each such connection has at least one end in the result. More rules and more members forbid nothing.
    """
    lost = {
        address
        for address, groups in before.stations.items()
        if groups != (now := after.stations.get(address, ())) and not set(groups) <= set(now)
    }
    left = {g for each in lost for g in before.stations[each] if g not in after.stations.get(each, ())}
    stricter = {
        group
        for group, rules in before.groups.items()
        if _lost_rules(rules, after.groups.get(group, ())) or any(rule.peer in left for rule in rules)
    }
    closed = {each.address for each in set(before.published) - set(after.published)}
    closed |= {each.private for each in set(before.floating) ^ set(after.floating)}
    ended = {network for both in before.peers - after.peers for network in both}
    parted = {each for each in before.stations if ended and network_of(each) in ended}
    held = {each for each, groups in after.stations.items() if not stricter.isdisjoint(groups)}
    return lost | closed | parted | held


def _lost_rules(before: tuple[Rule, ...], after: tuple[Rule, ...]) -> bool:
    return before != after and not set(before) <= set(after)
