"""Every project has its own addresses, and no address is assigned twice."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.base.errors import Refused
from teraflock.network.rules import (
    NETWORKS_MAX,
    PORT_FIRST,
    PORT_LAST,
    RANGE,
    free_addresses,
    free_ports,
    gateway,
    is_reserved,
    number_of,
    subnet,
)

numbers = st.integers(0, NETWORKS_MAX - 1)


@given(numbers, numbers)
def test_parts_do_not_overlap(one: int, other: int) -> None:
    assert subnet(one).overlaps(subnet(other)) == (one == other)
    assert subnet(one).subnet_of(RANGE)


@given(numbers, st.sets(st.integers(2, 4_094), max_size=50), st.integers(1, 20))
def test_addresses_are_free_and_in_the_subnet(number: int, taken: set[int], count: int) -> None:
    network = subnet(number)
    texts = {str(network[offset]) for offset in taken}
    found = free_addresses(network, texts, count)
    assert len(set(found)) == count
    assert not texts & set(found)
    assert all(IPv4Address(address) in network for address in found)
    assert str(gateway(number)) not in found


@settings(max_examples=20)
@given(numbers, st.sets(st.integers(1, 255), max_size=6), st.integers(1, 30), st.integers(24, 29))
def test_addresses_of_a_network_are_in_none_of_its_other_parts(
    number: int, places: set[int], count: int, prefix: int
) -> None:
    network = subnet(number)
    blocks = list(network.subnets(new_prefix=prefix))
    parts = [blocks[place % len(blocks)] for place in places]
    found = free_addresses(network, set(), count, parts)
    assert len(set(found)) == count
    assert not any(IPv4Address(each) in part or is_reserved(each) for each in found for part in parts)
    free = [each for each in map(str, network) if not is_reserved(each)]
    lowest = [each for each in free if not any(IPv4Address(each) in part for part in parts)]
    assert found == lowest[:count]
    assert {number_of(each) for each in found} == {number}


def test_a_full_network_is_refused() -> None:
    network = subnet(7)
    everything = {str(address) for address in network}
    with pytest.raises(Refused, match="fewer than 1 free addresses"):
        free_addresses(network, everything, 1)


def test_a_network_beyond_the_range_is_refused() -> None:
    for number in (-1, NETWORKS_MAX):
        with pytest.raises(ValueError, match="no network has the number"):
            subnet(number)


@given(st.sets(st.integers(PORT_FIRST, PORT_FIRST + 30)), st.integers(1, 5))
def test_ports_are_free(taken: set[int], count: int) -> None:
    found = free_ports(taken, count)
    assert len(set(found)) == count
    assert not taken & set(found)
    with pytest.raises(Refused):
        free_ports(range(PORT_FIRST, PORT_LAST + 1), count)
