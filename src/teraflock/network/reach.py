"""Who can reach whom, and by which rule. Pure: the same rules that the firewall is made of.

An end is an instance of the project, the internet, or an address. A connection is stopped by the first of: the rules of
the sender's groups, networks that the host closes to guests, a port that the host does not open, the ACL of the
project's network, the rules of the receiver's groups.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from typing import Final

import msgspec

from teraflock.network.acl.model import AclAction, AclRule
from teraflock.network.acl.rules import passes
from teraflock.network.rules import CLOSED
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Packet, Permit, Walls, decide, is_ours, permit

INTERNET: Final = "internet"
ANYONE: Final = ("192.0.2.1", "8.8.8.8", "1.1.1.1", "203.0.113.1", "198.51.100.1", "9.9.9.9", "77.7.7.7")
"""Addresses that can stand for the internet: one that no narrower rule names is taken."""
REPLY_PORT: Final = 50_000
"""Stands for the ports that systems use for outgoing connections: replies go there."""
PROTOCOLS: Final = (Protocol.TCP, Protocol.UDP, Protocol.ICMP)
Span = tuple[Protocol, int, int]


class Stop(StrEnum):
    """Why a connection does not pass."""

    OUT = "out"
    """No rule of the sender's groups allows it."""
    CLOSED = "closed"
    """The host does not let guests into this network."""
    APART = "apart"
    """The ends have no common network: other projects, other sites."""
    ACL = "acl"
    """The ACL of the project's network drops it."""
    ACL_REPLY = "acl-reply"
    """The ACL of the project's network drops the replies."""
    UNPUBLISHED = "unpublished"
    """The host opens no port that leads to it."""
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
    border: tuple[AclRule, ...] | None = None
    """Of an instance: the ACL of its network; None: it has none."""

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
    if source.site and leaving is None:
        return Reached(stop=Stop.OUT)
    stop = _stop_on_the_way(source, target, protocol, port) or _stop_at_border(source, target, packet)
    if stop is not None:
        return Reached(stop=stop, leaving=leaving)
    entering = permit(walls, target.address, Direction.IN, packet) if target.site else None
    if target.site and entering is None:
        only = _networks(walls, target, packet) if source.is_internet else ()
        return Reached(stop=Stop.IN, leaving=leaving, only_from=only)
    assert decide(walls, packet).passes, "the steps and the firewall agree"
    return Reached(leaving=leaving, entering=entering)


def _stop_on_the_way(source: End, target: End, protocol: Protocol, port: int) -> Stop | None:
    if any(not end.site and not end.is_internet and is_ours(end.address) for end in (source, target)):
        return Stop.APART
    if source.site and target.site:
        return None if source.site == target.site else Stop.APART
    if target.site:
        is_open = target.is_public or (protocol == Protocol.TCP and port in target.open_ports)
        return None if is_open else Stop.UNPUBLISHED
    is_closed = _is_in(target.address, CLOSED) and not _is_in(target.address, source.allowed_out)
    return Stop.CLOSED if is_closed and not target.is_internet else None


def _stop_at_border(source: End, target: End, packet: Packet) -> Stop | None:
    own, outer = (source, target) if source.site else (target, source)
    if own.border is None or outer.site:
        return None
    there, back = _ways(source)
    if not passes(own.border, there, outer.address, packet.protocol, packet.port):
        return Stop.ACL
    reply_port = 0 if packet.protocol == Protocol.ICMP else REPLY_PORT
    is_answered = passes(own.border, back, outer.address, packet.protocol, reply_port)
    return None if is_answered else Stop.ACL_REPLY


def _ways(source: End) -> tuple[Direction, Direction]:
    """The direction of a request, and that of its reply."""
    return (Direction.OUT, Direction.IN) if source.site else (Direction.IN, Direction.OUT)


def _networks(walls: Walls, target: End, packet: Packet) -> tuple[str, ...]:
    found = []
    for group in walls.stations.get(target.address, ()):
        for rule in walls.groups.get(group, ()):
            if rule.direction == Direction.IN and not rule.names_group:
                first = str(IPv4Network(rule.peer).network_address)
                moved = msgspec.structs.replace(packet, source=first)
                alone = Walls(groups={group: (rule,)}, stations={target.address: (group,)})
                found += [rule.peer] if permit(alone, target.address, Direction.IN, moved) else []
    return tuple(dict.fromkeys(found))


def _is_in(address: str, networks: Iterable[str]) -> bool:
    return any(IPv4Address(address) in IPv4Network(each) for each in networks)


def anyone(rules: Iterable[Rule | AclRule]) -> str:
    """An address that stands for the internet: in as few networks of the rules as possible."""
    peers = {rule.peer for rule in rules if not (isinstance(rule, Rule) and rule.names_group)}
    narrow = [IPv4Network(peer) for peer in peers if peer != "0.0.0.0/0"]
    return min(ANYONE, key=lambda each: sum(IPv4Address(each) in network for network in narrow))


# The whole picture


def openings(walls: Walls, source: End, target: End) -> tuple[Span, ...]:
    """What can pass from one end to the other: protocols with their ranges of ports, sorted and joined."""
    every = [(protocol, 0, 65_535) for protocol in PROTOCOLS]
    outs = _spans(walls, source, target, Direction.OUT) if source.site else every
    ins = _spans(walls, target, source, Direction.IN) if target.site else every
    both = _common(outs, ins)
    if target.site and not source.site and not target.is_public:
        both = [(Protocol.TCP, p, p) for p in target.open_ports if _covers(both, Protocol.TCP, p)]
    apart = bool(source.site and target.site and source.site != target.site)
    return () if apart else joined(_through_border(both, source, target))


def _through_border(spans: list[Span], source: End, target: End) -> list[Span]:
    """The parts of the spans that the ACL lets pass in both directions."""
    own, outer = (source, target) if source.site else (target, source)
    if own.border is None or outer.site:
        return spans
    there, back = _ways(source)
    answered = {
        protocol
        for protocol in PROTOCOLS
        if passes(own.border, back, outer.address, protocol, 0 if protocol == Protocol.ICMP else REPLY_PORT)
    }
    open_spans = [each for each in _acl_spans(own.border, there, outer.address) if each[0] in answered]
    return _common(spans, open_spans)


def _acl_spans(rules: Iterable[AclRule], side: Direction, peer: str) -> list[Span]:
    """What an ACL lets pass to or from an address: each rule takes its part of what is left."""
    left: list[Span] = [(protocol, 0, 65_535) for protocol in PROTOCOLS]
    found: list[Span] = []
    for rule in sorted(rules):
        if rule.direction == side and _is_in(peer, (rule.peer,)):
            meant = PROTOCOLS if rule.protocol == Protocol.ANY else (rule.protocol,)
            span = [(protocol, rule.port_first, rule.port_last) for protocol in meant]
            found += _common(left, span) if rule.action == AclAction.ALLOW else []
            left = _without(left, span)
    return found


def _common(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    return [
        (a[0], max(a[1], b[1]), min(a[2], b[2]))
        for a in spans
        for b in others
        if a[0] == b[0] and max(a[1], b[1]) <= min(a[2], b[2])
    ]


def _without(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    left = list(spans)
    for protocol, first, last in others:
        cut: list[Span] = []
        for each in left:
            if each[0] != protocol:
                cut.append(each)
                continue
            cut += [(protocol, each[1], min(each[2], first - 1))] if each[1] < first else []
            cut += [(protocol, max(each[1], last + 1), each[2])] if each[2] > last else []
        left = cut
    return left


def _spans(walls: Walls, own: End, peer: End, side: Direction) -> list[Span]:
    groups: tuple[GroupId, ...] = walls.stations.get(own.address, ())
    near: Collection[GroupId] = walls.stations.get(peer.address, ())
    found: list[Span] = []
    for rule in (rule for group in groups for rule in walls.groups.get(group, ())):
        meets = rule.peer in near if rule.names_group else _is_in(peer.address, (rule.peer,))
        if rule.direction == side and meets:
            protocols = PROTOCOLS if rule.protocol == Protocol.ANY else (rule.protocol,)
            found += [(protocol, rule.port_first, rule.port_last) for protocol in protocols]
    return found


def _covers(spans: Iterable[Span], protocol: Protocol, port: int) -> bool:
    return any(each[0] == protocol and each[1] <= port <= each[2] for each in spans)


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sorted, with overlapping and adjacent ranges as one."""
    found: list[Span] = []
    for protocol, first, last in sorted(spans):
        if found and found[-1][0] == protocol and first <= found[-1][2] + 1:
            found[-1] = (protocol, found[-1][1], max(last, found[-1][2]))
        else:
            found.append((protocol, first, last))
    return tuple(found)


def openings_text(spans: Iterable[Span]) -> str:
    """`tcp 22, 80-90; icmp`, or `everything`."""
    ports: dict[Protocol, list[str]] = {}
    for protocol, first, last in spans:
        every = (first, last) == (0, 65_535) or protocol == Protocol.ICMP
        text = "" if every else str(first) if first == last else f"{first}-{last}"
        ports.setdefault(protocol, []).append(text)
    if ports == {protocol: [""] for protocol in PROTOCOLS}:
        return "everything"
    return "; ".join(f"{protocol} {', '.join(texts)}".strip() for protocol, texts in ports.items())


class Edge(msgspec.Struct, frozen=True):
    source: str
    target: str
    allows: str


def graph(walls: Walls, ends: Sequence[End]) -> tuple[Edge, ...]:
    """Every pair of ends with something that can pass."""
    return tuple(
        Edge(source.name, target.name, openings_text(spans))
        for source in ends
        for target in ends
        if source is not target and (spans := openings(walls, source, target))
    )
