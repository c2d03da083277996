"""What holds while others write: one state for each read, no update lost, nobody's failure but one's own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from teraflock.storage.database import Database, Transaction

WAIT_SECONDS_MAX = 60  # a test that fails should end; one that passes never waits this long
TOGETHER_SECONDS_MAX = 0.2  # SQLite lets one in at a time: then nobody else comes, and that is right


def add(tx: Transaction, id: int, amount: float = 0) -> None:
    tx.run("INSERT INTO thing (id, amount) VALUES (:id, :amount)", id=id, amount=amount)


def count(tx: Transaction) -> int:
    row = tx.one("SELECT COUNT(*) FROM thing")
    assert row is not None
    return int(row[0])


def test_a_read_sees_one_state_whatever_is_written_meanwhile(shared: Database) -> None:
    shared.write(lambda tx: add(tx, 1))
    with shared.read() as before:
        assert count(before) == 1
        shared.write(lambda tx: add(tx, 2))
        assert count(before) == 1
        with shared.read() as after:
            assert count(after) == 2
        assert list(before.each("SELECT id FROM thing")) == [(1,)]


def test_a_read_neither_waits_for_a_write_nor_sees_half_of_it(shared: Database) -> None:
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


def test_writes_are_as_if_one_came_after_the_other(shared: Database) -> None:
    """Each of two looks that there is none, and adds one: after any order of them there is one."""
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


def test_a_failing_work_harms_nobody_else(shared: Database) -> None:
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


def test_a_write_alone_waits_for_the_one_before_it(shared: Database, opened: Callable[[], Database]) -> None:
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


def test_two_that_opened_the_same_database_see_each_other(opened: Callable[[], Database]) -> None:
    one, other = opened(), opened()
    one.write(lambda tx: tx.run("CREATE TABLE thing (id BIGINT PRIMARY KEY, amount DOUBLE PRECISION)"))
    one.write(lambda tx: add(tx, 1))
    other.write(lambda tx: add(tx, 2))
    with one.read() as tx:
        assert count(tx) == 2
