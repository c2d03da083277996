"""Nothing is promised twice, and nothing is refused that fits."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.size import Size
from teraflock.fleet.model import HostId
from teraflock.fleet.placement import choose, choose_many
from teraflock.fleet.room import Room

sizes = st.integers(0, 8)


@st.composite
def rooms(draw: st.DrawFn) -> list[Room]:
    return [
        Room(
            host_id=HostId(f"hst_{number}"),
            name=f"host-{number}",
            site="site",
            threads=draw(sizes),
            vcpus=draw(sizes),
            ram_bytes=draw(sizes),
            disk_bytes=draw(sizes),
            free_gpus={card: draw(sizes) for card in draw(st.sets(st.sampled_from(["a", "b"])))},
            gpus_total=8,
            ram_bytes_total=draw(sizes),
        )
        for number in range(draw(st.integers(0, 5)))
    ]


needs = st.builds(
    Size,
    gpu=st.sampled_from(["a", "b"]),
    gpus=st.integers(0, 3),
    vcpus=st.integers(1, 3),
    ram_bytes=st.integers(1, 3),
    disk_bytes=st.integers(1, 3),
)


def left(room: Room) -> tuple[int, ...]:
    return (room.vcpus, room.ram_bytes, room.disk_bytes, *room.free_gpus.values())


def most(room: Room, need: Size) -> int:
    """How many fit on one host, counted one by one."""
    count, have = 0, [room.vcpus, room.ram_bytes, room.disk_bytes, room.free_gpus.get(need.gpu, 0)]
    takes = [need.vcpus, need.ram_bytes, need.disk_bytes, need.gpus]
    if need.vcpus > room.threads:
        return 0
    while all(amount >= take for amount, take in zip(have, takes, strict=True)):
        have = [amount - take for amount, take in zip(have, takes, strict=True)]
        count += 1
    return count


@given(rooms(), needs, st.integers(1, 12))
def test_all_are_placed_exactly_where_there_is_room_for_all(
    there: list[Room], need: Size, count: int
) -> None:
    capacity = sum(most(room, need) for room in there)
    chosen = choose_many(there, need, count)
    assert (chosen is not None) == (capacity >= count)
    if chosen is not None:
        assert len(chosen) == count
        assert all(amount >= 0 for room in there for amount in left(room))


@given(rooms(), needs)
def test_what_needs_no_card_spares_the_cards(there: list[Room], need: Size) -> None:
    plain = Size(vcpus=need.vcpus, ram_bytes=need.ram_bytes, disk_bytes=need.disk_bytes)
    for room in there:
        room.gpus_total = sum(room.free_gpus.values())
    chosen = choose(there, plain)
    fitting = [room for room in there if room.fits(plain)]
    assert (chosen is None) == (not fitting)
    if chosen and any(room.gpus_total == 0 for room in fitting):
        assert chosen.gpus_total == 0


@given(rooms(), needs, st.integers(1, 12))
def test_many_are_chosen_as_one_after_another(there: list[Room], need: Size, count: int) -> None:
    one_by_one = deepcopy(there)
    expected: list[HostId] = []
    while len(expected) < count and (room := choose(one_by_one, need)):
        room.take(need)
        expected.append(room.host_id)
    chosen = choose_many(there, need, count)
    assert [room.host_id for room in chosen or ()] == (expected if len(expected) == count else [])


@given(rooms(), needs)
def test_no_other_host_would_strand_fewer_cards(there: list[Room], need: Size) -> None:
    """A brute-force reference: the usable cards of each host, before and after, by its memory per card."""

    def usable(room: Room) -> float:
        cards = sum(room.free_gpus.values())
        per_card = room.ram_bytes_total / room.gpus_total
        return min(cards, room.ram_bytes / per_card) if per_card else cards

    def lost(room: Room) -> float:
        after = deepcopy(room)
        after.take(need)
        return round(usable(room) - usable(after) - need.gpus, 3)

    if chosen := choose(there, need):
        assert lost(chosen) == min(lost(room) for room in there if room.fits(need))


def host(name: str, *, free: int, ram: int) -> Room:
    return Room(
        host_id=HostId(name),
        name=name,
        site="site",
        threads=64,
        vcpus=64,
        ram_bytes=ram,
        disk_bytes=64,
        free_gpus={"a": free},
        gpus_total=8,
        ram_bytes_total=80,
    )


def test_memory_beside_free_cards_is_kept_for_them() -> None:
    """The first fits tighter, but 30 of its 40 would leave three of its four cards without memory."""
    there = [host("tight", free=4, ram=40), host("roomy", free=5, ram=80)]
    assert choose(there, Size(vcpus=1, ram_bytes=30)) is there[1]
    assert choose(there, Size(gpu="a", gpus=1, vcpus=1, ram_bytes=30)) is there[1]
    assert choose(there, Size(gpu="a", gpus=1, vcpus=1, ram_bytes=10)) is there[0]
