"""From words to rules: what is accepted, and the sentence for everything else."""

import pytest

from teraflock.base.errors import TeraflockError
from teraflock.network.security_group.model import GroupId
from teraflock.network.security_group.rules import network_from, rule_from, rule_text

GROUPS = {"web": GroupId("sgr_w"), "default": GroupId("sgr_d")}
NAMES: dict[str, str] = {id: name for name, id in GROUPS.items()}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("in", "tcp", "80", "0.0.0.0/0"), "in tcp 80 from 0.0.0.0/0"),
        (("in", "tcp", "80-80", "0.0.0.0/0"), "in tcp 80 from 0.0.0.0/0"),
        (("out", "udp", "1-65535", "10.0.0.0/8"), "out udp 1-65535 to 10.0.0.0/8"),
        (("in", "any", "", "sg:web"), "in any from sg:web"),
        (("in", "icmp", "", "10.1.2.3"), "in icmp from 10.1.2.3/32"),
        (("in", "tcp", "", "10.0.0.0/255.0.0.0"), "in tcp from 10.0.0.0/8"),
    ],
)
def test_rules_are_read_and_written_back(words: tuple[str, str, str, str], text: str) -> None:
    assert rule_text(rule_from(*words, groups=GROUPS), NAMES) == text


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (("in", "tcp", "70000", "0.0.0.0/0"), "Port `70000` is out of range", "Ports are 1 to 65535"),
        (("in", "tcp", "0", "0.0.0.0/0"), "Port `0` is out of range", "Ports are 1 to 65535"),
        (("in", "tcp", "90-80", "0.0.0.0/0"), "The port range `90-80` is reversed", "Write `80-90`"),
        (
            ("in", "tcp", "http", "0.0.0.0/0"),
            "`http` is not a port",
            "Write one port (`80`) or a range (`80-90`)",
        ),
        (
            ("in", "tcp", "٨٠", "0.0.0.0/0"),
            "`٨٠` is not a port",
            "Write one port (`80`) or a range (`80-90`)",
        ),
        (("in", "icmp", "80", "0.0.0.0/0"), "Protocol `icmp` has no ports", "Leave out the port"),
        (("in", "tcp", "80", "10.0.0.1/8"), "`10.0.0.1/8` has host bits set", "Write `10.0.0.0/8`"),
        (("in", "tcp", "80", "fd00::1/8"), "`fd00::1/8` has host bits set", "Write `fd00::/8`"),
        (("in", "tcp", "80", "fd00::/129"), "`fd00::/129` is not a network", "Write a network"),
        (("in", "tcp", "80", "fe80::1%eth0"), "`fe80::1%eth0` is not a network", "Write a network"),
        (
            ("in", "tcp", "80", "::ffff:10.0.0.0/104"),
            "`::ffff:10.0.0.0/104` is an IPv4 network in the form of IPv6",
            "Write `10.0.0.0/8`",
        ),
        (("in", "tcp", "80", "10.0.0.0/33"), "`10.0.0.0/33` is not a network", "Write a network"),
        (("in", "tcp", "80", "10.0.0.0/8; drop"), "`10.0.0.0/8; drop` is not a network", "Write a network"),
        (("in", "tcp", "80", "sg:wob"), "Unknown security group `wob`", "Did you mean `web`?"),
        (("sideways", "tcp", "80", "0.0.0.0/0"), "Unknown direction `sideways`", "Use one of `in`, `out`"),
        (("in", "gre", "", "0.0.0.0/0"), "Unknown protocol `gre`", "Use one of"),
    ],
)
def test_bad_words_get_one_sentence_and_a_hint(
    words: tuple[str, str, str, str], sentence: str, hint: str
) -> None:
    with pytest.raises(TeraflockError) as caught:
        rule_from(*words, groups=GROUPS)
    assert caught.value.sentence == sentence
    assert hint in caught.value.hint


def test_the_id_of_a_rule_follows_from_its_content() -> None:
    rule = rule_from("in", "tcp", "80", "0.0.0.0/0", GROUPS)
    assert rule.id == rule_from("in", "tcp", "80-80", "0.0.0.0/0", GROUPS).id
    assert rule.id != rule_from("in", "tcp", "81", "0.0.0.0/0", GROUPS).id
    assert network_from("10.1.2.3") == "10.1.2.3/32"
    assert network_from("FD00:0::1") == "fd00::1/128"
    assert network_from("::/0") == "::/0"
