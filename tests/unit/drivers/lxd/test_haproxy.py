"""The configuration of HAProxy: what tenants choose cannot add a directive, and statistics are read right."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.drivers.lxd.haproxy import configuration, seen
from teraflock.network.balancer.model import (
    BackendSpec,
    BackendState,
    BalancerId,
    BalancerProtocol,
    BalancerSpec,
)
from teraflock.network.balancer.rules import check_health_check
from teraflock.tenant.model import ProjectId

SPEC = BalancerSpec(
    id=BalancerId("lbr_0000000000000web"),
    name="web",
    project_id=ProjectId("prj_0000000000000000"),
    network_number=0,
    network_key="prj_0000000000000000",
    domain="p.internal",
    host="here",
    address="10.128.0.20",
    protocol=BalancerProtocol.HTTP,
    port=443,
    target_port=8080,
    health_check="http:/health?deep=1",
    check_seconds=4,
    certificate="C",
    key="K",
    backends=(BackendSpec("ins_0000000000000001", "10.128.0.16"),),
)


def sections(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith(" ")]


def test_a_balancer_is_one_section_with_its_address_certificate_check_and_backends() -> None:
    text = configuration([SPEC])
    assert sections(text) == ["global", "defaults", "listen lbr_0000000000000web"]
    for line in (
        "  bind 10.128.0.20:443 ssl crt /cell/certificates/lbr_0000000000000web.pem alpn h2,http/1.1",
        "  source 10.128.0.20",
        "  http-check send meth GET uri /health?deep=1 ver HTTP/1.1 hdr Host 10.128.0.20",
        "  default-server check inter 2000ms fastinter 500ms fall 2 rise 2",
        "  server ins_0000000000000001 10.128.0.16:8080",
    ):
        assert line in text.splitlines()


def test_a_dead_backend_is_out_within_the_interval() -> None:
    """The time to the next check, and two checks that time out."""
    text = configuration([SPEC])
    found = dict(re.findall(r"(timeout check|inter|fastinter) (\d+)ms", text))
    worst = int(found["inter"]) + int(found["fastinter"]) + 2 * int(found["timeout check"])
    assert worst <= SPEC.check_seconds * 1000


HOSTILE = st.text(st.sampled_from("a/\n\r\t \"'\\#${}\x00;ü%"), max_size=20) | st.text(max_size=20)


@given(path=HOSTILE)
def test_no_path_gets_past_both_checks_with_a_character_that_has_a_meaning(path: str) -> None:
    try:
        check_health_check(f"http:{path}")
    except BadInput:
        with pytest.raises(ValueError, match="invalid health check"):
            configuration([replace(SPEC, health_check=f"http:{path}")])
        return
    text = configuration([replace(SPEC, health_check=f"http:{path}")])
    assert len(text.splitlines()) == len(configuration([SPEC]).splitlines())
    assert not set(path) & set("\n\r\t \"'\\#${}\x00")


@given(text=HOSTILE)
def test_hostile_ids_and_addresses_are_refused_and_names_are_not_used(text: str) -> None:
    assert configuration([replace(SPEC, name=text)]) == configuration([SPEC])
    for change in (
        {"id": text},
        {"address": text},
        {"health_check": text},
        {"backends": (BackendSpec(text, "10.128.0.16"),)},
        {"backends": (BackendSpec("ins_1", text),)},
    ):
        with pytest.raises(ValueError):
            configuration([replace(SPEC, **change)])


STATISTICS = """# pxname,svname,scur,stot,bin,bout,status,check_status,
lbr_a,FRONTEND,3,10,100,200,OPEN,,
lbr_a,ins_1,2,7,60,150,UP,L7OK,
lbr_a,ins_2,0,3,40,50,DOWN,L4CON,
lbr_a,ins_3,0,0,0,0,UP,INI,
lbr_a,ins_4,0,0,0,0,UP 1/2,* L7STS,
lbr_a,BACKEND,2,10,100,200,UP,,
"""


def test_statistics() -> None:
    (found,) = seen(STATISTICS)
    assert (found.id, found.sessions, found.sessions_total, found.bytes_out) == ("lbr_a", 3, 10, 200)
    assert [(each.instance_id, each.state, each.sessions) for each in found.backends] == [
        ("ins_1", BackendState.UP, 2),
        ("ins_2", BackendState.DOWN, 0),
        ("ins_3", BackendState.UNKNOWN, 0),
        ("ins_4", BackendState.UP, 0),
    ]
    assert found.backends[1].reason == "connection refused or unreachable"
    assert seen("") == () == seen("garbage\n\n")
