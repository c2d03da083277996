"""Isolation between concurrent writers: each read sees one snapshot, no update is lost, failures stay separate."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from teraflock.storage.database import Database, Transaction

WAIT_SECONDS_MAX = 60  # so that a failing test ends; a passing test never waits this long
TOGETHER_SECONDS_MAX = 0.2  # SQLite has one writer at a time, so no second one arrives, which is correct


def add(tx: Transaction, id: int, amount: float = 0) -> None:
    tx.run("INSERT INTO thing (id, amount) VALUES (:id, :amount)", id=id, amount=amount)


def count(tx: Transaction) -> int:
    row = tx.one("SELECT COUNT(*) FROM thing")
    assert row is not None
    return int(row[0])


def test_a_read_sees_one_snapshot_during_concurrent_writes(shared: Database) -> None:
    shared.write(lambda tx: add(tx, 1))
    with shared.read() as before:
        assert count(before) == 1
        shared.write(lambda tx: add(tx, 2))
        assert count(before) == 1
        with shared.read() as after:
            assert count(after) == 2
        assert list(before.each("SELECT id FROM thing")) == [(1,)]


def test_a_read_does_not_wait_for_a_write_or_see_part_of_it(shared: Database) -> None:
    half_done, go_on = threading.Event(), threading.Event()

    def work(tx: Transaction) -> None:
        add(tx, 1)
        half_done.set()
        assert go_on.wait(WAIT_SECONDS_MAX)
        add(tx, 2)

    with ThreadPoolExecutor() as pool:
        written = pool.submit(shared.write, work)
        assert half_done.wait(WAIT_SECONDS_MAX)
        with shared.read() as tx:
            assert count(tx) == 0
        go_on.set()
        written.result()
    with shared.read() as tx:
        assert count(tx) == 2


def test_no_increment_is_lost(shared: Database) -> None:
    threads, increments = 12, 20
    shared.write(lambda tx: add(tx, 1))

    def increment(tx: Transaction) -> None:
        row = tx.one("SELECT amount FROM thing WHERE id = 1")
        assert row is not None
        tx.run("UPDATE thing SET amount = :amount WHERE id = 1", amount=row[0] + 1)

    def increments_of_one_thread(_: int) -> None:
        for _ in range(increments):
            shared.write(increment)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(increments_of_one_thread, range(threads)))
    with shared.read() as tx:
        assert tx.one("SELECT amount FROM thing WHERE id = 1") == (threads * increments,)


def test_writes_are_serialisable(shared: Database) -> None:
    """Each of two works adds a row if there is none. In any serial order, the result is one row."""
    both_inside = threading.Barrier(2)

    def adds_the_only_one(id: int) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            if count(tx):
                return
            with suppress(threading.BrokenBarrierError):
                both_inside.wait(TOGETHER_SECONDS_MAX)
            add(tx, id)

        return work

    with ThreadPoolExecutor() as pool:
        list(pool.map(shared.write, [adds_the_only_one(1), adds_the_only_one(2)]))
    with shared.read() as tx:
        assert count(tx) == 1


def test_a_failing_work_does_not_affect_others(shared: Database) -> None:
    def write(id: int) -> None:
        def work(tx: Transaction) -> None:
            add(tx, id)
            if id % 3 == 0:
                raise LookupError(id)

        shared.write(work)

    with ThreadPoolExecutor(16) as pool:
        written = [pool.submit(write, id) for id in range(60)]
    for id, future in enumerate(written):
        assert repr(future.exception()) == (repr(LookupError(id)) if id % 3 == 0 else "None")
    with shared.read() as tx:
        assert [row[0] for row in tx.all("SELECT id FROM thing ORDER BY id")] == [
            id for id in range(60) if id % 3
        ]


def test_write_alone_waits_for_an_earlier_one(shared: Database, opened: Callable[[], Database]) -> None:
    other = opened()
    first_inside, second_asked = threading.Event(), threading.Event()
    order: list[str] = []

    def first(tx: Transaction) -> None:
        first_inside.set()
        assert second_asked.wait(WAIT_SECONDS_MAX)
        order.append("first")

    def second() -> None:
        assert first_inside.wait(WAIT_SECONDS_MAX)
        second_asked.set()
        other.write_alone(lambda tx: order.append("second"))

    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda act: act(), [lambda: shared.write_alone(first), second]))
    assert order == ["first", "second"]


def test_two_connections_to_one_database_see_each_others_writes(opened: Callable[[], Database]) -> None:
    one, other = opened(), opened()
    one.write(lambda tx: tx.run("CREATE TABLE thing (id BIGINT PRIMARY KEY, amount DOUBLE PRECISION)"))
    one.write(lambda tx: add(tx, 1))
    other.write(lambda tx: add(tx, 2))
    with one.read() as tx:
        assert count(tx) == 2
