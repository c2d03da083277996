"""Random security groups, and a slow evaluator of them that shares no code with the rules."""

import ipaddress

from hypothesis import strategies as st

from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Packet, Walls

GROUPS = tuple(GroupId(f"sgr_{letter}") for letter in "abcd")
GUESTS = ("10.128.1.16", "10.128.1.17", "10.128.1.18", "10.128.16.16", "10.128.32.16")
"""Three in one network, and one each in two others."""
SIXES = (
    "fd3e:9a51:c870::a80:110", "fd3e:9a51:c870::a80:111", "fd3e:9a51:c870::a80:112",
    "fd3e:9a51:c870:1::a80:1010", "fd3e:9a51:c870:2::a80:2010",
)  # fmt: skip
"""The IPv6 addresses of the same guests."""
HOME = dict(zip(SIXES, GUESTS, strict=True))
PAIRS = (
    ("10.128.0.0/20", "10.128.16.0/20"),
    ("10.128.0.0/20", "10.128.32.0/20"),
    ("10.128.16.0/20", "10.128.32.0/20"),
)
"""Networks that can be peered."""
OUTSIDE = "198.51.100.2"
OUTSIDE6 = "2001:db8::2"
NETWORKS = (
    "0.0.0.0/0", "10.128.1.0/24", "10.128.1.16/32", "10.128.1.16/31", "10.128.1.18/31", "198.51.100.0/24",
    "198.51.100.2/32", "192.0.2.0/24", "128.0.0.0/1", "10.128.16.0/20",
    "::/0", "fd3e:9a51:c870::/64", "fd3e:9a51:c870::a80:110/128", "fd3e:9a51:c870::/63", "2001:db8::/32", "8000::/1",
)  # fmt: skip
PORTS = (22, 53, 80, 8080)


def rules() -> st.SearchStrategy[Rule]:
    ports = st.tuples(st.sampled_from((1, 22, 50, 80)), st.sampled_from((0, 1, 30, 65_000)))

    def made(
        direction: Direction, protocol: Protocol, peer: str, all_ports: bool, at: tuple[int, int]
    ) -> Rule:
        if all_ports or protocol not in (Protocol.TCP, Protocol.UDP):
            return Rule(direction=direction, protocol=protocol, peer=peer)
        first, more = at
        return Rule(
            direction=direction, protocol=protocol, port_first=first, port_last=first + more, peer=peer
        )

    peers = st.sampled_from((*NETWORKS, *GROUPS))
    return st.builds(made, st.sampled_from(Direction), st.sampled_from(Protocol), peers, st.booleans(), ports)


def walls() -> st.SearchStrategy[Walls]:
    groups = st.fixed_dictionaries(
        {
            group: st.lists(rules(), max_size=6, unique=True).map(lambda found: tuple(sorted(found)))
            for group in GROUPS
        }
    )
    joined = st.sets(st.sampled_from(GROUPS), max_size=3).map(lambda found: tuple(sorted(found)))
    stations = st.fixed_dictionaries({}, optional=dict.fromkeys(GUESTS, joined))
    peers = st.frozensets(st.sampled_from(PAIRS))
    return st.builds(
        lambda groups, stations, peers: Walls(groups=groups, stations=stations, peers=peers),
        groups,
        stations,
        peers,
    )


def packets(ends: tuple[str, ...] = (*GUESTS, OUTSIDE, *SIXES, OUTSIDE6)) -> list[Packet]:
    """Every connection between two ends that the tests try."""
    found = []
    for source in ends:
        for target in ends:
            if source != target and (":" in source) == (":" in target):
                found += [Packet(source, target, Protocol.ICMP)]
                ports = PORTS[::2] if ":" in source else PORTS
                found += [
                    Packet(source, target, p, port) for p in (Protocol.TCP, Protocol.UDP) for port in ports
                ]
    return found


def may(walls: Walls, packet: Packet) -> bool:
    """The slow evaluator: every rule becomes the set of all that it allows. IPv6 does not leave the networks."""
    return (
        OUTSIDE6 not in (packet.source, packet.target)
        and _meet(walls, packet)
        and _side(walls, packet.source, packet.target, "out", packet)
        and _side(walls, packet.target, packet.source, "in", packet)
    )


def _meet(walls: Walls, packet: Packet) -> bool:
    """Whether the ends are in one network, in peered networks, or one of them is outside."""
    networks = {
        str(ipaddress.ip_network(f"{HOME.get(each, each)}/20", strict=False))
        for each in (packet.source, packet.target)
        if each != OUTSIDE
    }
    return len(networks) == 1 or any(networks == set(pair) for pair in walls.peers)


def _side(walls: Walls, own: str, peer: str, way: str, packet: Packet) -> bool:
    if own == OUTSIDE:
        return True
    allowed = []
    for group in walls.stations.get(HOME.get(own, own), ()):
        for rule in walls.groups[group]:
            if str(rule.direction) != way:
                continue
            if rule.peer in GROUPS:
                near = HOME.get(peer, peer) in {
                    each for each, groups in walls.stations.items() if rule.peer in groups
                }
            else:  # an IPv4 network means the guests there, with both addresses
                named = {peer, HOME.get(peer, peer)}
                near = any(ipaddress.ip_address(each) in ipaddress.ip_network(rule.peer) for each in named)
            kinds = {"any": {"tcp", "udp", "icmp"}}.get(str(rule.protocol), {str(rule.protocol)})
            in_range = packet.port == 0 or packet.port in range(rule.port_first, rule.port_last + 1)
            allowed.append(near and str(packet.protocol) in kinds and in_range)
    return any(allowed)
