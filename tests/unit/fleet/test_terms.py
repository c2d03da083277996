"""PlaceTerms of a placement: which hosts are allowed, how instances are arranged, and the reasons that are given."""

from collections import Counter
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.fleet.test_placement import left, most, needs, rooms

from teraflock.base.size import Size
from teraflock.fleet.card.rules import neighbours
from teraflock.fleet.model import HostId, HostState
from teraflock.fleet.placement import PlaceTerms, Spread, decide, obstacle_of
from teraflock.fleet.room import Room

ONE = Size(gpu="a", gpus=1, vcpus=1, ram_bytes=1)


def host(name: str, free: int, *, zone: str = "", region: str = "home", **more: object) -> Room:
    return Room(
        host_id=HostId(name),
        name=name,
        site="site",
        threads=64,
        vcpus=64,
        ram_bytes=64,
        disk_bytes=64,
        free_gpus={"a": free},
        gpus_total=8,
        region=region,
        labels={"zone": zone} if zone else {},
        **more,  # type: ignore[arg-type]
    )


def placed(there: list[Room], count: int, **terms: object) -> dict[str, int]:
    found = decide(there, ONE, count, PlaceTerms(**terms))  # type: ignore[arg-type]
    return dict(Counter(room.name for room in found.chosen))


@st.composite
def terms(draw: st.DrawFn) -> PlaceTerms:
    how = draw(st.sampled_from(["plain", "pack", "together", *Spread]))
    return PlaceTerms(
        apart=draw(st.booleans()),
        pack=how == "pack",
        together=how == "together",
        spread=Spread(how) if how in list(Spread) else None,
        avoid=draw(st.sampled_from([{}, {"hst_0": "taken"}])),
        host_id=draw(st.sampled_from([None, None, HostId("hst_1")])),
    )


@given(rooms(), needs, st.integers(1, 12), terms())
def test_terms_hold_and_all_are_placed_exactly_where_there_is_room(
    there: list[Room], need: Size, count: int, wanted: PlaceTerms
) -> None:
    before = deepcopy(there)
    allowed = [
        room for room in before if room.host_id not in wanted.avoid and wanted.host_id in (None, room.host_id)
    ]
    capacity = sum(min(1, most(room, need)) if wanted.apart else most(room, need) for room in allowed)
    found = decide(there, need, count, wanted)
    assert bool(found.chosen) == (capacity >= count)
    assert {room.host_id for room in found.chosen} <= {room.host_id for room in allowed}
    if not found.chosen:
        assert there == before, "a refused placement took something"
        return
    counts = Counter(room.host_id for room in found.chosen)
    assert not wanted.apart or max(counts.values()) == 1
    assert all(amount >= 0 for room in there for amount in left(room))
    for old, new in zip(before, there, strict=True):
        taken = counts[old.host_id]
        assert left(old)[:3] == tuple(
            amount + taken * part
            for amount, part in zip(left(new)[:3], (need.vcpus, need.ram_bytes, need.disk_bytes), strict=True)
        )


@given(rooms(), needs)
def test_every_host_is_chosen_possible_or_rejected_for_a_reason(there: list[Room], need: Size) -> None:
    fit = {room.host_id for room in there if room.fits(need)}
    found = decide(deepcopy(there), need, 1)
    assert {each.room.host_id for each in found.rejected} == {room.host_id for room in there} - fit
    assert all(each.obstacle.reason for each in found.rejected)
    assert {room.host_id for room in (*found.chosen, *found.others)} == fit
    assert bool(found.why) == bool(fit)
    assert all((obstacle_of(room, need, PlaceTerms()) is None) == (room.host_id in fit) for room in there)
    assert all((room.capacity(need) > 0) == room.fits(need) for room in there)


def test_together_prefers_one_host_then_one_zone_then_one_region() -> None:
    def there() -> list[Room]:
        return [
            host("a1", 2, zone="a"),
            host("a2", 3, zone="a"),
            host("b1", 4, zone="b"),
            host("c1", 8, region="far"),
        ]

    assert placed(there(), 4, together=True) == {"b1": 4}
    assert placed(there()[:3], 5, together=True) == {"a2": 3, "a1": 2}
    assert placed(there()[:3], 6, together=True) == {"b1": 4, "a1": 2}
    assert placed(there(), 12, together=True) == {"c1": 8, "b1": 4}
    assert placed(there(), 18, together=True) == {}


def test_pack_uses_as_few_hosts_as_possible() -> None:
    there = [host("x", 2), host("y", 3), host("z", 5)]
    assert placed(there, 5, pack=True) == {"z": 5}
    assert placed([host("x", 2), host("y", 3), host("z", 5)], 7, pack=True) == {"z": 5, "x": 2}


def test_spread_is_even_over_domains() -> None:
    def there() -> list[Room]:
        return [host("a1", 8, zone="a"), host("a2", 8, zone="a"), host("b1", 2, zone="b")]

    assert placed(there(), 4, spread=Spread.ZONE)["b1"] == 2
    assert placed(there(), 3, spread=Spread.HOST) == {"a1": 1, "a2": 1, "b1": 1}
    assert placed(there(), 18, spread=Spread.ZONE) == {"a1": 8, "a2": 8, "b1": 2}


@pytest.mark.parametrize(
    ("room", "wanted", "reason"),
    [
        (host("x", 0), PlaceTerms(), "not enough free a"),
        (host("x", 1, state=HostState.DRAINING), PlaceTerms(), "drained"),
        (host("x", 1, state=HostState.AWAY), PlaceTerms(), "does not answer"),
        (host("x", 1, zone="a"), PlaceTerms(labels=(("zone", "b"),)), "not labelled `zone=b`"),
        (host("x", 1), PlaceTerms(labels=(("region", "far"),)), "not labelled `region=far`"),
        (host("x", 1), PlaceTerms(avoid={"x": "has an instance of `y`"}), "has an instance of `y`"),
        (host("x", 1, reserved_for="que_1"), PlaceTerms(), "reserved for a queued launch"),
    ],
)  # fmt: skip
def test_rejected_host_has_its_reason(room: Room, wanted: PlaceTerms, reason: str) -> None:
    (rejected,) = decide([room], ONE, 1, wanted).rejected
    assert rejected.obstacle.reason == reason


def test_a_reservation_admits_its_own_launch() -> None:
    room = host("x", 1, reserved_for="que_1")
    assert decide([room], ONE, 1, PlaceTerms(queued_id="que_1")).chosen == (room,)


def test_reason_of_the_winner_names_what_differs() -> None:
    assert decide([host("x", 1)], ONE, 1).why == "the only host with room"
    assert decide([host("x", 1), host("y", 5)], ONE, 1).why.startswith("has fewer free cards than `y`")


@given(st.lists(st.sampled_from(["", "left", "right"]), max_size=8), st.integers(1, 8))
def test_neighbours_come_from_one_group_if_possible(near: list[str], count: int) -> None:
    free = [(f"slot-{n}", group) for n, group in enumerate(near)]
    slots = neighbours(free, count)
    assert len(slots) == len(set(slots)) == min(count, len(free))
    sizes = Counter(near)
    used = {dict(free)[slot] for slot in slots}
    if any(size >= count for size in sizes.values()):
        (group,) = used
        assert sizes[group] == min(size for size in sizes.values() if size >= count)
