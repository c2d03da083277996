"""Packets from outside that carry the address of a guest do not reach guests. Real packets, in namespaces."""

import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from tests.engine.namespaces import Namespaces, NoNamespaces, entered
from tests.engine.sandbox import INSIDE_ADDRESS, OUTSIDE_ADDRESS

from teraflock.drivers.lxd import firewall
from teraflock.network.security_group.model import Protocol

BRIDGE, TABLE = "tfforged", "tera_forged"
TARGET, NEIGHBOUR, ELSEWHERE = "10.128.1.16", "10.128.1.17", "10.200.0.9"
PORT, OPENED = 9000, 20_001


@pytest.fixture(scope="module")
def place() -> Iterator[Namespaces]:
    try:
        made = Namespaces(dict.fromkeys((TARGET, NEIGHBOUR), BRIDGE))
    except (NoNamespaces, FileNotFoundError, AssertionError) as reason:
        pytest.skip(str(reason))
    for each in ("all", "default", "uplink"):  # the rules must do it, not a setting that operators may change
        made.on_host("sysctl", "-qw", f"net.ipv4.conf.{each}.rp_filter=0")
    rules = firewall.Rules(
        bridges=(firewall.Bridge(BRIDGE, "10.128.1.1"),),
        forwards=(firewall.Forward(OPENED, TARGET, PORT),),
    )
    made.on_host("nft", "-f", "-", stdin=firewall.table(TABLE, rules))
    with entered(made.places[OUTSIDE_ADDRESS]):
        for each in (NEIGHBOUR, ELSEWHERE):
            subprocess.run(["ip", "address", "add", f"{each}/32", "dev", "lo"], check=True)
    yield made
    made.close()


def heard(used: socket.socket) -> list[bytes]:
    time.sleep(0.3)
    found = []
    try:
        while True:
            found.append(used.recv(2048))
    except BlockingIOError:
        return found


@pytest.mark.parametrize(
    ("sender", "arrives"), [(OUTSIDE_ADDRESS, True), (NEIGHBOUR, False), (ELSEWHERE, False)]
)
def test_no_forged_sender_uses_an_open_port(place: Namespaces, sender: str, arrives: bool) -> None:
    with entered(place.places[TARGET]):
        ear = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    ear.setblocking(False)
    with ear, place.opened(OUTSIDE_ADDRESS, Protocol.TCP) as caller:
        caller.bind((sender, 0))
        caller.connect_ex((INSIDE_ADDRESS, OPENED))
        senders = {socket.inet_ntoa(each[12:16]) for each in heard(ear)}
    assert (sender in senders) == arrives


def test_no_forged_packet_enters_an_open_connection(place: Namespaces) -> None:
    ours = {each: place.opened(each, Protocol.UDP) for each in (TARGET, NEIGHBOUR)}
    for each, used in ours.items():
        used.bind((each, PORT))
    for one, other in ((NEIGHBOUR, TARGET), (TARGET, NEIGHBOUR), (NEIGHBOUR, TARGET)):
        ours[one].sendto(b"honest", (other, PORT))
        time.sleep(0.05)
    with place.opened(OUTSIDE_ADDRESS, Protocol.UDP) as forger:
        forger.bind((NEIGHBOUR, PORT))
        forger.sendto(b"forged", (TARGET, PORT))
    assert heard(ours[TARGET]) == [b"honest", b"honest"]
    for used in ours.values():
        used.close()
