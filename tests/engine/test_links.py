"""Links between hosts, with real packets: two hosts made of network namespaces, without an engine."""

import os
import select
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.namespaces import NoNamespaces, answered, echo, entered, new_network

from teraflock.drivers.lxd.linking import Linking
from teraflock.drivers.lxd.names import Names, hardware_address
from teraflock.network.fabric import Fabric, LinkHost, NetworkMember, WireKey, fabrics
from teraflock.network.ipv6 import is_six, six

OURS = Names("linktest")
PROJECT = "prj_links"
BRIDGE = OURS.bridge(PROJECT)
OUTER = ("192.0.2.1", "192.0.2.2")
GUESTS = ("10.128.0.16", "10.128.0.17")
NOBODY = "10.128.0.77"
PINGS_MAX = 3
PING_SECONDS = 0.4
ENCRYPTS = shutil.which("wg") is not None and shutil.which("wireguard-go") is not None


class Host:
    """A host with one bridge and one guest."""

    def __init__(self, place: int, folder: Path) -> None:
        self.place = place
        self.network, self.guest = new_network(), new_network()
        self.names = Names("linktest")
        self.names.wire = f"tw{os.getpid():08x}{place}"  # their sockets share a folder here
        self.linking = Linking(self.names, folder / str(place))
        self.on_host("ip", "link", "set", "lo", "up")
        self.on_host("ip", "link", "add", BRIDGE, "type", "bridge")
        self.on_host("ip", "address", "add", "10.128.0.1/20", "dev", BRIDGE)
        self.on_host("ip", "link", "set", BRIDGE, "up")
        self.on_host("ip", "address", "add", f"{six('10.128.0.1')}/64", "dev", BRIDGE, "nodad")
        path = path_of(self.guest)
        hardware = hardware_address("linktest", GUESTS[place])
        self.on_host("ip", "link", "add", "port", "type", "veth", "peer", "name", "eth0", "netns", path)
        self.on_host("ip", "link", "set", "port", "master", BRIDGE, "up")
        self.in_guest("ip", "link", "set", "eth0", "address", hardware, "up")
        self.in_guest("ip", "address", "add", f"{GUESTS[place]}/20", "dev", "eth0")
        self.in_guest("ip", "address", "add", f"{six(GUESTS[place])}/64", "dev", "eth0", "nodad")

    def on_host(self, *command: str) -> str:
        return run(self.network, *command)

    def in_guest(self, *command: str) -> str:
        return run(self.guest, *command)

    def apply(self, fabric: Fabric) -> None:
        with entered(self.network):
            self.linking.apply(fabric, [BRIDGE], lambda link: None)

    def wire(self) -> WireKey:
        with entered(self.network):
            return self.linking.key() if ENCRYPTS else WireKey()

    def pings(self, address: str, *, source: str = "") -> bool:
        return pinged(self.guest, address, source)

    def pings_at_last(self, address: str) -> bool:
        """WireGuard repeats a greeting that was lost after five seconds."""
        return any(self.pings(address) for _ in range(20))

    def close(self) -> None:
        with entered(self.network):
            self.linking.drop()


def run(network: int, *command: str) -> str:
    with entered(network):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def path_of(network: int) -> str:
    return f"/proc/{os.getpid()}/fd/{network}"


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    if any(shutil.which(each) is None for each in ("ip", "bridge", "nft")):
        pytest.skip("not installed: ip, bridge or nft")
    try:
        one, two = Host(0, tmp_path), Host(1, tmp_path)
    except NoNamespaces as reason:
        pytest.skip(str(reason))
    ends = ("wire", "type", "veth", "peer", "name", "wire", "netns", path_of(two.network))
    one.on_host("ip", "link", "add", *ends)
    for host in (one, two):
        host.on_host("ip", "address", "add", f"{OUTER[host.place]}/24", "dev", "wire")
        host.on_host("ip", "link", "set", "wire", "up")
    yield one, two
    one.close()
    two.close()


def wanted(
    hosts: tuple[Host, Host], *, trusted: bool, members: tuple[str, ...] = GUESTS
) -> dict[str, Fabric]:
    found = [
        LinkHost(
            site=str(each.place),
            address=OUTER[each.place],
            number=each.place + 1,
            wire=each.wire(),
            trusted=trusted,
        )
        for each in hosts
    ]
    return fabrics(
        found, [NetworkMember(str(place), PROJECT, 7, address) for place, address in enumerate(members)]
    )


def linked(hosts: tuple[Host, Host], fabric: dict[str, Fabric]) -> None:
    for host in hosts:
        host.apply(fabric[str(host.place)])


@pytest.mark.parametrize("form", ["plain", "encrypted"])
def test_guests_reach_each_other_and_nobody_else_gets_in(hosts: tuple[Host, Host], form: str) -> None:
    if form == "encrypted" and not ENCRYPTS:
        pytest.skip("wireguard-tools and wireguard-go are not installed")
    one, two = hosts
    assert not one.pings(GUESTS[1]), "two bridges"
    assert not one.pings(six(GUESTS[1]))
    fabric = wanted(hosts, trusted=form == "plain")
    linked(hosts, fabric)
    assert one.pings_at_last(GUESTS[1])
    assert two.pings_at_last(GUESTS[0])
    assert one.pings_at_last(six(GUESTS[1]))
    assert two.pings_at_last(six(GUESTS[0]))
    assert one.pings("10.128.0.1"), "every host is its guests' gateway"
    assert pinged(one.network, OUTER[1]), "other traffic of the host is untouched"
    # A guest that takes another address is not heard on the other host.
    two.in_guest("ip", "address", "add", f"{NOBODY}/20", "dev", "eth0")
    assert not two.pings(GUESTS[0], source=NOBODY)
    two.in_guest("ip", "address", "add", f"{six(NOBODY)}/64", "dev", "eth0", "nodad")
    assert not two.pings(six(GUESTS[0]), source=six(NOBODY))
    two.in_guest("ip", "link", "set", "eth0", "address", "02:00:00:00:00:99")
    assert not two.pings(GUESTS[0])
    assert not two.pings(six(GUESTS[0]))
    two.in_guest("ip", "link", "set", "eth0", "address", hardware_address("linktest", GUESTS[1]))
    # A host whose peer is removed hears nothing more from it.
    one.apply(Fabric())
    assert not two.pings(GUESTS[0])
    linked(hosts, fabric)
    assert two.pings_at_last(GUESTS[0])


def test_a_stranger_on_the_wire_cannot_send_frames(hosts: tuple[Host, Host]) -> None:
    """A machine with an address that is no peer's sends a well-formed frame of a known guest."""
    two = hosts[1]
    linked(hosts, wanted(hosts, trusted=True))
    assert two.pings_at_last(GUESTS[0])
    two.on_host("ip", "address", "add", "192.0.2.66/24", "dev", "wire")
    two.on_host("ip", "address", "delete", f"{OUTER[1]}/24", "dev", "wire")
    two.on_host("ip", "address", "replace", "192.0.2.66/24", "dev", "wire")
    assert not two.pings(GUESTS[0])


def test_a_guest_cannot_send_frames_through_its_host(hosts: tuple[Host, Host]) -> None:
    """A guest sends VXLAN packets to the other host. Translated, they come from the address of a linked host."""
    one, two = hosts
    linked(hosts, wanted(hosts, trusted=True))
    run(one.network, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    with entered(one.network):
        subprocess.run(["nft", "-f", "-"], input=TRANSLATED.encode(), check=True)
    with entered(two.network):
        subprocess.run(["nft", "-f", "-"], input=COUNTER.encode(), check=True)
    one.in_guest("ip", "route", "add", "default", "via", "10.128.0.1")
    forge(one)
    assert sent(two) == 0
    one.on_host("nft", "delete", "chain", "inet", OURS.links_table, "forward")
    forge(one)
    assert sent(two) > 0, "only our table stopped it"


TRANSLATED = """table ip engine {
  chain out { type nat hook postrouting priority srcnat; oifname "wire" ip saddr 10.128.0.0/9 masquerade; }
}
"""


def forge(host: Host) -> None:
    with entered(host.guest):
        used = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with used:
        for _ in range(3):
            used.sendto(b"\x08" + bytes(7), (OUTER[1], 8734))


def test_links_are_repaired(hosts: tuple[Host, Host]) -> None:
    one = hosts[0]
    fabric = wanted(hosts, trusted=True)
    linked(hosts, fabric)
    one.on_host("nft", "flush", "ruleset")
    linked(hosts, fabric)
    assert "receive" in one.on_host("nft", "list", "table", "inet", OURS.links_table)
    one.on_host("ip", "link", "delete", OURS.link(7))
    linked(hosts, fabric)
    assert one.pings(GUESTS[1])
    again = Linking(Names("linktest"), Path("/nonexistent"))  # another process, after a crash
    with entered(one.network):
        again.apply(fabric["0"], [BRIDGE], lambda link: None)
    assert one.pings(GUESTS[1])
    one.linking = again


def test_a_guest_that_moved_is_found_at_its_new_host(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    linked(hosts, wanted(hosts, trusted=True))
    moved = wanted(hosts, trusted=True, members=(GUESTS[0], NOBODY))
    linked(hosts, moved)
    assert not one.pings(GUESTS[1]), "nobody has this address now"
    two.in_guest("ip", "address", "delete", f"{GUESTS[1]}/20", "dev", "eth0")
    two.in_guest("ip", "address", "add", f"{NOBODY}/20", "dev", "eth0")
    two.in_guest("ip", "link", "set", "eth0", "address", hardware_address("linktest", NOBODY))
    assert one.pings(NOBODY)


@pytest.mark.skipif(not ENCRYPTS, reason="wireguard-tools and wireguard-go are not installed")
def test_nothing_leaves_in_plain_text_without_wireguard(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    with entered(two.network):
        subprocess.run(["nft", "-f", "-"], input=COUNTER.encode(), check=True)
    linked(hosts, wanted(hosts, trusted=False))
    assert one.pings_at_last(GUESTS[1])
    one.on_host("ip", "link", "delete", one.names.wire)
    one.on_host("ip", "route", "add", "default", "via", OUTER[1])
    assert not one.pings(GUESTS[1])
    assert sent(two) == 0
    one.on_host("nft", "delete", "table", "inet", OURS.links_table)
    one.pings(GUESTS[1])
    assert sent(two) > 0, "only our table stopped it"


COUNTER = """table inet seen {
  chain wire { type filter hook prerouting priority -500; iifname "wire" udp dport 8734 counter; }
}
"""


def sent(two: Host) -> int:
    """VXLAN packets that arrived at the other host in plain text."""
    listed = two.on_host("nft", "list", "table", "inet", "seen")
    return int(listed.split("packets ")[1].split()[0])


def pinged(network: int, address: str, source: str = "") -> bool:
    kind = (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    if is_six(address):
        kind = (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    with entered(network):
        used = socket.socket(*kind)
    with used:
        used.setblocking(False)
        if source:
            used.bind((source, 0))
        for number in range(PINGS_MAX):
            try:
                used.sendto(echo(number, six=is_six(address)), (address, 0))
            except OSError:
                return False  # no route
            select.select([used], [], [], PING_SECONDS)
            if answered(used, address, number):
                return True
    return False
