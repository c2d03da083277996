"""Which hosts are linked, how, and what each of them is told."""

from hypothesis import given
from hypothesis import strategies as st

from teraflock.network.fabric import (
    MTU_ENCRYPTED,
    MTU_PLAIN,
    Fabric,
    LinkHost,
    NetworkMember,
    PassedNetwork,
    WireKey,
    can_be_peer,
    fabrics,
    unlinked,
)
from teraflock.network.security_group.model import GroupId
from teraflock.reconcile.walls import Stations, shared


def host(number: int, *, key: bool = True, trusted: bool = False) -> LinkHost:
    wire = WireKey(f"key{number}", 8735) if key else WireKey()
    return LinkHost(
        site=f"s{number}", address=f"192.0.2.{number + 1}", number=number, wire=wire, trusted=trusted
    )


def member(site: int, network: int, place: int) -> NetworkMember:
    return NetworkMember(f"s{site}", f"prj_{network}", network, f"10.128.{network * 16}.{place}")


HOSTS = st.lists(
    st.builds(lambda key, trusted: (key, trusted), st.booleans(), st.booleans()), min_size=1, max_size=5
).map(lambda each: [host(number, key=key, trusted=trusted) for number, (key, trusted) in enumerate(each)])
MEMBERS = st.lists(
    st.builds(member, st.integers(0, 4), st.integers(0, 2), st.integers(16, 40)),
    unique_by=lambda each: each.address,
    max_size=12,
)


@given(HOSTS, MEMBERS)
def test_no_packet_is_plain_on_a_wire_that_is_not_trusted(
    hosts: list[LinkHost], members: list[NetworkMember]
) -> None:
    found = fabrics(hosts, members)
    by_address = {each.address: each for each in hosts}
    for each in hosts:
        for peer in found[each.site].peers:
            other = by_address[peer.address]
            if peer.inner:
                assert each.wire.key
                assert (peer.key, peer.inner) == (other.wire.key, other.inner)
                assert found[each.site].mtu == MTU_ENCRYPTED
            else:
                assert all(end.trusted or end.number == 0 for end in (each, other))


@given(HOSTS, MEMBERS)
def test_links_are_mutual_and_lead_to_where_instances_are(
    hosts: list[LinkHost], members: list[NetworkMember]
) -> None:
    found = fabrics(hosts, members)
    linked = {
        (each.site, other.site)
        for each in hosts
        for other in hosts
        if other.address in {peer.address for peer in found[each.site].peers}
    }
    assert linked == {(other, one) for one, other in linked}
    apart = unlinked(hosts)
    assert len(linked) // 2 + len(apart) == len(hosts) * (len(hosts) - 1) // 2
    at = {each.address: each.site for each in members}
    for each in hosts:
        own = {one.network for one in members if one.site == each.site}
        expected = {one.address for one in members if one.network in own and (each.site, one.site) in linked}
        remotes = found[each.site].remotes
        assert {one.address for one in remotes} == expected
        targets = {other.site: {other.address, other.inner} for other in hosts}
        assert all(one.target in targets[at[one.address]] for one in remotes)


def test_an_address_that_others_cannot_reach_is_no_peer() -> None:
    assert can_be_peer("192.0.2.1")
    for address in ("127.0.0.1", "0.0.0.0", "2001:db8::1", "host.example", ""):
        assert not can_be_peer(address)


def test_a_single_host_has_no_links() -> None:
    assert fabrics([host(0)], [member(0, 1, 16)]) == {"s0": Fabric()}


def test_hosts_on_a_trusted_wire_use_larger_packets() -> None:
    found = fabrics([host(0, key=False), host(1, key=False, trusted=True)], [])
    assert {each.mtu for each in found.values()} == {MTU_PLAIN}
    assert {each.inner for each in found.values()} == {""}


def test_walls_contain_members_of_the_same_and_of_peered_networks_on_linked_hosts() -> None:
    web, other = (GroupId("sgr_web"),), (GroupId("sgr_other"),)
    stations: dict[str, Stations] = {
        "one": {"10.128.0.16": web},
        "two": {"10.128.0.17": web, "10.128.16.16": other},
        "sim": {"10.128.0.18": web},
    }
    found = shared(stations, {"one", "two", "empty"})
    assert found["one"] == {"10.128.0.16": web, "10.128.0.17": web}
    assert found["two"] == {"10.128.0.16": web, "10.128.0.17": web, "10.128.16.16": other}
    assert found["sim"] == stations["sim"]
    assert "empty" not in found
    peered = shared(stations, {"one", "two"}, {("10.128.0.0/20", "10.128.16.0/20")})
    assert peered["one"] == {"10.128.0.16": web, "10.128.0.17": web, "10.128.16.16": other}


NETWORKS = tuple(PassedNetwork(f"prj_{number}", number, f"prj_{number}") for number in range(3))
PEERINGS = st.sets(st.sampled_from([(0, 1), (0, 2), (1, 2)]))


@given(HOSTS, MEMBERS, PEERINGS)
def test_a_packet_between_peers_is_routed_to_where_it_is_accepted(
    hosts: list[LinkHost], members: list[NetworkMember], peerings: set[tuple[int, int]]
) -> None:
    """Follow a packet between every two instances on two hosts, by what each host knows."""
    found = fabrics(hosts, members, peerings, NETWORKS)
    for one in members:
        for other in members:
            if one.site == other.site or {one.site, other.site} - found.keys():
                continue
            sender, receiver = found[one.site], found[other.site]
            own = {each.network for each in members if each.site == one.site}
            bridges = own | {each.network for each in sender.passed}
            knows = any(each.address == other.address for each in sender.remotes)
            is_sent = other.network in bridges and knows
            accepted = {(each.network, each.address) for each in receiver.remotes}
            accepted |= {(each.network, each.address) for each in receiver.routed}
            marked = one.network == other.network or one.address in sender.crossing
            arrives = is_sent and marked and (other.network, one.address) in accepted
            linked = any(peer.address == address_of(hosts, other.site) for peer in sender.peers)
            near = (
                one.network == other.network
                or (min(one.network, other.network), max(one.network, other.network)) in peerings
            )
            if near:
                assert arrives == linked, (one, other)
            else:
                assert (other.network, one.address) not in accepted, "no host accepts it"


def address_of(hosts: list[LinkHost], site: str) -> str:
    return next(each.address for each in hosts if each.site == site)
