"""Readings of counters: each byte once, in whatever order, however often and by whomever they are read."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.bill.world import World

from teraflock.instance.driver import Sent
from teraflock.instance.model import InstanceId
from teraflock.instance.states import Phase
from teraflock.meter.reading import store
from teraflock.storage.database import Transaction

IDS = ("ins_1", "ins_2")


@st.composite
def counters(draw: st.DrawFn) -> list[Sent]:
    """What counters said at any times of their lives, told in any order, some of it twice."""
    said = []
    for id in IDS:
        for epoch in range(draw(st.integers(1, 3))):
            grown = sorted(draw(st.lists(st.integers(0, 1000), min_size=1, max_size=6)))
            said += [Sent(instance_id=InstanceId(id), epoch=f"{id}.{epoch}", bytes=each) for each in grown]
    again = draw(st.lists(st.sampled_from(said), max_size=4))
    return draw(st.permutations([*said, *again]))


@given(said=counters(), size=st.integers(1, 5))
def test_the_sum_is_the_highest_of_each_epoch(said: list[Sent], size: int) -> None:
    world = _world()
    for place in range(0, len(said), size):
        batch = said[place : place + size]
        world.database.write(lambda tx, batch=batch: store.keep(tx, batch, world.now_us))  # type: ignore[misc]
        world.wait(7)
    highest: dict[tuple[str, str], int] = {}
    for each in said:
        key = (each.instance_id, each.epoch)
        highest[key] = max(highest.get(key, 0), each.bytes)
    rows = world.rows(
        "SELECT instance_id, epoch, bytes_before, bytes, number FROM meter_reading ORDER BY number"
    )
    sums: dict[tuple[str, str], int] = {}
    for id, epoch, before, after, _ in rows:
        assert before == sums.get((id, epoch), 0), "each goes on where the one before ended"
        sums[id, epoch] = after
    assert sums == {key: count for key, count in highest.items() if count}
    assert [row[4] for row in rows] == list(range(1, len(rows) + 1))
    world.database.close()


def test_what_does_not_run_is_not_read_and_waits_in_its_counter() -> None:
    world = _world()
    counter = Sent(instance_id=InstanceId("ins_1"), epoch="1", bytes=500)

    def set_running(tx: Transaction, since: int | None) -> None:
        tx.run("UPDATE instance SET running_since_us = :since WHERE id = 'ins_1'", since=since)

    world.database.write(lambda tx: set_running(tx, None))
    assert world.database.write(lambda tx: store.keep(tx, [counter], 1)) == 0
    stranger = Sent(instance_id=InstanceId("ins_9"), epoch="1", bytes=500)
    assert world.database.write(lambda tx: store.keep(tx, [stranger], 1)) == 0
    world.database.write(lambda tx: set_running(tx, 1))
    assert world.database.write(lambda tx: store.keep(tx, [counter], 1, bytes_min=501)) == 0
    assert world.database.write(lambda tx: store.keep(tx, [counter], 1)) == 1
    assert world.database.write(lambda tx: store.keep(tx, [counter], 1)) == 0, "nothing new"
    world.database.close()


def _world() -> World:
    world = World()
    for id in IDS:
        world.move(id, Phase.RUNNING)
        world.sent(id, 0)  # makes its row, and tells nothing
    return world
