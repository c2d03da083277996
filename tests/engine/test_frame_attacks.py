"""A guest with root writes frames byte by byte. Whatever it sends, nobody but its own network hears it, and only as
itself. Real packets and the real tables of a host, in network namespaces; no engine is needed.
"""

import json
import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine import frames
from tests.engine.frames import BROADCAST, MARK
from tests.engine.namespaces import INSIDE6, Namespaces, NoNamespaces, entered
from tests.engine.sandbox import INSIDE_ADDRESS, OUTSIDE_ADDRESS

from teraflock.drivers.lxd import counting, firewall, flood, guard, host_links, kernel
from teraflock.drivers.lxd.enforcing import Enforcing
from teraflock.network.ipv6 import six
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Floating, Published, Walls, is_ours

EVIL, NEIGHBOUR, STRANGER = "10.128.1.16", "10.128.1.17", "10.128.16.16"
BRIDGES = {EVIL: "tfframe0", NEIGHBOUR: "tfframe0", STRANGER: "tfframe1"}
GATEWAYS = {"tfframe0": "10.128.1.1", "tfframe1": "10.128.16.1"}
PORT = 9000
GROUP = GroupId("sgr_open")
OPEN = tuple(Rule(direction=way, protocol=Protocol.ANY, peer="0.0.0.0/0") for way in Direction)
LINK_LOCAL = [f"01:80:c2:00:00:{number:02x}" for number in range(16)]
ADDRESSES = (
    EVIL, NEIGHBOUR, STRANGER, GATEWAYS["tfframe0"], INSIDE_ADDRESS, OUTSIDE_ADDRESS, "0.0.0.0", "127.0.0.1",
    "255.255.255.255", "224.0.0.251", "10.128.15.255", "169.254.169.254", "8.8.8.8",
)  # fmt: skip


class Stage:
    """Three guests of two tenants behind all tables of a host. Everyone listens to every frame."""

    def __init__(self, place: Namespaces) -> None:
        self.place = place
        self.own = {address: hardware_of(place, address) for address in BRIDGES}
        bridges = tuple(firewall.Bridge(*each) for each in GATEWAYS.items())
        for text in (
            guard.table("tera_frame_guard", ["tg", "tv"], self.stations()),
            firewall.table("tera_frame", firewall.Rules(bridges=bridges)),
            counting.table("tera_frame_sent", GATEWAYS),
            flood.table("tera_frame_flood", GATEWAYS, flood.FloodLimits(packets_per_second=0)),
        ):
            place.on_host("nft", "-f", "-", stdin=text)
        self.enforcing = Enforcing("tera_frame_walls")
        with entered(place.host):
            assert host_links.secure(GATEWAYS)
            assert self.enforcing.keep(GATEWAYS)
        self.load(Walls(groups={GROUP: OPEN}, stations=dict.fromkeys(BRIDGES, (GROUP,))))
        self.ears = {each: self._ear(place.places[each]) for each in (NEIGHBOUR, STRANGER, OUTSIDE_ADDRESS)}
        with entered(place.host):
            self.host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.host.bind(("0.0.0.0", PORT))
            self.host6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            self.host6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self.host6.bind(("::", PORT))
        with entered(place.places[EVIL]):
            self.link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.link.bind(("eth0", 0))

    def stations(self, *inner: str) -> list[guard.Station]:
        return [
            guard.Station(f"tg{number}", self.own[address], address, is_inner=address in inner)
            for number, address in enumerate(BRIDGES)
        ]

    def load(self, walls: Walls) -> None:
        with entered(self.place.host):
            self.enforcing.load(walls)
            self.enforcing.cut(())

    def _ear(self, network: int) -> socket.socket:
        with entered(network):
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        made.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        made.setblocking(False)
        return made

    def send(self, target: str, content: bytes, kind: int = 0x0800, source: str = "") -> None:
        self.link.send(frames.ethernet(target, source or self.own[EVIL], kind, content))

    def heard(self) -> dict[str, list[bytes]]:
        """The marked frames that arrived at each place since the last call."""
        select.select([], [], [], 0.3)
        found = {name: [each for each in drained(ear) if MARK in each] for name, ear in self.ears.items()}
        found["host"] = [*drained(self.host), *drained(self.host6)]
        return found

    def bridge_hardware(self) -> str:
        listed = json.loads(self.place.on_host("ip", "-j", "link", "show", "dev", "tfframe0"))
        return str(listed[0]["address"])

    def close(self) -> None:
        for each in (*self.ears.values(), self.host, self.host6, self.link):
            each.close()
        self.place.close()


def drained(used: socket.socket) -> list[bytes]:
    """All that arrived. What the place sent itself, such as an ICMP error, did not arrive."""
    found = []
    used.setblocking(False)
    try:
        while True:
            content, sender = used.recvfrom(4096)
            if used.family != socket.AF_PACKET or sender[2] != socket.PACKET_OUTGOING:
                found.append(content)
    except BlockingIOError:
        return found


def hardware_of(place: Namespaces, address: str) -> str:
    with entered(place.places[address]):
        listed = subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout
    return next(str(each["address"]) for each in json.loads(listed) if each["link_type"] == "ether")


@pytest.fixture
def stage() -> Iterator[Stage]:
    try:
        place = Namespaces(BRIDGES)
    except (NoNamespaces, FileNotFoundError, AssertionError) as reason:
        pytest.skip(str(reason))
    made = Stage(place)
    yield made
    made.close()


NOBODY: dict[str, list[bytes]] = {NEIGHBOUR: [], STRANGER: [], OUTSIDE_ADDRESS: [], "host": []}


def test_only_frames_with_the_own_addresses_pass_and_only_in_the_own_network(stage: Stage) -> None:
    targets = (BROADCAST, stage.own[NEIGHBOUR], stage.own[STRANGER], stage.bridge_hardware(), *LINK_LOCAL)
    address = socket.inet_aton(EVIL)
    senders = {(frames.hardware(each), address) for each in (stage.own[EVIL], stage.bridge_hardware())}
    routed = {(address, socket.inet_aton(OUTSIDE_ADDRESS))}
    for hardware in targets:
        for source in ADDRESSES:
            for target in ADDRESSES:
                content = frames.ipv4(source, target, frames.udp(PORT))
                stage.send(hardware, content, source="02:00:00:aa:bb:cc")
                stage.send(hardware, content)
        heard = stage.heard()
        assert (heard[STRANGER], heard["host"]) == ([], []), hardware
        assert {(each[6:12], each[26:30]) for each in heard[NEIGHBOUR]} <= senders, hardware
        assert {each[30:34] for each in heard[NEIGHBOUR]} <= {address, socket.inet_aton(NEIGHBOUR)}, hardware
        left = {(each[26:30], each[30:34]) for each in heard[OUTSIDE_ADDRESS]}
        assert left == (routed if hardware == stage.bridge_hardware() else set()), hardware
    stage.send(stage.own[NEIGHBOUR], frames.ipv4(EVIL, NEIGHBOUR, frames.udp(PORT)))
    assert len(stage.heard()[NEIGHBOUR]) == 1, "an honest packet arrives"


def test_frames_for_bridges_do_not_reach_the_host_past_its_firewall(stage: Stage) -> None:
    """A bridge hands frames to its own protocols to the host, with whatever they contain."""
    vxlan = frames.ipv4(OUTSIDE_ADDRESS, INSIDE_ADDRESS, frames.udp(PORT))
    for hardware in LINK_LOCAL:
        stage.send(hardware, vxlan)
        stage.send(hardware, frames.arp(stage.own[EVIL], "10.9.9.9", INSIDE_ADDRESS, operation=1), 0x0806)
    assert stage.heard() == NOBODY
    assert "10.9.9.9" not in stage.place.on_host("ip", "neighbour", "show")
    for family in guard.PAST_BRIDGES:
        stage.place.on_host("nft", "delete", "table", family, "tera_frame_guard")
    for hardware in LINK_LOCAL:
        stage.send(hardware, vxlan)
        stage.send(hardware, frames.arp(stage.own[EVIL], "10.9.9.9", INSIDE_ADDRESS, operation=1), 0x0806)
    assert stage.heard()["host"] != [], "only our tables stopped it"
    assert "10.9.9.9" in stage.place.on_host("ip", "neighbour", "show")


def test_no_other_kind_of_frame_passes(stage: Stage) -> None:
    inner = frames.ipv4(EVIL, NEIGHBOUR, frames.udp(PORT))
    own, gateway = stage.own[EVIL], GATEWAYS["tfframe0"]
    vlans = [
        frames.tagged(inner, *tags)
        for tags in (
            ((0x8100, 0),),
            ((0x8100, 7),),
            ((0x88A8, 7),),
            ((0x8100, 7), (0x8100, 8)),
            ((0x88A8, 0), (0x8100, 0)),
            ((0x8100, 0), (0x8100, 0), (0x8100, 0)),
        )
    ]
    six = [
        frames.ipv6(source, target, content, protocol=protocol)
        for source in ("fe80::1", "::", "::1", f"::ffff:{EVIL}", "2001:db8::1")
        for target in ("ff02::1", "fe80::2", f"::ffff:{NEIGHBOUR}", "::1")
        for protocol, content in (
            (17, frames.udp(PORT)),
            (58, bytes([134, 0, 0, 0]) + bytes(12) + MARK),  # router advertisement
            (58, bytes([136, 0, 0, 0]) + bytes(20) + MARK),  # neighbour advertisement
            (0, bytes([17, 0, 1, 4, 0, 0, 0, 0]) + frames.udp(PORT)),  # hop-by-hop options
            (44, bytes([17, 0, 0, 1]) + bytes(4) + frames.udp(PORT)),  # a first fragment
            (43, bytes([17, 0, 0, 0]) + bytes(4) + frames.udp(PORT)),  # routing header
        )
    ]
    others = [
        *vlans,
        *((0x86DD, each) for each in six),
        *frames_of_arp(own, gateway),
        (len(inner) + 8, bytes.fromhex("aaaa030000000800") + inner),  # 802.3 with SNAP
        (0x8864, bytes.fromhex("11000001") + len(inner).to_bytes(2, "big") + b"\0\x21" + inner),  # PPPoE
        (0x8847, bytes.fromhex("00001140") + inner),  # MPLS
        (0x88CC, MARK),  # LLDP
        (0x888E, MARK),  # 802.1X
        (0x22F0, MARK),
        (0x0800, b"\x45" + MARK),  # not a whole header
        (0x0800, b"\x65" + inner[1:]),  # IPv6 in its first byte
        (0x86DD, inner),
    ]
    for hardware in (BROADCAST, stage.own[NEIGHBOUR], stage.bridge_hardware(), *LINK_LOCAL):
        for kind, content in others:
            stage.send(hardware, content, kind)
        assert stage.heard() == NOBODY, hardware


def test_a_further_interface_reaches_private_networks_only(stage: Stage) -> None:
    """What a guest sends to the internet is counted at its first interface."""
    inside = frames.ipv4(EVIL, NEIGHBOUR, frames.udp(PORT))
    outside = frames.ipv4(EVIL, OUTSIDE_ADDRESS, frames.udp(PORT))
    question = frames.arp(stage.own[EVIL], EVIL, NEIGHBOUR, operation=1)

    def heard() -> tuple[int, int]:
        stage.send(stage.own[NEIGHBOUR], inside)
        stage.send(stage.bridge_hardware(), outside)
        stage.send(BROADCAST, question, 0x0806)
        for kind, content in frames_of_arp(stage.own[EVIL], GATEWAYS["tfframe0"]):
            stage.send(BROADCAST, content, kind)
        found = stage.heard()
        return len(found[NEIGHBOUR]), len(found[OUTSIDE_ADDRESS])

    first, inner = (stage.stations(*each)[0] for each in ((), (EVIL,)))
    assert heard() == (2, 1)
    stage.place.on_host("nft", "-f", "-", stdin=guard.dismiss("tera_frame_guard", first))
    assert heard() == (0, 0), "a port that is not known cannot send"
    stage.place.on_host("nft", "-f", "-", stdin=guard.admit("tera_frame_guard", inner))
    assert heard() == (2, 0)
    table = guard.table("tera_frame_guard", ["tg", "tv"], stage.stations(EVIL))
    stage.place.on_host("nft", "-f", "-", stdin=table)
    assert heard() == (2, 0)
    stage.place.on_host("nft", "-f", "-", stdin=guard.dismiss("tera_frame_guard", inner))
    assert heard() == (0, 0)


def test_a_guest_cannot_take_the_place_of_another_on_the_bridge(stage: Stage) -> None:
    """A bridge learns where a hardware address is, also from frames for its own protocols that it does not forward."""
    honest = frames.ipv4(EVIL, NEIGHBOUR, frames.udp(PORT))
    stage.send(stage.own[NEIGHBOUR], honest)
    for hardware in LINK_LOCAL:
        stage.send(hardware, bytes(50), 0x88CC, source=stage.own[NEIGHBOUR])
        stage.send(hardware, honest, source=stage.own[NEIGHBOUR])
    stage.send(stage.own[NEIGHBOUR], honest)
    assert len(stage.heard()[NEIGHBOUR]) == 2, "the bridge still finds it"


def test_the_host_says_nothing_about_its_other_addresses(stage: Stage) -> None:
    """Those of other networks would tell which tenants are there, and the others where the operator is."""
    public, own = "203.0.113.9", stage.own[EVIL]
    stage.place.on_host("ip", "link", "set", "lo", "up")
    stage.place.on_host("ip", "address", "add", f"{public}/32", "dev", "lo")
    gateway, other = GATEWAYS.values()
    others = (other, INSIDE_ADDRESS, public, "127.0.0.1")

    def answered() -> set[str]:
        ear = stage._ear(stage.place.places[EVIL])
        for address in (gateway, *others):
            stage.send(BROADCAST, frames.arp(own, EVIL, address, operation=1), 0x0806)
            stage.send(stage.bridge_hardware(), frames.arp(own, EVIL, address, operation=1), 0x0806)
            asking = frames.neighbour(135, six(address) if is_ours(address) else INSIDE6, 1, own)
            packet = frames.ipv6(six(EVIL), six(gateway), asking, protocol=58)
            stage.send(stage.bridge_hardware(), packet, 0x86DD)
        select.select([], [], [], 0.3)
        heard = drained(ear)
        ear.close()
        found = {
            socket.inet_ntoa(each[28:32]) for each in heard if each[12:14] + each[20:22] == b"\x08\x06\0\2"
        }
        about = (
            each[62:78] for each in heard if each[12:14] == b"\x86\xdd" and each[20] == 58 and each[54] == 136
        )
        return found | {socket.inet_ntop(socket.AF_INET6, each) for each in about}

    assert answered() == {gateway, six(gateway)}
    for bridge in GATEWAYS:
        stage.place.on_host("sysctl", "-qw", f"net.ipv4.conf.{bridge}.arp_ignore=0")
    assert answered() >= {INSIDE_ADDRESS, public, GATEWAYS["tfframe1"]}, "only this setting prevents it"
    with entered(stage.place.host):
        host_links.secure(GATEWAYS)
    assert answered() == {gateway, six(gateway)}


def frames_of_arp(own: str, gateway: str) -> list[tuple[int, bytes]]:
    """Replies and requests that lie about who has an address, or about their own sender."""
    lies = (
        (own, gateway),
        (own, NEIGHBOUR),
        (own, "0.0.0.0"),
        ("02:00:00:aa:bb:cc", EVIL),
        (BROADCAST, EVIL),
    )
    return [
        (0x0806, frames.arp(hardware, address, NEIGHBOUR, operation=operation))
        for hardware, address in lies
        for operation in (1, 2, 3, 4)
    ]


def test_a_tag_that_the_guest_gives_to_the_kernel_does_not_pass(stage: Stage) -> None:
    """A VLAN interface in the guest hands its tag over beside the frame, not in it."""
    with entered(stage.place.places[EVIL]):
        for number in (0, 7):
            name = f"eth0.{number}"
            for words in (
                f"link add link eth0 name {name} type vlan id {number}",
                f"link set {name} up",
                f"neighbour replace {NEIGHBOUR} lladdr {stage.own[NEIGHBOUR]} dev {name}",
            ):
                subprocess.run(["ip", *words.split()], check=False, capture_output=True)
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link:
                try:
                    link.bind((name, 0))
                except OSError:
                    continue  # this kernel has no VLAN interfaces
                content = frames.ipv4(EVIL, NEIGHBOUR, frames.udp(PORT))
                for hardware in (BROADCAST, stage.own[NEIGHBOUR], stage.bridge_hardware()):
                    link.send(frames.ethernet(hardware, stage.own[EVIL], 0x0800, content))
    assert stage.heard() == NOBODY


def test_a_request_for_an_address_by_dhcp_is_heard_by_nobody(stage: Stage) -> None:
    """So there is nobody to starve, and no neighbour can answer."""
    discover = frames.udp(67, bytes([1, 1, 6, 0]) + bytes(240) + MARK, source_port=68)
    offer = frames.udp(68, bytes([2, 1, 6, 0]) + bytes(240) + MARK, source_port=67)
    stage.send(BROADCAST, frames.ipv4("0.0.0.0", "255.255.255.255", discover))
    stage.send(BROADCAST, frames.ipv4(EVIL, "255.255.255.255", offer))
    stage.send(BROADCAST, frames.ipv4(GATEWAYS["tfframe0"], "255.255.255.255", offer))
    assert stage.heard() == NOBODY


CLOSED_PORT = 9001
ONE_PORT = Rule(
    direction=Direction.IN, protocol=Protocol.UDP, port_first=PORT, port_last=PORT, peer=f"{EVIL}/32"
)


def guarded(
    stage: Stage, *ports: int, rule: Rule = ONE_PORT, floating: tuple[Floating, ...] = ()
) -> dict[int, socket.socket]:
    """The neighbour lets only `PORT` in, and only from the hostile guest. It listens on all of these."""
    groups = {GROUP: OPEN, GroupId("sgr_one"): (rule,)}
    stations = {**dict.fromkeys(BRIDGES, (GROUP,)), NEIGHBOUR: (GroupId("sgr_one"),)}
    published = (Published("here", 30_001, NEIGHBOUR, 80),)
    stage.load(Walls(groups=groups, stations=stations, published=published, floating=floating))
    found = {}
    for port in ports:
        found[port] = stage.place.opened(NEIGHBOUR, Protocol.UDP)
        found[port].bind((NEIGHBOUR, port))
    return found


def fragments(*parts: tuple[int, bytes, bool], identity: int) -> list[bytes]:
    """Pieces of one datagram: offset, content, and whether more follow."""
    return [
        frames.ipv4(
            EVIL, NEIGHBOUR, content, identity=identity, fragment=(0x2000 if more else 0) | offset // 8
        )
        for offset, content, more in parts
    ]


def test_fragments_hide_no_port(stage: Stage) -> None:
    listening = guarded(stage, PORT, CLOSED_PORT)
    hidden, honest = (frames.udp(port, MARK + bytes(37)) for port in (CLOSED_PORT, PORT))
    assert len(hidden) == 56
    pieces = [
        fragments((0, hidden[:8], True), (8, hidden[8:], False), identity=2),
        fragments((8, hidden[8:], False), (0, hidden[:8], True), identity=3),
        # The head of an allowed datagram, then one over it with another port, in both orders.
        fragments((0, honest[:24], True), (0, hidden[:24], True), (24, hidden[24:], False), identity=4),
        fragments((0, hidden[:24], True), (0, honest[:24], True), (24, hidden[24:], False), identity=5),
        fragments((0, honest[:16], True), (8, hidden[8:24], True), (24, hidden[24:], False), identity=6),
        fragments((0, honest[:24], True), identity=7),
        fragments((65_528, hidden[:16], False), (0, hidden[:8], True), identity=8),  # longer than any packet
    ]
    for each in (part for several in pieces for part in several):
        stage.send(stage.own[NEIGHBOUR], each)
    select.select([], [], [], 0.3)
    assert drained(listening[CLOSED_PORT]) == []
    for each in fragments((0, honest[:24], True), (24, honest[24:], False), identity=9):
        stage.send(stage.own[NEIGHBOUR], each)
    select.select([], [], [], 0.3)
    assert honest[8:] in drained(listening[PORT]), "an honest datagram in two pieces arrives"
    for used in listening.values():
        used.close()


def test_incomplete_fragments_of_a_guest_do_not_use_up_the_memory_of_others(stage: Stage) -> None:
    """A host keeps the pieces of all guests' datagrams together, for half a minute."""
    stage.place.on_host("sysctl", "-qw", f"net.ipv4.ipfrag_high_thresh={kernel.FRAGMENT_BYTES_MIN}")
    piece = frames.udp(PORT)[:16]
    for number in range(40_000):
        stage.send(
            stage.own[NEIGHBOUR], frames.ipv4(EVIL, NEIGHBOUR, piece, identity=number, fragment=0x2000)
        )
    with entered(stage.place.host):
        kept = int(Path("/proc/thread-self/net/sockstat").read_text().split("FRAG:")[1].split()[3])
    assert 0 < kept < kernel.FRAGMENT_BYTES_MIN / 10
    with stage.place.opened(STRANGER, Protocol.UDP) as honest:
        honest.sendto(bytes(3000) + MARK, (OUTSIDE_ADDRESS, PORT))
    assert stage.heard()[OUTSIDE_ADDRESS] != [], "another guest's datagram in pieces arrives"


def test_a_route_that_the_sender_chose_leads_nowhere(stage: Stage) -> None:
    """Loose and strict source routes through the gateway, to where a direct packet may not go."""
    listening = guarded(stage, CLOSED_PORT)
    for kind in (131, 137):
        for last in (NEIGHBOUR, STRANGER, INSIDE_ADDRESS, "127.0.0.1"):
            options = bytes([kind, 7, 4]) + socket.inet_aton(last) + b"\0"
            for first in (GATEWAYS["tfframe0"], INSIDE_ADDRESS):
                for port in (CLOSED_PORT, PORT):
                    content = frames.ipv4(EVIL, first, frames.udp(port), options=options)
                    for hardware in (stage.bridge_hardware(), BROADCAST, *LINK_LOCAL):
                        stage.send(hardware, content)
    heard = stage.heard()
    assert (heard[STRANGER], heard["host"], heard[NEIGHBOUR]) == ([], [], [])
    assert drained(listening[CLOSED_PORT]) == []
    listening[CLOSED_PORT].close()


def test_a_way_through_the_host_shows_who_comes(stage: Stage) -> None:
    """A published port and a public address lead back into the network. The group of the target sees the guest, and not
    the host, and other tenants do not get in that way either."""
    public = "203.0.113.9"
    stage.place.on_host("ip", "link", "set", "lo", "up")
    stage.place.on_host("ip", "address", "add", f"{public}/32", "dev", "lo")
    server = stage.place.opened(NEIGHBOUR, Protocol.TCP)
    server.bind((NEIGHBOUR, 80))
    server.listen()
    server.settimeout(5)

    def tried(source: str, target: tuple[str, int]) -> str:
        """The client's address as the server sees it."""
        with stage.place.opened(source, Protocol.TCP) as client:
            client.settimeout(0.5)
            if client.connect_ex(target) != 0:
                return ""
            seen, (address, _) = server.accept()
            seen.close()
            return str(address)

    for target in ((INSIDE_ADDRESS, 30_001), (public, 80)):
        guarded(stage)
        for source in (EVIL, STRANGER, OUTSIDE_ADDRESS):
            assert tried(source, target) == "", "no rule lets it in"
        for source in (EVIL, STRANGER, OUTSIDE_ADDRESS):
            rule = Rule(direction=Direction.IN, protocol=Protocol.TCP, peer=f"{source}/32")
            guarded(stage, rule=rule, floating=(Floating(public, NEIGHBOUR),))
            found = {each: tried(each, target) for each in (EVIL, STRANGER, OUTSIDE_ADDRESS)}
            wanted = dict.fromkeys(found, "")
            assert found == (wanted if source == STRANGER else {**wanted, source: source})
    server.close()
