"""How many connections of a guest a host tracks at a time and how fast a guest opens them, with IPv4 and with IPv6 and
a real firewall. No engine is needed."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.engine.namespaces import Namespaces, NoNamespaces, entered

from teraflock.drivers.lxd import flood, kernel
from teraflock.drivers.lxd.flood import FloodLimits
from teraflock.network.ipv6 import six
from teraflock.network.security_group.model import Protocol
from teraflock.network.walls import Packet

GREEDY, OTHER, TARGET = "10.128.0.16", "10.128.0.17", "10.128.16.16"
BRIDGES = {GREEDY: "tfcount0", OTHER: "tfcount0", TARGET: "tfcount1"}
TABLE = "tera_count_flood"
MOST = 20
LIMITS = FloodLimits(connections_per_second=0, packets_per_second=0, connections_max=MOST)
SLOW = FloodLimits(connections_per_second=10, packets_per_second=0)
PORTS = count(20_000)
"""No two connections are from the same port: the second would be one that is known."""

Family = Callable[[str], str]
"""Turns an IPv4 address into the one to use."""
families = pytest.mark.parametrize("of", [str, six], ids=["IPv4", "IPv6"])


@pytest.fixture(scope="module")
def place() -> Iterator[Namespaces]:
    try:
        made = Namespaces(BRIDGES)
    except (NoNamespaces, FileNotFoundError, AssertionError) as reason:
        pytest.skip(str(reason))
    settle(made)
    yield made
    made.close()


def settle(place: Namespaces) -> None:
    """Wait until all know the hardware addresses of their neighbours. A new link needs a second or more for IPv6."""
    echoes = [
        Packet(source=of(source), target=of(TARGET), protocol=Protocol.ICMP)
        for source in (GREEDY, OTHER)
        for of in (str, six)
    ]
    ends_at = time.monotonic() + 20
    while not all(place.arrived(echoes).values()):
        assert time.monotonic() < ends_at, "no packet passes"


@families
def test_a_guest_cannot_fill_the_table_of_connections(place: Namespaces, of: Family) -> None:
    load(place, keep=False)
    with heard_at(place, of(TARGET)) as target, heard_at(place, of(GREEDY)) as other:
        assert held(place, target, of(GREEDY), 3 * MOST) == MOST, "the others are dropped"
        load(place, keep=True)  # a tenant can cause this: another of its networks comes to the host
        assert held(place, target, of(GREEDY), MOST) == 0
        # The receiver has a limit of its own, which the first guest has used up.
        assert held(place, target, of(OTHER), 1) == 0
        assert held(place, other, of(TARGET), 2 * MOST) == MOST, "as many in the other direction"
        load(place, keep=False)  # other limits, or a new process
        assert held(place, target, of(OTHER), MOST) == MOST


@families
def test_a_guest_cannot_fill_the_table_of_neighbours(place: Namespaces, of: Family) -> None:
    """Linux has one for the host and all guests. What a guest lists itself counts like what it asked for."""
    kernel.raise_limits()
    load(place, keep=False)
    base = "10.99." if of is str else "2001:db8:99::"
    hardware = "02:00:00:00:00:01"
    more = 4 * 1024  # than Linux allows for all
    names = (f"{base}{each >> 8}.{each & 255}" if of is str else f"{base}{each:x}" for each in range(1, more))
    lines = "".join(f"neighbour replace {each} lladdr {hardware} dev eth0 nud stale\n" for each in names)
    with heard_at(place, of(TARGET)) as target:
        for address in (OTHER, TARGET):
            with entered(place.places[address]):
                subprocess.run(["ip", "neighbour", "flush", "all"], check=True)
        with entered(place.places[GREEDY]):
            command = ["ip", "-batch", "-"]
            done = subprocess.run(command, input=lines.encode(), capture_output=True, check=False)
        try:
            assert done.stderr == b"", "the table has room"
            assert held(place, target, of(OTHER), 1) == 1, "others find their neighbours"
        finally:
            with entered(place.places[GREEDY]):
                subprocess.run(["ip", "neighbour", "flush", "all"], check=True)


@families
def test_a_guest_cannot_open_connections_faster_than_the_limit(place: Namespaces, of: Family) -> None:
    with heard_at(place, of(TARGET)) as target, heard_at(place, of(GREEDY)) as other:
        load(place, keep=False, limits=SLOW)
        # Twice the limit at once, and the limit for each second that sending takes.
        assert 20 <= held(place, target, of(GREEDY), 200) < 100
        load(place, keep=False, limits=SLOW)
        assert held(place, other, of(TARGET), 15) == 15, "within the limit nothing is lost"


@families
def test_a_guest_cannot_keep_the_name_server_of_its_host_busy(place: Namespaces, of: Family) -> None:
    """With one flow, which is one connection."""
    load(place, keep=False, limits=SLOW)
    server_at = (of("10.128.0.1"), 53)
    with entered(place.host):
        server = socket.socket(socket.AF_INET6 if of is six else socket.AF_INET, socket.SOCK_DGRAM)
    with server, place.opened(of(GREEDY), Protocol.UDP) as guest:
        server.bind(server_at)
        for _ in range(200):
            guest.sendto(b"question", server_at)
        assert 0 < received(server) < 100


def heard_at(place: Namespaces, address: str) -> socket.socket:
    made = place.opened(address, Protocol.UDP)
    made.bind((address, 9000))
    return made


def load(place: Namespaces, *, keep: bool, limits: FloodLimits = LIMITS) -> None:
    place.on_host("nft", "-f", "-", stdin=flood.table(TABLE, set(BRIDGES.values()), limits, keep=keep))


def held(place: Namespaces, target: socket.socket, source: str, many: int) -> int:
    """Send one packet from each of many ports. Each is a connection that is tracked for half a minute."""
    for _, port in zip(range(many), PORTS, strict=False):
        used = place.opened(source, Protocol.UDP)
        used.bind((source, port))
        used.sendto(b"x", target.getsockname())
        used.close()
    return received(target)


def received(used: socket.socket) -> int:
    used.settimeout(0.5)
    count = 0
    try:
        while used.recv(64):
            count += 1
    except TimeoutError:
        return count
    return count
