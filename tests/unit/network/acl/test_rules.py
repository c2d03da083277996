"""ACLs: the lowest number decides, nothing is remembered, and bad words get one sentence."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.network.wall_samples import (
    GUESTS,
    HOME,
    NETWORKS,
    OUTSIDE,
    OUTSIDE6,
    PAIRS,
    PORTS,
    SIXES,
    packets,
)

from teraflock.base.errors import BadInput, UnknownName
from teraflock.network.acl.model import AclAction, AclRule
from teraflock.network.acl.rules import passes, rule_from
from teraflock.network.openings import openings
from teraflock.network.reach import INTERNET, REPLY_PORT, End, Stop, reach
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Borders, Packet, Walls

A = GroupId("sgr_a")
OPEN = tuple(Rule(direction=way, protocol=Protocol.ANY, peer="0.0.0.0/0") for way in Direction)
WALLS = Walls(groups={A: OPEN}, stations={GUESTS[0]: (A,)})
SPANS = ((0, 65_535), (1, 22), (50, 80), (1024, 65_535), (22, 22))


def acls() -> st.SearchStrategy[tuple[AclRule, ...]]:
    def made(words: list[tuple[Direction, AclAction, Protocol, tuple[int, int], str]]) -> tuple[AclRule, ...]:
        return tuple(
            AclRule(
                direction=way,
                number=number,
                action=action,
                protocol=protocol,
                port_first=span[0] if protocol in (Protocol.TCP, Protocol.UDP) else 0,
                port_last=span[1] if protocol in (Protocol.TCP, Protocol.UDP) else 65_535,
                peer=peer,
            )
            for number, (way, action, protocol, span, peer) in enumerate(words, start=1)
        )

    words = st.tuples(
        st.sampled_from(Direction),
        st.sampled_from(AclAction),
        st.sampled_from(Protocol),
        st.sampled_from(SPANS),
        st.sampled_from(NETWORKS),
    )
    return st.lists(words, max_size=6).map(made)


def borders() -> st.SearchStrategy[Borders]:
    """ACLs of some subnets of three networks. A subnet without one is None."""
    acl = st.one_of(st.none(), acls())
    first = st.fixed_dictionaries(
        {"10.128.0.0/20": acl}, optional={"10.128.1.16/31": acl, "10.128.1.0/28": acl}
    )
    others = st.fixed_dictionaries({}, optional={"10.128.16.0/20": acl, "10.128.32.0/20": acl})
    return st.tuples(first, others).map(lambda found: found[0] | found[1])


def crossed(borders: Borders, packet: Packet) -> bool:
    """The slow evaluator of one packet at the borders: find the smallest subnet of each end, walk down its numbers."""

    def home(address: str) -> str:
        found = [each for each in borders if ip_address(HOME.get(address, address)) in ip_network(each)]
        return min(found, key=lambda each: ip_network(each).num_addresses, default="")

    if OUTSIDE6 in packet.ends:
        return False
    source, target = home(packet.source), home(packet.target)
    if source and source == target:
        return True
    for subnet, way, peer in ((source, "out", packet.target), (target, "in", packet.source)):
        rules = borders.get(subnet)
        if rules is None:
            continue
        for rule in sorted(rules, key=lambda each: each.number):
            named = str(rule.protocol) in ("any", str(packet.protocol))
            in_range = packet.protocol == Protocol.ICMP or rule.port_first <= packet.port <= rule.port_last
            near = any(ip_address(each) in ip_network(rule.peer) for each in {peer, HOME.get(peer, peer)})
            if str(rule.direction) == way and named and in_range and near:
                if rule.action == AclAction.DENY:
                    return False
                break
        else:
            return False
    return True


def answered(borders: Borders, packet: Packet) -> bool:
    """A packet and its reply."""
    port = 0 if packet.protocol == Protocol.ICMP else REPLY_PORT
    back = Packet(packet.target, packet.source, packet.protocol, port)
    return crossed(borders, packet) and crossed(borders, back)


@settings(max_examples=40)
@given(borders())
def test_the_borders_of_subnets_equal_the_slow_evaluator(found: Borders) -> None:
    walls = Walls(
        groups={A: OPEN}, stations=dict.fromkeys(GUESTS, (A,)), borders=found, peers=frozenset(PAIRS)
    )
    ends = {
        each: End(name=each, address=each, site="here", open_ports=frozenset(PORTS))
        for each in (*GUESTS, *SIXES)
    }
    ends |= {each: End(name=INTERNET, address=each) for each in (OUTSIDE, OUTSIDE6)}
    for packet in packets():
        source, target = ends[packet.source], ends[packet.target]
        if not source.site and packet.protocol != Protocol.TCP:
            continue
        wanted = answered(found, packet)
        assert (reach(walls, source, target, packet.protocol, packet.port).stop is None) == wanted, packet
        spans = openings(walls, source, target)
        assert any(p == packet.protocol and a <= packet.port <= b for p, a, b in spans) == wanted, packet


def walked(rules: tuple[AclRule, ...], way: Direction, protocol: Protocol, port: int) -> bool:
    """The slow evaluator: walk down the numbers."""
    for rule in rules:
        near = rule.peer in ("0.0.0.0/0", "198.51.100.0/24", "198.51.100.2/32", "128.0.0.0/1")
        meant = str(rule.protocol) in ("any", str(protocol))
        reached = protocol == Protocol.ICMP or rule.port_first <= port <= rule.port_last
        if rule.direction == way and near and meant and reached:
            return rule.action == AclAction.ALLOW
    return False


@given(acls())
def test_the_lowest_number_decides(rules: tuple[AclRule, ...]) -> None:
    for way in Direction:
        for protocol in (Protocol.TCP, Protocol.UDP, Protocol.ICMP):
            for port in (0,) if protocol == Protocol.ICMP else (*PORTS, REPLY_PORT):
                wanted = walked(rules, way, protocol, port)
                assert passes(reversed(rules), way, OUTSIDE, protocol, port) == wanted


@given(acls())
def test_a_check_and_the_graph_see_requests_and_replies(rules: tuple[AclRule, ...]) -> None:
    guest = End(name="web", address=GUESTS[0], site="here", open_ports=frozenset(PORTS))
    walls = replace(WALLS, borders={"10.128.0.0/20": rules})
    internet = End(name=INTERNET, address=OUTSIDE)
    for source, target, there, back in (
        (guest, internet, Direction.OUT, Direction.IN),
        (internet, guest, Direction.IN, Direction.OUT),
    ):
        spans = openings(walls, source, target)
        for port in PORTS:
            asked = walked(rules, there, Protocol.TCP, port)
            answered = walked(rules, back, Protocol.TCP, REPLY_PORT)
            stop = None if asked and answered else Stop.ACL if not asked else Stop.ACL_REPLY
            assert reach(walls, source, target, Protocol.TCP, port).stop == stop
            assert any(p == Protocol.TCP and a <= port <= b for p, a, b in spans) == (stop is None)


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        (("in", 0, "allow", "tcp", "80", "0.0.0.0/0"), BadInput, "`0` cannot be the number of a rule"),
        (("in", 40_000, "allow", "tcp", "80", "0.0.0.0/0"), BadInput, "`40000` cannot be the number"),
        (("in", 1, "allow", "tcp", "80", "sg:web"), BadInput, "cannot name a security group"),
        (("in", 1, "allow", "tcp", "80", "10.0.0.1/8"), BadInput, "has host bits set"),
        (("up", 1, "allow", "tcp", "80", "10.0.0.0/8"), UnknownName, "Unknown direction `up`"),
        (("in", 1, "allow", "icmp", "80", "10.0.0.0/8"), BadInput, "has no ports"),
    ],
)
def test_bad_words_get_one_sentence(
    words: tuple[str, int, str, str, str, str], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        rule_from(*words)
