"""A guest with root writes IPv6 frames byte by byte. Real packets and the real tables of a host, in namespaces."""

import itertools
import select
import socket
import struct

from tests.engine import frames
from tests.engine.frames import MARK, neighbour
from tests.engine.namespaces import INSIDE6, OUTSIDE6
from tests.engine.sandbox import OUTSIDE_ADDRESS
from tests.engine.test_frame_attacks import (
    EVIL,
    GATEWAYS,
    GROUP,
    LINK_LOCAL,
    NEIGHBOUR,
    NOBODY,
    OPEN,
    PORT,
    STRANGER,
    Stage,
    drained,
    stage,
)

from teraflock.drivers.lxd.families import link_local
from teraflock.drivers.lxd.guard import FRAGMENTS_PER_SECOND
from teraflock.network.ipv6 import six
from teraflock.network.security_group.model import Protocol
from teraflock.network.walls import Packet, Walls, pair

__all__ = ["stage"]
SIX = 0x86DD
GATEWAY = six(GATEWAYS["tfframe0"])
MULTICAST = "33:33:00:00:00:01"
SOLICITED = "ff02::1:ff80:111"
OTHERS = (
    six(STRANGER), six(GATEWAYS["tfframe1"]), GATEWAY, INSIDE6, OUTSIDE6, "::", "::1", f"::ffff:{NEIGHBOUR}",
    f"::{NEIGHBOUR}", "2002:a80:111::1", "2001:0:a80:111::1", "64:ff9b::a80:111", "fe80::1", "ff02::1", "ff02::2",
    "ff02::fb", "ff05::2", "ff0e::1", SOLICITED, "fd3e:9a51:c870:1::a80:111", "fd3e:9a51:c870::a80:1010", "fd00::1",
)  # fmt: skip
"""Other tenants, the host, the outside, tunnels, groups of machines, and addresses that nobody has."""


def contents() -> list[tuple[int, bytes]]:
    """Everything that can follow the header of IPv6, but plain UDP."""
    udp = frames.udp(PORT)
    return [
        *((58, bytes([kind, 0, 0, 0]) + bytes(28) + MARK) for kind in (0, 100, *range(130, 145), 151, 155)),
        (0, bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp),  # hop-by-hop options
        (0, bytes([58, 0, 5, 2, 0, 0, 1, 0]) + bytes([136, 0, 0, 0]) + bytes(20) + MARK),
        (43, bytes([17, 0, 0, 0]) + bytes(4) + udp),  # routing
        (60, bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp),  # options for the receiver
        (60, bytes([60, 0, 1, 4, 0, 0, 0, 0]) + bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp),
        (44, bytes([58, 0, 0, 0]) + bytes(4) + bytes([136, 0, 0, 0]) + bytes(20) + MARK),  # an atomic fragment
        (44, bytes([60, 0, 0, 1]) + bytes(4) + bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp),
        (44, bytes([44, 0, 0, 0]) + bytes(4) + bytes([17, 0, 0, 0]) + bytes(4) + udp),
        (41, frames.ipv6(six(EVIL), six(NEIGHBOUR), udp)),  # IPv6 in IPv6
        (4, frames.ipv4(EVIL, NEIGHBOUR, udp)),  # IPv4 in IPv6
        *((number, MARK + bytes(32)) for number in (1, 2, 47, 50, 51, 59, 88, 103, 112, 132, 135, 139, 253, 255)),
    ]  # fmt: skip


def test_only_plain_packets_with_the_own_address_pass(stage: Stage) -> None:
    own, near = six(EVIL), six(NEIGHBOUR)
    targets = (MULTICAST, "ff:ff:ff:ff:ff:ff", stage.own[NEIGHBOUR], stage.bridge_hardware(), *LINK_LOCAL)
    lies = (*OTHERS, near, link_local(stage.own[EVIL]), link_local(stage.own[NEIGHBOUR]))
    for hardware in targets:
        for source, target in itertools.chain(
            ((lie, each) for lie in lies for each in (near, GATEWAY, "ff02::1", OUTSIDE6)),
            ((own, each) for each in (*OTHERS, link_local(stage.own[NEIGHBOUR]))),
        ):
            stage.send(hardware, frames.ipv6(source, target, frames.udp(PORT)), SIX)
        for number, content in contents():
            for target in (near, GATEWAY, "ff02::1", link_local(stage.own[NEIGHBOUR])):
                stage.send(hardware, frames.ipv6(own, target, content, protocol=number), SIX)
        stage.send(hardware, frames.ipv6(own, near, frames.udp(PORT)), SIX, source="02:00:00:aa:bb:cc")
        assert stage.heard() == NOBODY, hardware
    stage.send(stage.own[NEIGHBOUR], frames.ipv6(own, near, frames.udp(PORT)), SIX)
    piece = bytes([17, 0, 0, 0, 0, 0, 0, 7]) + frames.udp(PORT)
    stage.send(stage.own[NEIGHBOUR], frames.ipv6(own, near, piece, protocol=44), SIX)
    assert len(stage.heard()[NEIGHBOUR]) == 2, "an honest packet and an honest fragment arrive"


def asked(stage: Stage, *sent: tuple[str, bytes, int]) -> list[list[bytes]]:
    """For each content with its source and hop limit: what the neighbour hears of it."""
    found = []
    for source, content, hops in sent:
        for hardware, target in (
            (stage.own[NEIGHBOUR], six(NEIGHBOUR)),
            ("33:33:ff:80:01:11", SOLICITED),
            (MULTICAST, "ff02::1"),
        ):
            packet = frames.ipv6(source, target, content, protocol=58, hops=hops)
            stage.send(hardware, packet, SIX)
        select.select([], [], [], 0.1)
        mine = frames.hardware(stage.own[EVIL])
        found.append([each for each in drained(stage.ears[NEIGHBOUR]) if each[6:12] == mine])
    return found


def test_a_guest_speaks_only_for_its_own_addresses(stage: Stage) -> None:
    own, near = six(EVIL), six(NEIGHBOUR)
    mine, other = stage.own[EVIL], stage.own[NEIGHBOUR]
    local = link_local(mine)
    question, answer = 135, 136
    lies = (
        (own, neighbour(answer, GATEWAY, 2, mine), 255),
        (own, neighbour(answer, near, 2, mine), 255),
        (own, neighbour(answer, six(STRANGER)), 255),
        (own, neighbour(answer, own, 2, other), 255),
        (own, neighbour(answer, own, 1, mine) + bytes(8), 255),
        (own, neighbour(answer, own, 2, mine), 254),
        (local, neighbour(answer, GATEWAY, 2, mine), 255),
        (GATEWAY, neighbour(answer, GATEWAY, 2, mine), 255),
        ("::", neighbour(question, near), 255),
        ("::", neighbour(question, own), 255),
        (own, neighbour(question, near, 1, other), 255),
        (own, neighbour(question, near), 255),
        (own, neighbour(question, near, 1, mine) + neighbour(answer, near, 2, mine)[-8:], 255),
        (near, neighbour(question, near, 1, mine), 255),
        (link_local(other), neighbour(question, near, 1, mine), 255),
        (own, neighbour(question, near, 1, mine), 64),
    )
    for lie, heard in zip(lies, asked(stage, *lies), strict=True):
        assert heard == [], lie
    honest = (
        (own, neighbour(question, near, 1, mine), 255),
        (local, neighbour(question, near, 1, mine), 255),
        (own, neighbour(answer, own, 2, mine), 255),
        (own, neighbour(answer, own), 255),
        (local, neighbour(answer, local, 2, mine), 255),
    )
    for truth, heard in zip(honest, asked(stage, *honest), strict=True):
        assert len(heard) == (3 if truth[1][0] == question else 1), "an answer goes to the one who asked"


def test_nothing_from_outside_reaches_a_guest_with_ipv6(stage: Stage) -> None:
    """Not even when the host routes IPv6 for others, and not as an error about a connection."""
    place, target = stage.place, six(EVIL)
    question = Packet(OUTSIDE6, target, Protocol.UDP, PORT)
    back = Packet(target, OUTSIDE6, question.protocol, PORT)
    assert place.arrived([question, back]) == {question: False, back: False}
    tables = ("tera_frame", "tera_frame_walls")
    for name in tables:
        place.on_host("nft", "delete", "table", "inet", name)
    assert place.arrived([question]) == {question: True}, "only our tables stopped it"


def test_fragments_of_one_guest_are_limited(stage: Stage) -> None:
    own, near = six(EVIL), six(NEIGHBOUR)
    count = 3 * FRAGMENTS_PER_SECOND
    for number in range(count):
        content = struct.pack("!BBHI", 17, 0, 0, number) + frames.udp(PORT)
        stage.send(stage.own[NEIGHBOUR], frames.ipv6(own, near, content, protocol=44), SIX)
    passed = 0
    while heard := stage.heard()[NEIGHBOUR]:
        passed += len(heard)
    assert 0 < passed < count, "one guest cannot fill the memory of all"


def test_errors_about_the_connections_of_others_do_not_pass(stage: Stage) -> None:
    """The kernel believes everybody who quotes a packet of a connection."""
    peers = frozenset({pair("10.128.0.0/20", "10.128.16.0/20")})
    stations = dict.fromkeys((EVIL, NEIGHBOUR, STRANGER), (GROUP,))
    stage.load(Walls(groups={GROUP: OPEN}, stations=stations, peers=peers))
    both = '{ "tfframe0" . "tfframe1", "tfframe1" . "tfframe0" }'
    stage.place.on_host("nft", "add", "element", "inet", "tera_frame", "joined", both)
    servers = {NEIGHBOUR: (STRANGER, OUTSIDE_ADDRESS), six(NEIGHBOUR): (six(STRANGER),)}
    for victim, others in servers.items():
        for server in others:
            stage.place.listen([Packet(victim, server, Protocol.UDP, 53)])
            assert not is_told(stage, victim, server, lies=True), server
        own = six(EVIL) if ":" in victim else EVIL
        assert is_told(stage, victim, own, lies=False), "a server reports that nobody listens"
    stage.place.on_host("nft", "insert", "rule", "inet", "tera_frame_walls", "errors", "accept")
    for victim, others in servers.items():
        assert is_told(stage, victim, others[0], lies=True), "only our rule stopped it"


def is_told(stage: Stage, victim: str, server: str, *, lies: bool) -> bool:
    """Whether a guest hears of an error of its connection with a server. `lies`: EVIL makes one up."""
    with stage.place.opened(victim, Protocol.UDP) as client:
        client.connect((server, 53))
        client.send(b"question")
        udp = struct.pack("!HHHH", client.getsockname()[1], 53, 16, 0) + b"question"
        if ":" in victim:
            body = struct.pack("!BBHI", 1, 4, 0, 0) + frames.ipv6(victim, server, udp)
            content, kind = frames.ipv6(six(EVIL), victim, body, protocol=58), SIX
        else:
            body = struct.pack("!BBHI", 3, 3, 0, 0) + frames.ipv4(victim, server, udp)
            body = body[:2] + struct.pack("!H", frames.checksum(body)) + body[4:]
            content, kind = frames.ipv4(EVIL, NEIGHBOUR, body, protocol=1), 0x0800
        if lies:
            select.select([], [], [], 0.1)
            stage.send(stage.own[NEIGHBOUR], content, kind)
        select.select([client], [], [], 0.5)
        return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
