"""Planner processes: after any failure the next task is computed, and no process is left."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from teraflock.app.planner.pool import PlannerPool, TooMuchWork
from teraflock.base.errors import BadInput, Unavailable, UnknownName
from teraflock.plan.task import PlannerTask


def estimate(**words: Any) -> PlannerTask:
    asked = {"model": "resnet18", "batch": 8, "gpu": ["V100"], **words}
    return PlannerTask(what="estimate", words=msgspec.json.encode(asked), with_costs=False)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PlannerPool]:
    pool = PlannerPool(str(tmp_path))
    yield pool
    pool.close()


def only(pool: PlannerPool) -> "subprocess.Popen[bytes]":
    (process,) = pool._idle
    return process


def is_there(pid: int) -> bool:
    """Return whether a process runs. A zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_one_process_computes_several_tasks(pool: PlannerPool) -> None:
    first = pool.compute(estimate())
    process = only(pool)
    assert msgspec.json.decode(first)["gpus"][0]["gpu"] == "V100-SXM2"
    with pytest.raises(UnknownName, match="resnet81"):
        pool.compute(estimate(model="resnet81"))
    with pytest.raises(BadInput, match="at least 1"):
        pool.compute(estimate(batch=0))
    assert pool.compute(estimate()) == first
    assert only(pool) is process


def test_a_killed_process_is_replaced(pool: PlannerPool) -> None:
    first = pool.compute(estimate())
    process = only(pool)
    process.kill()
    process.wait()
    assert pool.compute(estimate()) == first
    assert only(pool) is not process


def test_a_process_killed_while_busy_fails_only_its_task(pool: PlannerPool) -> None:
    first = pool.compute(estimate())
    process = only(pool)
    failures = asked_while_stopped(pool, process.kill)
    assert [type(each) for each in failures] == [Unavailable]
    assert pool.compute(estimate()) == first
    assert only(pool) is not process


def asked_while_stopped(pool: PlannerPool, act: Callable[[], None]) -> list[Exception]:
    """Run `act` while a process is busy, and return the errors of its task."""
    os.kill(only(pool).pid, signal.SIGSTOP)
    failures: list[Exception] = []

    def ask() -> None:
        try:
            pool.compute(estimate())
        except Exception as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while not pool._running:
        time.sleep(0.01)
    act()
    asking.join()
    return failures


def test_a_task_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    pool = PlannerPool(str(tmp_path), seconds_max=0.001)  # less than the start takes
    with pytest.raises(TooMuchWork):
        pool.compute(estimate())
    assert pool._idle == []
    assert pool._running == set()
    pool._seconds_max = 60
    assert pool.compute(estimate())
    pool.close()


def test_closing_stops_busy_processes(tmp_path: Path) -> None:
    pool = PlannerPool(str(tmp_path))
    pool.compute(estimate())
    process = only(pool)
    failures = asked_while_stopped(pool, pool.close)
    assert [type(each) for each in failures] == [Unavailable]
    assert process.poll() is not None
    with pytest.raises(Unavailable):
        pool.compute(estimate())


SERVER = """
import sys, time
from tests.unit.app.test_planner_pool import PlannerPool, estimate, only
pool = PlannerPool(sys.argv[1])
pool.compute(estimate())
print(only(pool).pid, flush=True)
time.sleep(600)
"""


def test_no_process_outlives_a_killed_server(tmp_path: Path) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE)
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    assert is_there(pid)
    server.kill()
    server.communicate()
    end = time.monotonic() + 60
    while is_there(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_there(pid)


def test_an_unexpected_error_is_logged(pool: PlannerPool) -> None:
    with pytest.raises(RuntimeError, match="ValidationError"):
        pool.compute(PlannerTask(what="estimate", words=b'{"model": 7}', with_costs=False))
    assert pool.compute(estimate()), "the process continues"
