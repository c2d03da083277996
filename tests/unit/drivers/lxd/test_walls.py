"""The text of the table for security groups."""

import pytest
from hypothesis import given
from tests.unit.network.wall_samples import walls

from teraflock.drivers.lxd.walls import changes, compiled, full
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Walls


def rule(peer: str, port: int = 80) -> Rule:
    return Rule(direction=Direction.IN, protocol=Protocol.TCP, port_first=port, port_last=port, peer=peer)


@given(walls(), walls())
def test_equal_walls_need_no_change_and_others_get_another_mark(before: Walls, after: Walls) -> None:
    one, two = compiled(before), compiled(after)
    assert (one == two) == (one.mark == two.mark)
    assert (changes("t", one, two) == "") == (one == two)


def test_a_change_of_one_rule_touches_one_chain() -> None:
    groups = {GroupId(f"sgr_{n}"): (rule("10.0.0.0/8", n),) for n in (1, 2)}
    stations = {"10.128.0.16": (GroupId("sgr_1"), GroupId("sgr_2"))}
    more = rule("sgr_2")
    one = Walls(groups=groups, stations=stations)
    two = Walls(groups={**groups, GroupId("sgr_1"): (more,)}, stations=stations)
    assert changes("t", compiled(one), compiled(two)).splitlines() == [
        f"add chain inet t {compiled(two).mark}",
        "add set inet t m_2 { type ipv4_addr; }",
        "add set inet t m6_2 { type ipv6_addr; }",
        "add element inet t m_2 { 10.128.0.16 }",
        "add element inet t m6_2 { fd3e:9a51:c870::a80:10 }",
        "flush chain inet t gi_1",
        "add rule inet t gi_1 ip saddr @m_2 tcp dport 80 accept",
        "add rule inet t gi_1 ip6 saddr @m6_2 tcp dport 80 accept",
        f"delete chain inet t {compiled(one).mark}",
    ]


@pytest.mark.parametrize(
    "broken",
    [
        Walls(stations={"10.128.0.16; flush ruleset": (GroupId("sgr_a"),)}),
        Walls(stations={"10.128.0.16": (GroupId("sgr_a; drop"),)}),
        Walls(stations={"10.128.0.16": (GroupId("x"),)}),
        Walls(
            groups={GroupId("sgr_a"): (rule("0.0.0.0/0 accept"),)},
            stations={"10.128.0.16": (GroupId("sgr_a"),)},
        ),
    ],
)
def test_nothing_but_checked_values_gets_into_the_text(broken: Walls) -> None:
    with pytest.raises(ValueError, match=r"."):
        full("t", compiled(broken), ["tfaaa"])
