"""A guest that sends too many packets is slowed down, with IPv4, with IPv6 and with questions about neighbours of both.
Real packets and the real tables of a host, in namespaces."""

import pytest
from tests.engine import frames
from tests.engine.test_frame_attacks import EVIL, NEIGHBOUR, PORT, Stage, drained, stage
from tests.engine.test_ipv6_frames import SIX, SOLICITED

from teraflock.drivers.lxd import guard
from teraflock.network.ipv6 import six

__all__ = ["stage"]
MOST, SENT = 100, 2_000


def packet(stage: Stage, kind: str) -> tuple[str, bytes, int]:
    """The target, the content and the type of an honest frame."""
    near = stage.own[NEIGHBOUR]
    if kind == "IPv4":
        return near, frames.ipv4(EVIL, NEIGHBOUR, frames.udp(PORT)), 0x0800
    if kind == "IPv6":
        return near, frames.ipv6(six(EVIL), six(NEIGHBOUR), frames.udp(PORT)), SIX
    if kind == "ARP":
        return frames.BROADCAST, frames.arp(stage.own[EVIL], EVIL, NEIGHBOUR, operation=1), 0x0806
    question = frames.neighbour(135, six(NEIGHBOUR), 1, stage.own[EVIL])
    return "33:33:ff:80:01:11", frames.ipv6(six(EVIL), SOLICITED, question, protocol=58), SIX


def arrived(stage: Stage, kind: str, limit: int, *, inner: bool = False) -> int:
    """How many of `SENT` frames the neighbour hears."""
    stations = stage.stations(EVIL) if inner else stage.stations()
    table = guard.table("tera_frame_guard", ["tg", "tv"], stations, limit)
    stage.place.on_host("nft", "-f", "-", stdin=table)
    drained(stage.ears[NEIGHBOUR])
    target, content, number = packet(stage, kind)
    for _ in range(SENT):
        stage.send(target, content, number)
    mine = frames.hardware(stage.own[EVIL])
    return sum(each[6:12] == mine for each in drained(stage.ears[NEIGHBOUR]))


@pytest.mark.parametrize("kind", ["IPv4", "IPv6", "ARP", "neighbours"])
@pytest.mark.parametrize("inner", [False, True])
def test_packets_over_the_limit_are_dropped(stage: Stage, kind: str, inner: bool) -> None:
    # Twice the limit at once, and the limit for each second that sending takes.
    assert 2 * MOST <= arrived(stage, kind, MOST, inner=inner) < SENT / 2
    assert arrived(stage, kind, 0, inner=inner) == SENT, "0 means no limit"
