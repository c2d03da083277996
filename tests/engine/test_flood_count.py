"""How many connections of a guest a host tracks at a time, with a real firewall. No engine is needed."""

import socket
from collections.abc import Iterator
from itertools import count

import pytest
from tests.engine.namespaces import Namespaces, NoNamespaces, entered

from teraflock.drivers.lxd import flood
from teraflock.drivers.lxd.flood import FloodLimits
from teraflock.network.security_group.model import Protocol

GREEDY, OTHER, TARGET = "10.128.0.16", "10.128.0.17", "10.128.1.16"
BRIDGES = {GREEDY: "tfcount0", OTHER: "tfcount0", TARGET: "tfcount1"}
TABLE = "tera_count_flood"
MOST = 20
LIMITS = FloodLimits(connections_per_second=0, packets_per_second=0, connections_max=MOST)


@pytest.fixture
def place() -> Iterator[Namespaces]:
    try:
        made = Namespaces(BRIDGES)
    except (NoNamespaces, FileNotFoundError, AssertionError) as reason:
        pytest.skip(str(reason))
    yield made
    made.close()


def test_a_guest_cannot_fill_the_table_of_connections(place: Namespaces) -> None:
    load(place, keep=False)
    ports = count(20_000)
    with heard_at(place, TARGET) as target, heard_at(place, GREEDY) as other:
        assert held(place, target, GREEDY, ports, 3 * MOST) == MOST, "the others are dropped"
        load(place, keep=True)  # a tenant can cause this: another of its networks comes to the host
        assert held(place, target, GREEDY, ports, MOST) == 0
        # The receiver has a limit of its own, which the first guest has used up.
        assert held(place, target, OTHER, ports, 1) == 0
        assert held(place, other, TARGET, ports, 2 * MOST) == MOST, "as many in the other direction"
        load(place, keep=False)  # other limits, or a new process
        assert held(place, target, OTHER, ports, MOST) == MOST


def heard_at(place: Namespaces, address: str) -> socket.socket:
    made = place.opened(address, Protocol.UDP)
    made.bind((address, 9000))
    return made


def test_a_guest_cannot_keep_the_name_server_of_its_host_busy(place: Namespaces) -> None:
    """With one flow, which is one connection."""
    load(place, keep=False, limits=FloodLimits(connections_per_second=10, packets_per_second=0))
    with entered(place.host):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server, place.opened(GREEDY, Protocol.UDP) as guest:
        server.bind(("10.128.0.1", 53))
        for _ in range(500):
            guest.sendto(b"question", ("10.128.0.1", 53))
        assert 0 < received(server) < 250


def load(place: Namespaces, *, keep: bool, limits: FloodLimits = LIMITS) -> None:
    place.on_host("nft", "-f", "-", stdin=flood.table(TABLE, set(BRIDGES.values()), limits, keep=keep))


def held(place: Namespaces, target: socket.socket, source: str, ports: Iterator[int], many: int) -> int:
    """Send one packet from each of many ports. Each is a connection that is tracked for half a minute."""
    for _, port in zip(range(many), ports, strict=False):
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
