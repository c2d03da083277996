"""A host with guests made of network namespaces: real packets and a real firewall, without an engine.

    host        a bridge for each project, one port for each guest, and an uplink
    guests      one namespace each, with the gateway of their project
    outside     the internet: 198.51.100.2 and 2001:db8::2 on the uplink

Guests also have the IPv6 addresses that belong to theirs. A packet with one names its places by IPv4 addresses.

One process opens sockets in all of them, so that hundreds of connections are tried at once.
"""

import contextlib
import ctypes
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.engine.sandbox import INSIDE_ADDRESS, NEW_NETWORK, OUTSIDE_ADDRESS

from teraflock.network.ipv6 import four, is_six, six
from teraflock.network.security_group.model import Protocol
from teraflock.network.walls import Packet, is_ours

OUTSIDE6, INSIDE6 = "2001:db8::2", "2001:db8::1"
TRY_SECONDS = 0.25


class NoNamespaces(Exception):
    """Raised with the reason why this machine cannot run these tests."""


@contextlib.contextmanager
def entered(descriptor: int) -> Iterator[None]:
    """Move this thread, and everything it starts, into a network."""
    library = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as home:
        if library.setns(descriptor, NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            library.setns(home.fileno(), NEW_NETWORK)


def new_network() -> int:
    """Return a descriptor of a new network, which lasts as long as the descriptor."""
    found: list[int] = []

    def make() -> None:
        if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK) == 0:
            found.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not found:
        raise NoNamespaces("network namespaces need root")
    return found[0]


class Namespaces:
    def __init__(self, guests: Mapping[str, str]) -> None:
        """`guests`: the bridge of each guest, by its address in 10.128.0.0/9 with projects of 256 addresses."""
        self.host = new_network()
        self.places = {address: new_network() for address in guests}
        self.places[OUTSIDE_ADDRESS] = new_network()
        self._listening: dict[tuple[str, Protocol, int], socket.socket] = {}
        self.bridges = sorted(set(guests.values()))
        for bridge in self.bridges:
            gateway = next(a for a, b in guests.items() if b == bridge).rsplit(".", 1)[0] + ".1"
            self.on_host("ip", "link", "add", bridge, "type", "bridge")
            self.on_host("ip", "address", "add", f"{gateway}/24", "dev", bridge)
            self.on_host("ip", "link", "set", bridge, "up")
            self.on_host("ip", "address", "add", f"{six(gateway)}/64", "dev", bridge, "nodad")
        for number, (address, bridge) in enumerate(guests.items()):
            port = f"tg{number}"
            self._link(port, address, address.rsplit(".", 1)[0] + ".1")
            self.on_host("ip", "link", "set", port, "master", bridge)
        self._link("uplink", OUTSIDE_ADDRESS, INSIDE_ADDRESS)
        self.on_host("ip", "address", "add", f"{INSIDE_ADDRESS}/24", "dev", "uplink")
        self.on_host("ip", "address", "add", f"{INSIDE6}/64", "dev", "uplink", "nodad")
        self.on_host("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")

    def on_host(self, *command: str, stdin: str = "") -> str:
        with entered(self.host):
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def close(self) -> None:
        for each in self._listening.values():
            each.close()
        for descriptor in (self.host, *self.places.values()):
            os.close(descriptor)

    def listen(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            key = (packet.target, packet.protocol, packet.port)
            if key not in self._listening and packet.protocol != Protocol.ICMP:
                self._listening[key] = self.opened(packet.target, packet.protocol)
                self._listening[key].bind((packet.target, packet.port))
                if packet.protocol == Protocol.TCP:
                    self._listening[key].listen(512)

    def opened(self, place: str, protocol: Protocol) -> socket.socket:
        kind = socket.SOCK_STREAM if protocol == Protocol.TCP else socket.SOCK_DGRAM
        family, icmp = socket.AF_INET, socket.IPPROTO_ICMP
        if is_six(place):
            family, icmp = socket.AF_INET6, socket.IPPROTO_ICMPV6
        number = icmp if protocol == Protocol.ICMP else 0
        kind = socket.SOCK_RAW if protocol == Protocol.ICMP else kind
        with entered(self.places[OUTSIDE_ADDRESS if place == OUTSIDE6 else four(place)]):
            made = socket.socket(family, kind, number)
        made.setblocking(False)
        return made

    def arrived(self, packets: list[Packet]) -> dict[Packet, bool]:
        """Try all connections at once. Return which of them were made."""
        self.listen(packets)
        sockets = {packet: self.opened(packet.source, packet.protocol) for packet in packets}
        for number, (packet, used) in enumerate(sockets.items()):
            if packet.protocol == Protocol.TCP:
                used.connect_ex((packet.target, packet.port))
            elif packet.protocol == Protocol.UDP:
                used.sendto(str(number).encode(), (packet.target, packet.port))
            else:
                used.sendto(echo(number, six=is_six(packet.target)), (packet.target, 0))
        time.sleep(TRY_SECONDS)
        heard = self._heard_udp()
        result = {}
        for number, (packet, used) in enumerate(sockets.items()):
            if packet.protocol == Protocol.UDP:
                result[packet] = (packet.target, packet.port, number) in heard
            elif packet.protocol == Protocol.TCP:
                result[packet] = bool(select.select([], [used], [], 0)[1])
            else:
                result[packet] = answered(used, packet.target, number)
            used.close()
        for (_, protocol, _), each in self._listening.items():
            with contextlib.suppress(BlockingIOError):
                while protocol == Protocol.TCP:
                    each.accept()[0].close()
        return result

    def _heard_udp(self) -> set[tuple[str, int, int]]:
        heard = set()
        for (target, protocol, port), each in self._listening.items():
            with contextlib.suppress(BlockingIOError):
                while protocol == Protocol.UDP:
                    heard.add((target, port, int(each.recv(64))))
        return heard

    def _link(self, port: str, address: str, gateway: str) -> None:
        place = self.places[address]
        self.on_host("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", _path(place))
        self.on_host("ip", "link", "set", port, "up")
        own, gate = (six(address), six(gateway)) if is_ours(address) else (OUTSIDE6, INSIDE6)
        with entered(place):
            for words in (
                ("link", "set", "lo", "up"),
                ("address", "add", f"{address}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("route", "add", "default", "via", gateway),
                ("address", "add", f"{own}/64", "dev", "eth0", "nodad"),
                ("route", "add", "default", "via", gate),
            ):
                subprocess.run(["ip", *words], check=True, capture_output=True)


def _path(descriptor: int) -> str:
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def echo(number: int, *, six: bool = False) -> bytes:
    body = bytes([128 if six else 8, 0, 0, 0]) + number.to_bytes(2, "big") + b"\0\1"
    total = sum(int.from_bytes(body[at : at + 2], "big") for at in range(0, 8, 2))
    total = (total >> 16) + (total & 0xFFFF)
    return body[:2] + (~total & 0xFFFF).to_bytes(2, "big") + body[4:]


def answered(used: socket.socket, target: str, number: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        while True:
            data, sender = used.recvfrom(256)
            content, reply = (data, 129) if is_six(target) else (data[20:], 0)
            if sender[0] == target and content[0] == reply and int.from_bytes(content[4:6], "big") == number:
                return True
    return False
