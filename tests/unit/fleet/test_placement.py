"""Nothing is promised twice, and nothing is refused that fits."""

from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.size import Size
from teraflock.fleet.model import HostId
from teraflock.fleet.placement import Room, choose, choose_many

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
