"""Which names the DNS servers of a host know: of other hosts, of peers, and never a name that belongs to another."""

from hypothesis import given
from hypothesis import strategies as st

from teraflock.network.naming import KnownName, NamedMember, known_names


def member(
    name: str, project: str, number: int, *, site: str = "one", owner: str = "", place: int = 16
) -> NamedMember:
    return NamedMember(
        id=f"ins_{project}{owner}{name}{number}",
        name=name,
        address=f"10.128.{number * 16}.{place}",
        site=site,
        key=f"net_{number}",
        number=number,
        network="default",
        project_id=f"prj_{project}{owner}",
        project=project,
    )


WEB, FAR = member("web", "vision", 0), member("far", "vision", 0, site="two", place=17)
DB = member("db", "speech", 1)
REMOTE_DB = member("db2", "speech", 1, site="two", place=17)


def names(found: tuple[KnownName, ...], network: str) -> dict[str, str]:
    return {name: each.address for each in found if each.network == network for name in each.names}


def test_instances_on_linked_hosts_have_all_their_names() -> None:
    found = known_names("one", [WEB, FAR], [], {"one", "two"})
    assert names(found, "net_0") == {"far.vision.internal": FAR.address, "far": FAR.address}
    assert [each.names for each in found if each.project == "prj_vision"] == [
        ("far.default.vision.internal",)
    ]
    assert known_names("one", [WEB, FAR], [], ()) == (), "the hosts are not linked"
    assert known_names("three", [WEB, FAR], [], {"one", "two", "three"}) == (), "it has none of the network"


def test_peers_are_known_by_their_long_names_while_they_are_peered() -> None:
    assert known_names("one", [WEB, DB], [], ()) == ()
    found = known_names("one", [WEB, DB], [(0, 1)], ())
    assert names(found, "net_0") == {"db.speech.internal": DB.address}
    assert names(found, "net_1") == {"web.vision.internal": WEB.address}
    far = known_names("one", [WEB, REMOTE_DB], [(0, 1)], {"one", "two"})
    assert names(far, "net_0") == {"db2.speech.internal": REMOTE_DB.address}


def test_a_peer_cannot_take_the_names_of_another_project() -> None:
    thief = member("web", "vision", 1, owner="thief")
    assert known_names("one", [WEB, thief], [(0, 1)], ()) == ()
    other = member("db", "speech", 2, owner="thief")
    found = known_names("one", [WEB, DB, other], [(0, 1), (0, 2)], ())
    assert names(found, "net_0") == {}, "two peers have this name"


MEMBERS = st.lists(
    st.builds(
        lambda name, project, owner, number, site, place: member(
            name, project, number, owner=owner, site=site, place=place
        ),
        st.sampled_from(["web", "db"]),
        st.sampled_from(["vision", "speech"]),
        st.sampled_from(["", "x"]),
        st.integers(0, 3),
        st.sampled_from(["one", "two"]),
        st.integers(16, 99),
    ),
    unique_by=lambda each: (each.address, each.number),
    max_size=10,
)


@given(MEMBERS, st.sets(st.tuples(st.integers(0, 1), st.integers(2, 3))))
def test_a_name_never_leads_to_two_projects(
    members: list[NamedMember], peerings: set[tuple[int, int]]
) -> None:
    owners = {each.number: each.project_id for each in members}
    members = [each for each in members if owners[each.number] == each.project_id]
    owner = {each.address: each.project_id for each in members}
    for site in ("one", "two"):
        found = known_names(site, members, peerings, {"one", "two"})
        for key in {each.key for each in members}:
            leads: dict[str, set[str]] = {}
            local = [each for each in members if each.key == key and each.site == site]
            for name, address in [(each.long, each.address) for each in local] + [
                (name, each.address) for each in found if each.network == key for name in each.names
            ]:
                leads.setdefault(name, set()).add(owner[address])
            assert all(len(each) == 1 for each in leads.values()), leads
