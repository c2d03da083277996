"""The decision about a connection, and which connections a change may forbid."""

from hypothesis import given
from tests.unit.instance.samples import NOW
from tests.unit.network.wall_samples import GUESTS, HOME, OUTSIDE, OUTSIDE6, PAIRS, may, packets, walls

from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.security_group.rules import default_group
from teraflock.network.walls import Packet, Walls, decide, tightened
from teraflock.tenant.model import ProjectId

PACKETS = packets()


@given(walls())
def test_decisions_equal_the_slow_evaluator(found: Walls) -> None:
    for packet in PACKETS:
        assert decide(found, packet).passes == may(found, packet), packet


@given(walls())
def test_a_decision_names_the_rules_that_made_it(found: Walls) -> None:
    for packet in PACKETS:
        decision = decide(found, packet)
        for permit, end, side in (
            (decision.leaving, packet.source, Direction.OUT),
            (decision.entering, packet.target, Direction.IN),
        ):
            assert permit is None or permit.group in found.stations[HOME.get(end, end)]
            assert permit is None or (
                permit.rule in found.groups[permit.group] and permit.rule.direction == side
            )
        if decision.stopped == Direction.OUT:
            assert packet.source not in (OUTSIDE, OUTSIDE6)
        if decision.passes and packet.target in found.stations:
            assert decision.entering is not None


@given(walls(), walls())
def test_every_connection_that_a_change_forbids_has_an_end_that_is_checked(
    before: Walls, after: Walls
) -> None:
    checked = tightened(before, after)
    for packet in PACKETS:
        if may(before, packet) and not may(after, packet):
            assert {HOME.get(each, each) for each in packet.ends} & checked, packet


@given(walls())
def test_nothing_is_checked_when_nothing_is_taken_away(before: Walls) -> None:
    more = Rule(direction=Direction.IN, protocol=Protocol.ANY, peer="0.0.0.0/0")
    groups = {group: tuple(sorted({*rules, more})) for group, rules in before.groups.items()}
    stations = {**dict.fromkeys(GUESTS, (GroupId("sgr_a"),)), **before.stations}
    grown = Walls(
        groups=groups,
        stations={a: tuple(sorted({*g, GroupId("sgr_b")})) for a, g in stations.items()},
        peers=before.peers | {PAIRS[0]},
    )
    assert tightened(before, grown) == set()


def test_the_default_group_allows_ssh_from_anywhere_and_everything_between_members() -> None:
    group = default_group(ProjectId("prj_x"), NOW)
    found = Walls(groups={group.id: group.rules}, stations=dict.fromkeys(GUESTS[:2], (group.id,)))
    assert decide(found, Packet(OUTSIDE, GUESTS[0], Protocol.TCP, 22)).passes
    assert decide(found, Packet(GUESTS[1], GUESTS[0], Protocol.UDP, 5353)).passes
    assert decide(found, Packet(GUESTS[0], OUTSIDE, Protocol.TCP, 443)).passes
    stopped = decide(found, Packet(OUTSIDE, GUESTS[0], Protocol.TCP, 80))
    assert (stopped.passes, stopped.stopped) == (False, Direction.IN)
