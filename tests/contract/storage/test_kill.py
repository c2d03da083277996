"""After `kill -9` at any point, acknowledged writes are there and no write is partial."""

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.contract.storage.raw import opened_as_it_is
from tests.contract.storage.writes_until_killed import ROWS_PER_BATCH

from teraflock.base.clock import SystemClock
from teraflock.storage.database import Database, MissingTable
from teraflock.storage.migrate import migrate
from teraflock.storage.open import open_database

WRITER = Path(__file__).with_name("writes_until_killed.py")
BATCHES_PER_ROUND_MAX = 100_000  # far more than one round can write, so that rounds do not overlap


@pytest.mark.parametrize("seed", [1])
def test_a_killed_writer_leaves_complete_batches_and_all_acknowledged_ones(
    database_address: str, seed: int
) -> None:
    chance = random.Random(seed)
    database = open_database(database_address, SystemClock())
    database.write(lambda tx: tx.run("CREATE TABLE kept (batch BIGINT, row BIGINT)"))
    answered: set[int] = set()
    for round_ in range(4):
        answered |= _answered_until_killed(
            database_address, round_ * BATCHES_PER_ROUND_MAX, answers=chance.randrange(1, 80)
        )
        with database.read() as tx:
            kept = Counter(row[0] for row in tx.each("SELECT batch FROM kept"))
        assert set(kept.values()) == {ROWS_PER_BATCH}
        assert answered <= kept.keys()
        _assert_sound(database)
    database.close()


def _answered_until_killed(address: str, first_batch: int, answers: int) -> set[int]:
    with subprocess.Popen(
        [sys.executable, str(WRITER), address, str(first_batch)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(answers)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    return {int(line) for line in lines if line.endswith(b"\n")}


def _assert_sound(database: Database) -> None:
    if database.where.startswith("/"):
        with database.read() as tx:
            assert tx.all("PRAGMA integrity_check") == [("ok",)]


TABLES_PER_MIGRATION = 4
MIGRATES_AND_DIES = """
import os, signal, sys
from teraflock.base.clock import SystemClock
from teraflock.storage import migrate as module
from tests.contract.storage.raw import opened_as_it_is

address, folder, last_statement = sys.argv[1], sys.argv[2], int(sys.argv[3])
statements, done = module.statements, 0

def until_killed(script):
    global done
    for statement in statements(script):
        if done == last_statement:
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1
        yield statement

module.statements = until_killed
module.migrate(opened_as_it_is(address), SystemClock(), folder=folder)
"""


@pytest.mark.parametrize("statements_done", random.Random(2).sample(range(1, 2 * TABLES_PER_MIGRATION), 3))
def test_a_killed_migration_is_applied_completely_or_not_at_all(
    database_address: str, tmp_path: Path, statements_done: int
) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    for version in (1, 2):
        tables = [f"CREATE TABLE t{version}_{n} (id BIGINT);" for n in range(TABLES_PER_MIGRATION)]
        (folder / f"{version:04}_tables.sql").write_text("\n".join(tables))
    killed = subprocess.run(
        [sys.executable, "-c", MIGRATES_AND_DIES, database_address, str(folder), str(statements_done)],
        cwd=Path(__file__).parents[3],  # where `tests` is found
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL

    database = opened_as_it_is(database_address)
    whole = statements_done // TABLES_PER_MIGRATION
    assert _tables_there(database) == whole * TABLES_PER_MIGRATION
    assert migrate(database, SystemClock(), folder=str(folder)) == 2 - whole
    assert _tables_there(database) == 2 * TABLES_PER_MIGRATION
    _assert_sound(database)
    database.close()


def _tables_there(database: Database) -> int:
    there = 0
    for version in (1, 2):
        for n in range(TABLES_PER_MIGRATION):
            try:
                with database.read() as tx:
                    tx.all(f"SELECT id FROM t{version}_{n}")
                    there += 1
            except MissingTable:
                pass
    return there
