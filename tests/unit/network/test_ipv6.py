"""IPv6 addresses follow from IPv4 addresses, in both directions, and never meet those of another network."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.network.ipv6 import RANGE6, four, holds, six, six_network, subnet6
from teraflock.network.rules import NETWORKS_MAX, RANGE, number_of, subnet

ADDRESSES = st.integers(int(RANGE.network_address), int(RANGE.broadcast_address)).map(
    lambda value: str(IPv4Address(value))
)
BLOCKS = st.tuples(st.integers(0, (1 << 32) - 1), st.integers(0, 32)).map(
    lambda made: str(IPv4Network(made, strict=False))
)
NEAR = st.tuples(ADDRESSES, st.integers(0, 32)).map(lambda made: str(IPv4Network(made, strict=False)))


@given(ADDRESSES)
def test_each_address_has_one_in_the_prefix_of_its_network(address: str) -> None:
    found = IPv6Address(six(address))
    assert found in subnet6(number_of(address))
    assert found in RANGE6
    assert four(str(found)) == address
    assert four(found.exploded) == address, "in any form"
    assert four(address) == address


def test_no_two_networks_overlap() -> None:
    assert len({subnet6(number) for number in range(NETWORKS_MAX)}) == NETWORKS_MAX
    assert {subnet6(number).prefixlen for number in range(NETWORKS_MAX)} == {64}
    assert IPv6Network("fc00::/7").supernet_of(RANGE6)
    assert str(subnet6(3)) == "fd3e:9a51:c870:3::/64"
    assert six("10.128.48.16") == "fd3e:9a51:c870:3::a80:3010"


@given(st.integers(0, (1 << 128) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, NETWORKS_MAX - 1))
def test_any_other_address_belongs_to_nobody(value: int, place: int, number: int) -> None:
    for made in (value, int(subnet6(number).network_address) | place):
        text = str(IPv6Address(made))
        inner = IPv4Address(made & 0xFFFFFFFF)
        is_one = inner in subnet(number) and made == int(subnet6(number).network_address) | int(inner)
        assert (four(text) != text) == is_one
        assert holds(str(RANGE), text) == is_one


@given(st.one_of(BLOCKS, NEAR), ADDRESSES)
def test_an_ipv4_network_means_both_addresses(network: str, address: str) -> None:
    """The firewall compares IPv6 addresses with one prefix, which must mean the same instances."""
    is_inside = IPv4Address(address) in IPv4Network(network)
    assert holds(network, address) == is_inside
    assert holds(network, six(address)) == is_inside
    prefix = six_network(network)
    assert (bool(prefix) and IPv6Address(six(address)) in IPv6Network(prefix)) == is_inside


@given(ADDRESSES, st.integers(0, 128))
def test_an_ipv6_network_means_ipv6_only(address: str, length: int) -> None:
    network = str(IPv6Network((six(address), length), strict=False))
    assert holds(network, six(address))
    assert not holds(network, address)
    assert six_network(network) == network


def test_only_private_addresses_have_one() -> None:
    with pytest.raises(ValueError):
        six("198.51.100.1")
    assert six_network("198.51.100.0/24") == ""
    assert not holds("0.0.0.0/0", "2001:db8::1"), "whoever is outside has no IPv4 address here"
    assert not holds("0.0.0.0/0", "::ffff:10.128.0.16")
