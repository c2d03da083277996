"""Who can reach whom: the answer agrees with the firewall's rules, step by step and as a whole picture."""

from hypothesis import given
from tests.unit.network.wall_samples import GUESTS, OUTSIDE, OUTSIDE6, PORTS, SIXES, may, walls

from teraflock.network.acl.rules import rule_from
from teraflock.network.openings import graph, joined, openings, openings_text
from teraflock.network.reach import INTERNET, End, Stop, anyone, reach
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Packet, Walls

ENDS = {
    **{
        each: End(name=each, address=each, site="here", open_ports=frozenset({22, 80}))
        for each in (*GUESTS, *SIXES)
    },
    **{each: End(name=INTERNET, address=each) for each in (OUTSIDE, OUTSIDE6)},
}
KINDS = [(Protocol.ICMP, 0), *((p, n) for p in (Protocol.TCP, Protocol.UDP) for n in PORTS)]


def passes(found: Walls, source: End, target: End, protocol: Protocol, port: int) -> bool:
    """The rules, and that the host opens only some ports."""
    is_open = bool(source.site) or (protocol == Protocol.TCP and port in target.open_ports)
    return is_open and may(found, Packet(source.address, target.address, protocol, port))


@given(walls())
def test_the_answer_and_the_picture_agree_with_the_rules(found: Walls) -> None:
    for source in ENDS.values():
        for target in ENDS.values():
            if source is target or (":" in source.address) != (":" in target.address):
                continue
            spans = openings(found, source, target)
            for protocol, port in KINDS:
                wanted = passes(found, source, target, protocol, port)
                answer = reach(found, source, target, protocol, port)
                assert (answer.stop is None) == wanted, (source.name, target.name, protocol, port, answer)
                assert any(p == protocol and a <= port <= b for p, a, b in spans) == wanted
                if wanted:
                    assert (answer.leaving is not None) == bool(source.site)
                    assert (answer.entering is not None) == bool(target.site)


def a_rule(peer: str, port: int, side: Direction = Direction.IN) -> Rule:
    return Rule(direction=side, protocol=Protocol.TCP, port_first=port, port_last=port, peer=peer)


OUT = Rule(direction=Direction.OUT, protocol=Protocol.ANY, peer="0.0.0.0/0")
A = GroupId("sgr_a")


def one_guest(*rules: Rule) -> Walls:
    return Walls(groups={A: rules}, stations={GUESTS[0]: (A,)})


def test_each_obstacle_is_named() -> None:
    guest, internet = ENDS[GUESTS[0]], ENDS[OUTSIDE]
    stranger = End(name="10.129.0.16", address="10.129.0.16")
    metadata = End(name="169.254.169.254", address="169.254.169.254")
    elsewhere = End(name="far", address=GUESTS[1], site="there")
    tcp = Protocol.TCP
    assert reach(one_guest(), guest, internet, tcp, 80).stop == Stop.OUT
    assert reach(one_guest(OUT), guest, metadata, tcp, 80).stop == Stop.CLOSED
    assert reach(one_guest(OUT), guest, stranger, tcp, 80).stop == Stop.APART
    assert reach(one_guest(OUT), guest, elsewhere, tcp, 80).stop == Stop.APART
    assert reach(one_guest(OUT), stranger, guest, tcp, 22).stop == Stop.APART
    assert reach(one_guest(a_rule("0.0.0.0/0", 8080)), internet, guest, tcp, 8080).stop == Stop.UNPUBLISHED
    assert reach(one_guest(a_rule("0.0.0.0/0", 80)), internet, guest, tcp, 22).stop == Stop.IN
    assert reach(one_guest(a_rule("0.0.0.0/0", 22)), internet, guest, tcp, 22).stop is None


def test_ipv6_to_the_outside_is_stopped_by_no_group() -> None:
    """A hint to allow it there would lead nowhere."""
    guest, outside = ENDS[SIXES[0]], ENDS[OUTSIDE6]
    for rules in ((), (OUT,), (a_rule("2001:db8::/32", 80, Direction.OUT),)):
        assert reach(one_guest(*rules), guest, outside, Protocol.TCP, 80).stop == Stop.IPV6
        assert reach(one_guest(*rules), outside, guest, Protocol.TCP, 80).stop == Stop.IPV6


def test_an_allowed_network_is_not_closed() -> None:
    guest = End(name="web", address=GUESTS[0], site="here", allowed_out=("192.168.7.0/24",))
    near = End(name="192.168.7.9", address="192.168.7.9")
    assert reach(one_guest(OUT), guest, near, Protocol.TCP, 80).stop is None


def test_the_internet_is_nobody_in_particular() -> None:
    narrow = a_rule("192.0.2.0/24", 22)
    stands_for_all = anyone([narrow])
    assert not stands_for_all.startswith("192.0.2.")
    assert anyone([rule_from("in", 1, "deny", "any", "", "192.0.2.0/24")]) == stands_for_all
    internet = End(name=INTERNET, address=stands_for_all)
    answer = reach(one_guest(narrow), internet, ENDS[GUESTS[0]], Protocol.TCP, 22)
    assert (answer.stop, answer.only_from) == (Stop.IN, ("192.0.2.0/24",))


def test_openings_are_joined_and_written_shortly() -> None:
    tcp, udp, icmp = Protocol.TCP, Protocol.UDP, Protocol.ICMP
    assert joined([(tcp, 80, 90), (tcp, 22, 22), (tcp, 91, 95), (tcp, 85, 86)]) == (
        (tcp, 22, 22),
        (tcp, 80, 95),
    )
    assert openings_text(joined([(tcp, 80, 90), (tcp, 22, 22), (icmp, 0, 65_535)])) == "icmp; tcp 22, 80-90"
    assert openings_text([(p, 0, 65_535) for p in (tcp, udp, icmp)]) == "everything"
    assert openings_text([(udp, 0, 65_535)]) == "udp"


def test_the_graph_has_an_edge_for_each_pair_that_can_connect() -> None:
    group = Walls(
        groups={A: (a_rule("sgr_a", 5432), a_rule("0.0.0.0/0", 22), OUT)},
        stations=dict.fromkeys(GUESTS[:2], (A,)),
    )
    ends = [(ENDS[name],) for name in (OUTSIDE, *GUESTS[:2])]
    found = {(each.source, each.target): each.allows for each in graph(group, ends)}
    assert found == {
        (INTERNET, GUESTS[0]): "tcp 22",
        (INTERNET, GUESTS[1]): "tcp 22",
        (GUESTS[0], INTERNET): "everything",
        (GUESTS[1], INTERNET): "everything",
        (GUESTS[0], GUESTS[1]): "tcp 22, 5432",
        (GUESTS[1], GUESTS[0]): "tcp 22, 5432",
    }
