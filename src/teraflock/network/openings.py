"""Everything that can pass between ends: who can reach whom. Pure, from the same rules as `reach.py`."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from teraflock.network.acl.model import AclAction, AclRule
from teraflock.network.ipv6 import four, is_six
from teraflock.network.reach import REPLY_PORT, End, crosses, guards, is_in, used, with_ipv6
from teraflock.network.security_group.model import Direction, GroupId, Protocol
from teraflock.network.walls import Borders, Walls, are_apart

PROTOCOLS: Final = (Protocol.TCP, Protocol.UDP, Protocol.ICMP)
Span = tuple[Protocol, int, int]


def openings(walls: Walls, source: End, target: End) -> tuple[Span, ...]:
    """What can pass from one end to the other: protocols with their ranges of ports, sorted and joined."""
    every = [(protocol, 0, 65_535) for protocol in PROTOCOLS]
    outs = _spans(walls, source, target, Direction.OUT) if source.site else every
    ins = _spans(walls, target, source, Direction.IN) if target.site else every
    both = _common(outs, ins)
    if target.site and not source.site and not target.is_public:
        both = [(Protocol.TCP, p, p) for p in target.open_ports if _covers(both, Protocol.TCP, p)]
    if source.site and target.site:
        apart = source.site != target.site or are_apart(walls, source.address, target.address)
    else:
        apart = source.is_inner or target.is_inner or is_six(source.address) or is_six(target.address)
    return () if apart else joined(_through_borders(both, walls.borders, source, target))


def _through_borders(spans: list[Span], borders: Borders, source: End, target: End) -> list[Span]:
    """The parts of the spans that the ACLs let pass in both directions."""
    answered = [
        protocol
        for protocol in PROTOCOLS
        if crosses(
            borders,
            target.address,
            source.address,
            protocol,
            0 if protocol == Protocol.ICMP else REPLY_PORT,
        )
    ]
    for rules, side, peer in guards(borders, source.address, target.address):
        spans = _common(spans, _acl_spans(rules, side, peer))
    return [each for each in spans if each[0] in answered]


def _acl_spans(rules: Iterable[AclRule], side: Direction, peer: str) -> list[Span]:
    """What an ACL lets pass to or from an address: each rule takes its part of what is left."""
    left: list[Span] = [(protocol, 0, 65_535) for protocol in PROTOCOLS]
    found: list[Span] = []
    for rule in sorted(rules):
        if rule.direction == side and is_in(peer, (rule.peer,)):
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
    groups: tuple[GroupId, ...] = walls.stations.get(four(own.address), ())
    near: Collection[GroupId] = walls.stations.get(four(peer.address), ())
    found: list[Span] = []
    for rule in (rule for group in groups for rule in walls.groups.get(group, ())):
        meets = rule.peer in near if rule.names_group else is_in(peer.address, (rule.peer,))
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


def graph(walls: Walls, ends: Sequence[Sequence[End]]) -> tuple[Edge, ...]:
    """Every pair of ends with something that can pass. Each end has all its interfaces, the first one first."""
    return tuple(
        Edge(sources[0].name, targets[0].name, allows)
        for sources in ends
        for targets in ends
        if sources is not targets and (allows := _allows(walls, sources, targets))
    )


def _allows(walls: Walls, sources: Sequence[End], targets: Sequence[End]) -> str:
    """What passes, and what passes with IPv6 only: rules with IPv6 networks allow that."""
    spans = joined(_all_openings(walls, sources, targets))
    pairs = [[six for each in ends if (six := with_ipv6(each))] for ends in (sources, targets)]
    more = _without(joined(_all_openings(walls, *pairs)), spans) if all(pairs) else []
    texts = (openings_text(spans), f"IPv6: {openings_text(more)}" if more else "")
    return "; ".join(filter(None, texts))


def _all_openings(walls: Walls, sources: Sequence[End], targets: Sequence[End]) -> Iterator[Span]:
    for target in targets:
        yield from openings(walls, used(sources, target.address), target)
