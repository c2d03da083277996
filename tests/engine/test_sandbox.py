"""The test engine leaves nothing behind, even when the tests are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.engine import sandbox as sandboxes
from tests.engine.sandbox import FOLDERS, NoSandbox, Sandbox, _processes_of

SECONDS_MAX = 60  # a failing test must end
OWNER = """
import sys
from tests.engine.sandbox import Sandbox
sandbox = Sandbox("killed-")
print(sandbox.inside_pid, sandbox.outside_pid, sandbox.daemon.pid(), sandbox.folder, flush=True)
sys.stdin.read()
"""


def test_killed_run_ends_its_engine_and_next_run_removes_its_folder() -> None:
    try:
        sandboxes._check_machine()
    except NoSandbox as reason:
        pytest.skip(str(reason))
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert owner.stdin
    assert owner.stdout
    *pids, folder = owner.stdout.readline().split()
    assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()
    ended(pids)
    assert Path(folder).is_dir()
    mine = Sandbox("after-")
    try:
        assert not Path(folder).exists()
        assert mine.folder.parent == FOLDERS
        assert _processes_of(mine.folder)
    finally:
        mine.close()
    assert not mine.folder.exists()
    assert not _processes_of(mine.folder)


def test_unreaped_process_counts_as_ended() -> None:
    """If the first process of a machine does not reap orphans, those of a killed run remain as zombies."""
    with subprocess.Popen(["sleep", "infinity"]) as child:
        assert alive(str(child.pid))
        os.kill(child.pid, signal.SIGKILL)
        ended([str(child.pid)])


def ended(pids: Sequence[str]) -> None:
    """Wait until none of the processes runs."""
    until = time.monotonic() + SECONDS_MAX
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < until, "a process is still running"
        time.sleep(0.01)


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
