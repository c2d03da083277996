"""The firewall's text: it contains only checked numbers, addresses and bridges, and `nft` accepts it."""

import shutil
import subprocess
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.drivers.lxd import firewall
from teraflock.drivers.lxd.firewall import Bridge, Forward, Rules

ADDRESSES = st.ip_addresses(v=4).map(str)
BRIDGES = st.lists(
    st.builds(Bridge, st.from_regex(r"tf[0-9a-f]{8}", fullmatch=True), ADDRESSES),
    max_size=5,
    unique_by=lambda bridge: bridge.name,
).map(tuple)
FORWARDS = st.lists(
    st.builds(Forward, st.integers(1, 65535), ADDRESSES, st.integers(1, 65535)),
    max_size=20,
    unique_by=lambda forward: forward.host_port,
).map(tuple)
RULES = st.builds(Rules, bridges=BRIDGES, forwards=FORWARDS, way_out=st.booleans(), translates=st.booleans())


@given(rules=RULES)
def test_table_is_replaced_as_a_whole(rules: Rules) -> None:
    text = firewall.table("tera_test", rules)
    assert text.startswith("table inet tera_test\ndelete table inet tera_test\ntable inet tera_test {\n")
    for bridge in rules.bridges:
        is_ours = ip_address(bridge.gateway) in ip_network("10.128.0.0/9")
        assert text.count(f'"{bridge.name}"') == 4 + is_ours, "with a gateway for IPv6"
    for forward in rules.forwards:
        assert f"{forward.host_port} : {forward.address} . {forward.guest_port}" in text


@given(word=st.text(min_size=1).filter(lambda word: not word.isalnum()))
def test_invalid_values_are_rejected(word: str) -> None:
    with pytest.raises(ValueError):
        firewall.table("tera_test", Rules(bridges=(Bridge(word, "10.0.0.1"),)))
    with pytest.raises(ValueError):
        firewall.table("tera_test", Rules(bridges=(Bridge("tf00000000", f"10.0.0.1{word}"),)))
    with pytest.raises(ValueError):
        firewall.open_ports("tera_test", [Forward(1, f"{word}10.0.0.1", 22)])


@settings(max_examples=15)
@given(rules=RULES)
def test_nft_accepts_the_table(rules: Rules) -> None:
    if shutil.which("nft") is None or shutil.which("unshare") is None:
        pytest.skip("nft is not installed")
    changes = firewall.open_ports("tera_test", [Forward(70, "10.9.9.9", 22)]) if not rules.forwards else ""
    text = firewall.table("tera_test", rules) + changes
    # Use a separate network namespace, so that this machine's firewall does not change.
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "nft", "-f", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip("namespaces are not available")
    assert done.returncode == 0, done.stderr
