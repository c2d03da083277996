"""Peered networks on two hosts, with real packets: each host has guests of one network only."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.namespaces import NoNamespaces, entered, new_network
from tests.engine.test_links import OUTER, path_of, pinged, run

from teraflock.drivers.lxd.linking import Linking
from teraflock.drivers.lxd.names import Names, hardware_address
from teraflock.network.fabric import Fabric, LinkHost, NetworkMember, PassedNetwork, WireKey, fabrics
from teraflock.network.ipv6 import six

NETWORKS = (PassedNetwork("prj_near", 0, "prj_near"), PassedNetwork("prj_far", 1, "prj_far"))
GUESTS = ("10.128.0.16", "10.128.16.16")
GATEWAYS = ("10.128.0.1", "10.128.16.1")
BRIDGES = tuple(Names("peerlink").bridge(each.key) for each in NETWORKS)


class Host:
    """A host with a guest in one network, and the bridges of both."""

    def __init__(self, place: int, folder: Path) -> None:
        self.place = place
        self.network, self.guest = new_network(), new_network()
        names = Names("peerlink")
        names.wire = f"tw{os.getpid():08x}{place}"
        self.linking = Linking(names, folder / str(place))
        self.on_host("ip", "link", "set", "lo", "up")
        self.on_host("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        for bridge, gateway in zip(BRIDGES, GATEWAYS, strict=True):
            self.on_host("ip", "link", "add", bridge, "type", "bridge")
            self.on_host("ip", "address", "add", f"{gateway}/20", "dev", bridge)
            self.on_host("ip", "link", "set", bridge, "up")
            self.on_host("ip", "address", "add", f"{six(gateway)}/64", "dev", bridge, "nodad")
        path = path_of(self.guest)
        self.on_host("ip", "link", "add", "port", "type", "veth", "peer", "name", "eth0", "netns", path)
        self.on_host("ip", "link", "set", "port", "master", BRIDGES[place], "up")
        hardware = hardware_address("peerlink", GUESTS[place])
        run(self.guest, "ip", "link", "set", "eth0", "address", hardware, "up")
        run(self.guest, "ip", "address", "add", f"{GUESTS[place]}/20", "dev", "eth0")
        run(self.guest, "ip", "route", "add", "default", "via", GATEWAYS[place])
        run(self.guest, "ip", "address", "add", f"{six(GUESTS[place])}/64", "dev", "eth0", "nodad")
        run(self.guest, "ip", "route", "add", "default", "via", six(GATEWAYS[place]))

    def on_host(self, *command: str) -> str:
        return run(self.network, *command)

    def apply(self, fabric: Fabric) -> None:
        with entered(self.network):
            self.linking.apply(fabric, BRIDGES, lambda link: None)

    def pings(self, *, source: str = "") -> bool:
        """Whether it reaches the other guest, with IPv4 and with IPv6."""
        peer = GUESTS[1 - self.place]
        found = {
            pinged(self.guest, peer, source),
            pinged(self.guest, six(peer), source and six(source)),
        }
        assert len(found) == 1, "both families pass, or none"
        return found.pop()

    def close(self) -> None:
        with entered(self.network):
            self.linking.drop()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    try:
        one, two = Host(0, tmp_path), Host(1, tmp_path)
    except (NoNamespaces, FileNotFoundError) as reason:
        pytest.skip(str(reason))
    ends = ("wire", "type", "veth", "peer", "name", "wire", "netns", path_of(two.network))
    one.on_host("ip", "link", "add", *ends)
    for host in (one, two):
        host.on_host("ip", "address", "add", f"{OUTER[host.place]}/24", "dev", "wire")
        host.on_host("ip", "link", "set", "wire", "up")
    yield one, two
    one.close()
    two.close()


def wanted(*peerings: tuple[int, int]) -> dict[str, Fabric]:
    linked = [
        LinkHost(site=str(place), address=OUTER[place], number=place + 1, wire=WireKey(), trusted=True)
        for place in (0, 1)
    ]
    members = [
        NetworkMember(str(place), each.key, each.network, GUESTS[place])
        for place, each in enumerate(NETWORKS)
    ]
    return fabrics(linked, members, peerings, NETWORKS)


def linked(hosts: tuple[Host, Host], fabric: dict[str, Fabric]) -> None:
    for host in hosts:
        host.apply(fabric[str(host.place)])


def test_peers_on_two_hosts_reach_each_other_while_they_are_peered(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    linked(hosts, wanted())
    assert not one.pings(), "they are not peered"
    linked(hosts, wanted((0, 1)))
    assert one.pings()
    assert two.pings()
    # A guest that takes another address, of its own network or of the peer's, is not heard.
    for address, route in (("10.128.16.99", GATEWAYS[1]), ("10.128.0.99", GATEWAYS[1])):
        run(two.guest, "ip", "address", "add", f"{address}/32", "dev", "eth0")
        run(two.guest, "ip", "address", "add", f"{six(address)}/128", "dev", "eth0", "nodad")
        assert not two.pings(source=address), (address, route)
        run(two.guest, "ip", "address", "delete", f"{address}/32", "dev", "eth0")
        run(two.guest, "ip", "address", "delete", f"{six(address)}/128", "dev", "eth0")
    assert two.pings()
    linked(hosts, wanted())
    assert not one.pings(), "the peering ended"
    assert not two.pings()
