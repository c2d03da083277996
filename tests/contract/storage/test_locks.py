"""Writes that are isolated by row locks: which ones wait, and what they see afterwards."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from teraflock.base.errors import Unavailable
from teraflock.storage.database import Database, Misuse, Overtaken, Transaction

WAIT_SECONDS_MAX = 60  # so that a failing test ends; a passing test never waits this long
ROW = "SELECT amount FROM thing WHERE id = :id"
ALL = "SELECT id FROM thing ORDER BY id"


def add(tx: Transaction, *ids: int) -> None:
    for id in ids:
        tx.run("INSERT INTO thing (id, amount) VALUES (:id, 0)", id=id)


def put(tx: Transaction, id: int, amount: float) -> None:
    tx.run("UPDATE thing SET amount = :amount WHERE id = :id", id=id, amount=amount)


def is_postgres(database: Database) -> bool:
    return database.where.startswith("postgresql")


def test_no_increment_is_lost_with_32_threads_locking_one_row(shared: Database) -> None:
    shared.write(lambda tx: add(tx, 1))

    def increment(tx: Transaction) -> None:
        put(tx, 1, tx.lock(ROW, id=1)[0][0] + 1)

    with ThreadPoolExecutor(32) as pool:
        for done in [pool.submit(shared.write_with_locks, increment) for _ in range(320)]:
            done.result()
    with shared.read() as tx:
        assert tx.one(ROW, id=1) == (320,)


def test_write_one_is_kept_and_rolled_back_like_other_writes(shared: Database) -> None:
    shared.write(lambda tx: add(tx, 1))
    shared.write_one(lambda tx: put(tx, 1, 5))
    with pytest.raises(Misuse):
        shared.write_one(lambda tx: tx.run("UPDATE thing SET amount = 7 WHERE nothing = 1"))
    with shared.read() as tx:
        assert tx.one(ROW, id=1) == (5,)


def test_no_write_gives_up_when_all_depend_on_one_row(shared: Database) -> None:
    """Serialisable writes conflict every time. After several conflicts they take turns, so none gives up."""
    shared.write(lambda tx: add(tx, 1))

    def increment(tx: Transaction) -> None:
        row = tx.one(ROW, id=1)
        assert row is not None
        put(tx, 1, row[0] + 1)

    with ThreadPoolExecutor(32) as pool:
        for done in [pool.submit(shared.write, increment) for _ in range(160)]:
            done.result()
    with shared.read() as tx:
        assert tx.one(ROW, id=1) == (160,)


def test_a_waiting_lock_sees_rows_written_meanwhile(shared: Database) -> None:
    shared.write(lambda tx: add(tx, 1))
    locked, asked = threading.Event(), threading.Event()

    def first(tx: Transaction) -> None:
        tx.lock(ROW, id=1)
        locked.set()
        assert asked.wait(WAIT_SECONDS_MAX)
        put(tx, 1, 7)

    def second(tx: Transaction) -> Any:
        asked.set()
        return tx.lock(ROW, id=1), tx.all(ROW, id=1)

    with ThreadPoolExecutor() as pool:
        one = pool.submit(shared.write_with_locks, first)
        assert locked.wait(WAIT_SECONDS_MAX)
        if not is_postgres(shared):
            asked.set()  # SQLite has one writer, so the second work cannot start yet
        assert pool.submit(shared.write_with_locks, second).result() == ([(7,)], [(7,)])
        one.result()


@pytest.mark.parametrize("how", ["lock", "lock_shared"])
def test_lock_free_skips_locked_rows(shared: Database, how: str) -> None:
    shared.write(lambda tx: add(tx, 1, 2))
    if not is_postgres(shared):  # SQLite has one writer, so nobody else holds a lock
        assert shared.write_with_locks(lambda tx: tx.lock_free(ALL)) == [(1,), (2,)]
        return
    locked, go_on = threading.Event(), threading.Event()

    def holds(tx: Transaction) -> None:
        getattr(tx, how)(ROW, id=1)
        locked.set()
        assert go_on.wait(WAIT_SECONDS_MAX)

    with ThreadPoolExecutor() as pool:
        held = pool.submit(shared.write_with_locks, holds)
        assert locked.wait(WAIT_SECONDS_MAX)
        assert shared.write_with_locks(lambda tx: tx.lock_free(ALL)) == [(2,)]
        go_on.set()
        held.result()
    assert shared.write_with_locks(lambda tx: tx.lock_free(ALL)) == [(1,), (2,)]


def test_shared_locks_do_not_exclude_each_other(shared: Database) -> None:
    """On PostgreSQL both hold the lock at once, or the barrier breaks. SQLite runs one write after the other."""
    shared.write(lambda tx: add(tx, 1))
    both = threading.Barrier(2)

    def shares(tx: Transaction) -> Any:
        found = tx.lock_shared(ROW, id=1)
        if is_postgres(shared):
            both.wait(WAIT_SECONDS_MAX)
        return found

    with ThreadPoolExecutor() as pool:
        works = [pool.submit(shared.write_with_locks, shares) for _ in range(2)]
        assert [work.result() for work in works] == [[(0,)], [(0,)]]


def test_a_serialisable_write_runs_again_after_a_conflicting_locked_write(
    shared: Database,
) -> None:
    """How the two kinds of write work together: see the docstring of `storage/database.py`."""
    shared.write(lambda tx: add(tx, 1))
    seen: list[int] = []

    def counts_and_closes(tx: Transaction) -> None:
        seen.append(len(tx.all("SELECT id FROM thing")))
        if len(seen) == 1 and is_postgres(shared):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(shared.write_with_locks, adds_one).result()
        put(tx, 1, 1)

    def adds_one(tx: Transaction) -> None:
        put(tx, 1, 0)  # like the claim of a project
        add(tx, 2)

    shared.write(counts_and_closes)
    assert seen == ([1, 2] if is_postgres(shared) else [1])


@pytest.mark.parametrize("how", ["lock", "lock_shared", "lock_free"])
def test_locking_outside_write_with_locks_is_refused(store: Database, how: str) -> None:
    def locks(tx: Transaction) -> None:
        getattr(tx, how)(ROW, id=1)

    with pytest.raises(Misuse, match="write_with_locks"):
        store.write(locks)
    with store.read() as tx, pytest.raises(Misuse, match="write_with_locks"):
        locks(tx)
    store.write_with_locks(locks)


def test_an_overtaken_work_is_rolled_back_and_runs_again(shared: Database) -> None:
    if not is_postgres(shared):
        return  # SQLite has one writer, so nobody overtakes it
    attempts: list[int] = []

    def work(tx: Transaction) -> int:
        attempts.append(1)
        add(tx, len(attempts))
        if len(attempts) < 3:
            raise Overtaken
        return len(tx.all(ALL))

    assert shared.write_with_locks(work) == 1


def test_an_always_overtaken_work_ends_with_an_error(
    shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_postgres(shared):
        return
    monkeypatch.setattr("teraflock.storage.postgres.time.sleep", lambda seconds: None)

    def work(tx: Transaction) -> None:
        raise Overtaken

    with pytest.raises(Unavailable, match="too busy"):
        shared.write_with_locks(work)


def test_a_deadlock_is_resolved_by_running_one_work_again(shared: Database) -> None:
    """The order of locks prevents deadlocks. If one happens anyway, one of the works runs again."""
    shared.write(lambda tx: add(tx, 1, 2))
    both = threading.Barrier(2)

    def locks(first: int, second: int) -> Callable[[Transaction], None]:
        attempts: list[int] = []

        def work(tx: Transaction) -> None:
            attempts.append(1)
            tx.lock(ROW, id=first)
            if len(attempts) == 1 and is_postgres(shared):
                both.wait(WAIT_SECONDS_MAX)
            put(tx, second, tx.lock(ROW, id=second)[0][0] + 1)

        return work

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(shared.write_with_locks, locks(*ids)) for ids in ((1, 2), (2, 1))]:
            done.result()
    with shared.read() as tx:
        assert tx.all("SELECT amount FROM thing") == [(1,), (1,)]
