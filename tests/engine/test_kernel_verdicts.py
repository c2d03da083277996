"""The kernel decides as the rules do, for random security groups, and cuts what a change forbids.

Network namespaces are enough; no engine is needed.
"""

import random
import select
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.engine.namespaces import Namespaces, NoNamespaces, entered
from tests.engine.sandbox import INSIDE_ADDRESS
from tests.unit.network.acl.test_rules import answered, borders, crossed
from tests.unit.network.wall_samples import GUESTS, OUTSIDE, PAIRS, packets, walls

from teraflock.drivers.lxd import firewall
from teraflock.drivers.lxd.enforcing import Enforcing
from teraflock.drivers.lxd.firewall import Bridge, Rules
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Borders, Packet, Published, Walls, decide, network_of

BRIDGES = {f"10.128.{each}.0/20": f"tfkernel{each}" for each in (0, 16, 32)}
"""The bridge of each network."""
TABLE = "tera_kernel_walls"
EVERY = packets()
OPEN = (
    Rule(direction=Direction.IN, protocol=Protocol.ANY, peer="0.0.0.0/0"),
    Rule(direction=Direction.OUT, protocol=Protocol.ANY, peer="0.0.0.0/0"),
)
A, B = GroupId("sgr_a"), GroupId("sgr_b")


@pytest.fixture(scope="module")
def place() -> Iterator[Namespaces]:
    try:
        made = Namespaces({each: BRIDGES[network_of(each)] for each in GUESTS})
    except (NoNamespaces, FileNotFoundError, AssertionError) as reason:
        pytest.skip(str(reason))
    yield made
    made.close()


@pytest.fixture
def enforcing(place: Namespaces) -> Iterator[Enforcing]:
    enforcing = Enforcing(TABLE)
    with entered(place.host):
        assert enforcing.keep(BRIDGES.values())
        yield enforcing
        enforcing.drop()


def tried(place: Namespaces, found: Walls, count: int, seed: int) -> None:
    chosen = random.Random(seed).sample(EVERY, count)
    wanted = {packet: decide(found, packet).passes for packet in chosen}
    got = place.arrived(chosen)
    late = [packet for packet in chosen if wanted[packet] and not got[packet]]
    got |= place.arrived(late)  # a busy machine may need longer; what is forbidden never arrives
    assert got == wanted


def test_before_the_first_load_nothing_passes(place: Namespaces, enforcing: Enforcing) -> None:
    assert place.arrived(EVERY) == dict.fromkeys(EVERY, False)


@settings(
    max_examples=12,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(walls())
def test_kernel_verdicts_equal_the_rules(place: Namespaces, enforcing: Enforcing, found: Walls) -> None:
    """Each example changes what the last one loaded, so changes are tested as well as full loads."""
    enforcing.load(found)
    enforcing.cut(())
    tried(place, found, 60, 1)
    assert enforcing.is_intact()
    before = enforcing._loaded
    fresh = Enforcing(TABLE)
    fresh._bridges = tuple(BRIDGES.values())
    fresh.load(found)
    assert before == fresh._loaded
    assert fresh.is_intact()
    assert fresh._listing == enforcing._listing, "a change leads to the same table as a full load"


def test_a_revoke_cuts_the_connections_that_it_forbids(place: Namespaces, enforcing: Enforcing) -> None:
    one, two, three = GUESTS[:3]
    both = dict.fromkeys((one, two, three), (A,))
    enforcing.load(Walls(groups={A: OPEN}, stations=both))
    enforcing.cut(())
    kept, lost = Packet(one, three, Protocol.TCP, 22), Packet(one, two, Protocol.TCP, 22)
    from_outside = Packet(OUTSIDE, two, Protocol.TCP, 22)
    connections = {packet: Connection(place, packet) for packet in (kept, lost, from_outside)}
    assert all(each.works() for each in connections.values())
    # `two` accepts nothing new any more, but may still send: the other end must not revive a connection.
    closed = Walls(groups={A: OPEN, B: OPEN[1:]}, stations={**both, two: (B,)})
    enforcing.load(closed)
    assert enforcing.cut(()) >= 2
    assert {packet: each.works() for packet, each in connections.items()} == {
        kept: True, lost: False, from_outside: False,
    }  # fmt: skip
    assert not connections[lost].works(backwards=True), "the server cannot go on either"
    for each in connections.values():
        each.close()


def test_a_new_process_cuts_what_a_killed_one_left(place: Namespaces, enforcing: Enforcing) -> None:
    one, two = GUESTS[:2]
    enforcing.load(Walls(groups={A: OPEN}, stations=dict.fromkeys((one, two), (A,))))
    enforcing.cut(())
    connection = Connection(place, Packet(one, two, Protocol.TCP, 80))
    assert connection.works()
    closed = Walls(groups={A: ()}, stations=dict.fromkeys((one, two), (A,)))
    enforcing.load(closed)  # killed before it cuts
    after = Enforcing(TABLE)
    after._bridges = tuple(BRIDGES.values())
    after.load(closed)
    assert after.cut(()) >= 1
    assert not connection.works()
    connection.close()


def test_outside_changes_are_found_and_repaired(place: Namespaces, enforcing: Enforcing) -> None:
    one, two = GUESTS[:2]
    found = Walls(groups={A: OPEN[1:]}, stations=dict.fromkeys((one, two), (A,)))
    packet = Packet(one, two, Protocol.TCP, 22)
    for damage in (
        f"add rule inet {TABLE} gi_a accept",
        f"flush chain inet {TABLE} entering",
        f"delete element inet {TABLE} to {{ {two} }}",
        f"delete table inet {TABLE}",
        "flush ruleset",
    ):
        enforcing.load(found)
        assert enforcing.is_intact()
        place.on_host("nft", *damage.split())
        assert not enforcing.is_intact(), damage
        assert enforcing.keep(BRIDGES.values())
        assert enforcing.is_intact()
        assert place.arrived([packet]) == {packet: False}, damage


def test_other_tables_are_never_touched(place: Namespaces, enforcing: Enforcing) -> None:
    place.on_host("nft", "add", "table", "inet", "foreign")
    place.on_host("nft", "add", "chain", "inet", "foreign", "own")
    before = place.on_host("nft", "list", "table", "inet", "foreign")
    enforcing.load(Walls(groups={A: OPEN}, stations={GUESTS[0]: (A,)}))
    enforcing.load(Walls())
    enforcing.drop()
    assert place.on_host("nft", "list", "table", "inet", "foreign") == before
    place.on_host("nft", "delete", "table", "inet", "foreign")


def test_a_published_port_leads_to_its_guest_until_it_is_closed(
    place: Namespaces, enforcing: Enforcing
) -> None:
    one, two = GUESTS[:2]
    stations = dict.fromkeys((one, two), (A,))
    published = (Published("here", 30_001, one, 80), Published("here", 30_002, two, 80))
    enforcing.load(Walls(groups={A: OPEN}, stations=stations, published=published))
    enforcing.cut(())
    at_host = {port: Packet(OUTSIDE, INSIDE_ADDRESS, Protocol.TCP, port) for port in (30_001, 30_002, 30_003)}
    place.listen([Packet(OUTSIDE, each, Protocol.TCP, 80) for each in (one, two)])
    connections = {
        port: Connection(place, at_host[port], server=server)
        for port, server in ((30_001, one), (30_002, two))
    }
    assert all(each.works() for each in connections.values())
    assert not Connection.is_made(place, at_host[30_003])
    enforcing.load(Walls(groups={A: OPEN}, stations=stations, published=published[1:]))
    assert enforcing.cut(()) >= 1
    assert {port: each.works() for port, each in connections.items()} == {30_001: False, 30_002: True}
    assert not Connection.is_made(place, at_host[30_001])
    enforcing.load(Walls(groups={A: OPEN[1:]}, stations=stations, published=published[1:]))
    assert not Connection.is_made(place, at_host[30_002]), "a published port needs a rule"
    for each in connections.values():
        each.close()


@settings(
    max_examples=8,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(borders())
def test_acls_check_requests_and_replies_at_the_borders_of_subnets(
    place: Namespaces, enforcing: Enforcing, found: Borders
) -> None:
    stations = dict.fromkeys(GUESTS, (A,))
    enforcing.load(Walls(groups={A: OPEN}, stations=stations, borders=found, peers=frozenset(PAIRS)))
    chosen = random.Random(2).sample(EVERY, 80)
    # A datagram only has to arrive; a connection and a ping need their replies, too.
    wanted = {
        each: crossed(found, each) if each.protocol == Protocol.UDP else answered(found, each)
        for each in chosen
    }
    got = place.arrived(chosen)
    got |= place.arrived([each for each in chosen if wanted[each] and not got[each]])
    assert got == wanted


def test_the_end_of_a_peering_cuts_its_connections(place: Namespaces, enforcing: Enforcing) -> None:
    near, far, other = GUESTS[0], GUESTS[3], GUESTS[4]
    stations = dict.fromkeys(GUESTS, (A,))
    enforcing.load(Walls(groups={A: OPEN}, stations=stations, peers=frozenset(PAIRS)))
    enforcing.cut(())
    ends = [(near, far), (far, near), (near, other), (near, GUESTS[1])]
    connections = {each: Connection(place, Packet(*each, Protocol.TCP, 80)) for each in ends}
    assert all(each.works() for each in connections.values())
    enforcing.load(Walls(groups={A: OPEN}, stations=stations, peers=frozenset(PAIRS[1:])))
    assert enforcing.cut(()) >= 2
    assert {each: connection.works() for each, connection in connections.items()} == {
        (near, far): False, (far, near): False, (near, other): True, (near, GUESTS[1]): True,
    }  # fmt: skip
    assert not Connection.is_made(place, Packet(near, far, Protocol.TCP, 80))
    for each in connections.values():
        each.close()


def test_peers_see_each_others_addresses_although_the_engine_translates_them(place: Namespaces) -> None:
    """The engine masquerades what leaves a network. Our table comes before it."""
    near, far, other = GUESTS[0], GUESTS[3], GUESTS[4]
    names = {address: BRIDGES[network_of(address)] for address in (near, far, other)}
    bridges = tuple(Bridge(names[each], each.rsplit(".", 1)[0] + ".1") for each in (near, far, other))
    engine = (
        "table inet engine { chain back { type nat hook postrouting priority srcnat; policy accept;"
        " ip saddr 10.128.0.0/9 masquerade; }; }"
    )
    rules = Rules(bridges=bridges, peered=((names[near], names[far]),))
    place.on_host("nft", "-f", "-", stdin=engine)
    place.on_host("nft", "-f", "-", stdin=firewall.table("tera_peers", rules))
    packet, stranger = Packet(near, far, Protocol.TCP, 8080), Packet(near, other, Protocol.TCP, 8080)
    assert place.arrived([packet, stranger]) == {packet: True, stranger: False}
    connection = Connection(place, packet)
    assert connection.client_as_seen() == near
    connection.close()
    place.on_host("nft", "delete", "table", "inet", "engine")
    place.on_host("nft", "delete", "table", "inet", "tera_peers")


def test_a_stranger_cannot_send_errors_about_the_connections_of_others(place: Namespaces) -> None:
    """An ICMP error belongs to the connection that it quotes, so it passes where replies do."""
    stranger, victim = GUESTS[4], GUESTS[0]
    names = {address: BRIDGES[network_of(address)] for address in (stranger, victim)}
    bridges = tuple(Bridge(names[each], each.rsplit(".", 1)[0] + ".1") for each in names)
    cases: tuple[tuple[tuple[tuple[str, str], ...], bool], ...] = (
        (((names[stranger], names[victim]),), True),
        ((), False),
    )
    place.listen([Packet(victim, OUTSIDE, Protocol.UDP, 53)])
    for peered, is_told in cases:
        place.on_host(
            "nft", "-f", "-", stdin=firewall.table("tera_errors", Rules(bridges=bridges, peered=peered))
        )
        with place.opened(victim, Protocol.UDP) as client:
            client.connect((OUTSIDE, 53))
            client.send(b"question")
            with place.opened(stranger, Protocol.ICMP) as liar:
                liar.sendto(unreachable(client.getsockname(), (OUTSIDE, 53)), (victim, 0))
            select.select([client], [], [], 5 if is_told else 0.5)
            refused = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        assert refused is is_told
    place.on_host("nft", "delete", "table", "inet", "tera_errors")


def unreachable(source: tuple[str, int], target: tuple[str, int]) -> bytes:
    """Port unreachable, with the head of the UDP packet that it answers."""
    ends = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    quoted = struct.pack("!BBHHHBBH", 0x45, 0, 36, 0, 0, 64, 17, 0) + ends
    quoted += struct.pack("!HHHH", source[1], target[1], 16, 0)
    body = struct.pack("!BBHI", 3, 3, 0, 0) + quoted
    total = sum(struct.unpack(f"!{len(body) // 2}H", body))
    total = (total >> 16) + (total & 0xFFFF)
    total += total >> 16
    return body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]


class Connection:
    """An open TCP connection between two places."""

    def __init__(self, place: Namespaces, packet: Packet, *, server: str = "") -> None:
        """`server`: the guest that listens on port 80, behind a port of the host."""
        if not server:
            place.listen([packet])
        listening = place._listening[server or packet.target, packet.protocol, 80 if server else packet.port]
        self._client = place.opened(packet.source, packet.protocol)
        self._client.settimeout(5)
        listening.settimeout(5)
        self._client.connect((packet.target, packet.port))
        self._server, _ = listening.accept()
        listening.setblocking(False)

    @staticmethod
    def is_made(place: Namespaces, packet: Packet) -> bool:
        with place.opened(packet.source, packet.protocol) as client:
            client.settimeout(0.3)
            try:
                client.connect((packet.target, packet.port))
            except OSError:
                return False
            return True

    def works(self, *, backwards: bool = False) -> bool:
        one, other = (self._server, self._client) if backwards else (self._client, self._server)
        other.settimeout(0.3)
        try:
            one.send(b"x")
            return other.recv(1) == b"x"
        except OSError:
            return False

    def client_as_seen(self) -> str:
        """The client's address as the server sees it."""
        return str(self._server.getpeername()[0])

    def close(self) -> None:
        self._client.close()
        self._server.close()
