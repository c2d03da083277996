"""The writer thread: waiting works are committed together, and each caller gets its own result."""

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from teraflock.base.errors import StorageFailed
from teraflock.storage.database import ConstraintBroken, Misuse, Transaction
from teraflock.storage.group_commit import WORKS_PER_COMMIT_MAX, GroupCommit
from teraflock.storage.sqlite import SqliteDatabase, connect_to_write
from teraflock.storage.sqlite_errors import translated

WAIT_SECONDS_MAX = 60  # so that a failing test ends; a passing test never waits this long


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "tera.db")
    database.write(make_table)
    yield database
    database.close()


def make_table(tx: Transaction) -> None:
    tx.run("CREATE TABLE thing (id BIGINT PRIMARY KEY, body TEXT)")


def add(id: int, body: str = "") -> Callable[[Transaction], int]:
    return lambda tx: tx.run("INSERT INTO thing (id, body) VALUES (:id, :body)", id=id, body=body)


def ids(database: SqliteDatabase) -> list[int]:
    with database.read() as tx:
        return [row[0] for row in tx.all("SELECT id FROM thing ORDER BY id")]


def batch(
    database: SqliteDatabase,
    works: list[Callable[[Transaction], Any]],
    then: Callable[[], None] = lambda: None,
) -> list[Future[Any]]:
    """The results of works that the writer starts together, in this order.

    Another work blocks the writer until all of them wait. It calls `then` just before its own commit.
    """
    inside, go_on = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        inside.set()
        assert go_on.wait(WAIT_SECONDS_MAX)
        then()

    with ThreadPoolExecutor(len(works) + 1) as pool:
        pool.submit(database.write, hold)
        assert inside.wait(WAIT_SECONDS_MAX)
        answers = []
        for count, work in enumerate(works, start=1):
            answers.append(pool.submit(database.write, work))
            while database.works_waiting < count:
                time.sleep(0.001)
        go_on.set()
    return answers


def test_waiting_works_are_committed_together(database: SqliteDatabase) -> None:
    before = database.commits
    answers = batch(database, [add(id) for id in range(100)])
    assert [answer.result() for answer in answers] == [1] * 100
    assert database.commits - before == 2  # one for the blocking work, and one for all others
    assert ids(database) == list(range(100))


def test_sequential_works_are_committed_separately(database: SqliteDatabase) -> None:
    before = database.commits
    for id in range(5):
        database.write(add(id))
    assert database.commits - before == 5


def test_each_work_of_a_batch_gets_its_own_result(database: SqliteDatabase) -> None:
    def raises(error: BaseException) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            add(50)(tx)
            raise error

        return work

    errors: list[BaseException] = [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)]
    answers = batch(database, [add(1), *map(raises, errors), add(1), add(2)])
    assert answers[0].result() == answers[5].result() == 1
    assert [answer.exception() for answer in answers[1:4]] == errors
    assert isinstance(answers[4].exception(), ConstraintBroken)
    assert ids(database) == [1, 2]


def test_the_batch_size_is_limited(database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    assert WORKS_PER_COMMIT_MAX >= 128
    monkeypatch.setattr("teraflock.storage.group_commit.WORKS_PER_COMMIT_MAX", 10)
    before = database.commits
    batch(database, [add(id) for id in range(35)])
    assert database.commits - before == 1 + 4


def test_a_work_that_fills_the_disk_fails_alone(database: SqliteDatabase) -> None:
    def fills(tx: Transaction) -> None:
        pages = tx.one("PRAGMA page_count")
        assert pages
        tx.run(f"PRAGMA max_page_count = {pages[0] + 5}")
        add(50, "x" * 1_000_000)(tx)

    answers = batch(database, [add(1), add(1), fills, add(2)])
    assert answers[0].result() == answers[3].result() == 1
    assert isinstance(answers[1].exception(), ConstraintBroken)
    full = answers[2].exception()
    assert isinstance(full, StorageFailed)
    assert full.sentence.startswith("The disk is full")
    assert ids(database) == [1, 2]


def test_a_work_that_ends_the_transaction_fails_alone(database: SqliteDatabase) -> None:
    attempts: list[int] = []

    def fails_once(tx: Transaction) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise LookupError("because of a transaction that was never committed")

    answers = batch(database, [add(1), fails_once, lambda tx: tx.run("ROLLBACK"), add(2)])
    assert answers[0].result() == answers[3].result() == 1
    assert answers[1].result() is None
    assert answers[2].exception() is not None
    assert ids(database) == [1, 2]


def test_a_deferred_constraint_fails_its_own_work_only(database: SqliteDatabase) -> None:
    database.write(
        lambda tx: tx.run(
            "CREATE TABLE child (parent BIGINT REFERENCES thing (id) DEFERRABLE INITIALLY DEFERRED)"
        )
    )
    answers = batch(database, [add(1), lambda tx: tx.run("INSERT INTO child (parent) VALUES (99)"), add(2)])
    assert answers[0].result() == answers[2].result() == 1
    assert isinstance(answers[1].exception(), ConstraintBroken)
    assert ids(database) == [1, 2]


class FaultyConnection(sqlite3.Connection):
    """Fails at one statement, like a broken disk, as often as configured."""

    faults: dict[str, int]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if self.faults.get(sql):
            self.faults[sql] -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return super().execute(sql, parameters)


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    faults: dict[str, int] = {}
    connect = sqlite3.connect

    def connect_faulty(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, factory=FaultyConnection, **options)
        connection.faults = faults
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_faulty)
    return faults


@pytest.mark.parametrize(("statement", "times"), [("COMMIT", 2), ("BEGIN IMMEDIATE", 1)])
def test_a_failed_transaction_raises_for_all_its_works_and_stores_nothing(
    faults: dict[str, int], tmp_path: Path, statement: str, times: int
) -> None:
    database = SqliteDatabase(tmp_path / "faulty.db")
    database.write(make_table)
    answers = batch(database, [add(1), add(2)], then=lambda: faults.update({statement: times}))
    for answer in answers:
        error = answer.exception()
        assert isinstance(error, StorageFailed)
        assert "cannot be read or written" in error.sentence
    assert len({id(answer.exception()) for answer in answers}) == len(answers)
    assert ids(database) == []
    faults.clear()
    database.write(add(3))
    assert ids(database) == [3]
    database.close()


def test_a_failed_savepoint_rollback_reruns_the_other_works(faults: dict[str, int], tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "faulty.db")
    database.write(make_table)

    def raises(tx: Transaction) -> None:
        faults["ROLLBACK TO work"] = 1
        raise LookupError

    answers = batch(database, [add(1), raises, add(2)])
    assert isinstance(answers[1].exception(), LookupError)
    assert ids(database) == [1, 2]
    database.close()


def test_a_bug_in_the_writer_leaves_no_caller_waiting(tmp_path: Path) -> None:
    class Broken(GroupCommit):
        def _settle(self, jobs: Any) -> None:
            raise RuntimeError("a bug")

    writer = Broken(
        lambda: connect_to_write(str(tmp_path / "x.db")), lambda error: translated(error, "x", reading=False)
    )
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a bug"):
            writer.write(lambda tx: None)
    writer.close()


def writers() -> set[threading.Thread]:
    """Writer threads of this test, and of earlier tests that left a database open."""
    return {thread for thread in threading.enumerate() if thread.name == "tera-writer"}


def test_closing_finishes_waiting_works_and_refuses_new_ones(database: SqliteDatabase) -> None:
    inside, go_on = threading.Event(), threading.Event()
    database.write(lambda tx: None)
    before = len(writers())

    def slow(tx: Transaction) -> None:
        inside.set()
        assert go_on.wait(WAIT_SECONDS_MAX)
        add(1)(tx)

    with ThreadPoolExecutor() as pool:
        slow_one = pool.submit(database.write, slow)
        assert inside.wait(WAIT_SECONDS_MAX)
        waits = pool.submit(database.write, add(2))
        while not database.works_waiting:
            time.sleep(0.001)
        closes = pool.submit(database.close)
        go_on.set()
        for future in (slow_one, waits, closes):
            future.result()
    with pytest.raises(Misuse, match="closed"):
        database.write(add(3))
    assert len(writers()) < before, "its own thread has ended; other tests may have left threads"


def test_a_work_cannot_close_its_own_database(database: SqliteDatabase) -> None:
    with pytest.raises(Misuse, match="cannot close"):
        database.write(lambda tx: database.close())
    database.write(add(1))


def test_reading_starts_no_thread(tmp_path: Path) -> None:
    before = writers()
    database = SqliteDatabase(tmp_path / "tera.db")
    with database.read() as tx:
        tx.one("SELECT 1")
    assert writers() <= before
    database.close()


def test_an_interrupted_caller_withdraws_its_work(database: SqliteDatabase) -> None:
    """The signal arrives while the work runs, so the work must not be committed."""

    def interrupted(tx: Transaction) -> None:
        add(1)(tx)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert caller_left.wait(WAIT_SECONDS_MAX)

    caller_left = threading.Event()
    with pytest.raises(KeyboardInterrupt):
        database.write(interrupted)
    caller_left.set()
    database.write(add(2))
    assert ids(database) == [2]


FORKS = """
import os, sys
from teraflock.storage.database import Misuse
from teraflock.storage.sqlite import SqliteDatabase

database = SqliteDatabase(sys.argv[1])
database.write(lambda tx: tx.run("CREATE TABLE thing (id BIGINT)"))
with database.read() as tx:
    tx.all("SELECT id FROM thing")
child = os.fork()
if child == 0:
    refused = 0
    for act in (lambda: database.write(lambda tx: None), lambda: database.read().__enter__()):
        try:
            act()
        except Misuse as error:
            refused += "fork" in str(error)
    database.close()
    own = SqliteDatabase(sys.argv[1])
    own.write(lambda tx: tx.run("INSERT INTO thing (id) VALUES (1)"))
    own.close()
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
database.write(lambda tx: tx.run("INSERT INTO thing (id) VALUES (2)"))
with database.read() as tx:
    assert tx.all("SELECT id FROM thing ORDER BY id") == [(1,), (2,)]
    assert tx.all("PRAGMA integrity_check") == [("ok",)]
database.close()
"""


def test_a_forked_child_opens_its_own_database(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKS, str(tmp_path / "tera.db")], check=True)
