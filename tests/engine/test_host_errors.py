"""The host believes no ICMP error of a guest about a connection of the host itself, such as a link to another host.
Real packets and the real tables of a host, in namespaces."""

import select
import socket
import struct
from collections.abc import Iterator

import pytest
from tests.engine import frames
from tests.engine.namespaces import entered
from tests.engine.sandbox import INSIDE_ADDRESS, OUTSIDE_ADDRESS
from tests.engine.test_frame_attacks import EVIL, Stage, stage
from tests.engine.test_kernel_verdicts import unreachable

from teraflock.network.security_group.model import Protocol

__all__ = ["stage"]
PORT = 51_820


@pytest.fixture
def asking(stage: Stage) -> Iterator[socket.socket]:
    """A connection of the host to a machine outside."""
    with entered(stage.place.host):
        used = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with used, stage.place.opened(OUTSIDE_ADDRESS, Protocol.UDP) as server:
        server.bind((OUTSIDE_ADDRESS, PORT))
        used.connect((OUTSIDE_ADDRESS, PORT))
        used.send(b"question")
        yield used


def refusal(asking: socket.socket) -> bytes:
    return unreachable(asking.getsockname(), (OUTSIDE_ADDRESS, PORT))


def too_big(asking: socket.socket) -> bytes:
    """Only packets of 600 bytes would get through."""
    message = struct.pack("!BBHHH", 3, 4, 0, 0, 600) + refusal(asking)[8:]
    return message[:2] + struct.pack("!H", frames.checksum(message)) + message[4:]


def harm(stage: Stage, asking: socket.socket, seconds: float) -> tuple[bool, bool]:
    """Whether the host took the connection for refused, and the way for narrow."""
    select.select([asking], [], [], seconds)
    refused = asking.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
    return refused, "mtu 600" in stage.place.on_host("ip", "route", "get", OUTSIDE_ADDRESS)


def test_a_guest_cannot_report_errors_about_connections_of_the_host(
    stage: Stage, asking: socket.socket
) -> None:
    for target in (INSIDE_ADDRESS, "10.128.1.1"):
        for message in (refusal(asking), too_big(asking)):
            stage.send(stage.bridge_hardware(), frames.ipv4(EVIL, target, message, protocol=1))
    assert harm(stage, asking, 0.3) == (False, False)
    with stage.place.opened(OUTSIDE_ADDRESS, Protocol.ICMP) as other_end:
        for message in (too_big(asking), refusal(asking)):
            other_end.sendto(message, (INSIDE_ADDRESS, 0))
    assert harm(stage, asking, 5) == (True, True), "the other end of the connection can"
