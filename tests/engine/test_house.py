"""The engine for tests leaves nothing behind, even when the tests are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine import house as houses
from tests.engine.house import FOLDERS, House, NoHouse, _processes_of

OWNER = """
import sys
from tests.engine.house import House
house = House("killed-")
print(house.inside_pid, house.outside_pid, house.daemon.pid(), house.folder, flush=True)
sys.stdin.read()
"""


def test_a_killed_run_takes_its_engine_along_and_the_next_removes_its_folder() -> None:
    try:
        houses._check_machine()
    except NoHouse as reason:
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
    with subprocess.Popen(["tail", "--pid", pids[0], "-f", "/dev/null"]) as waiting:
        waiting.wait()
    assert not any(alive(pid) for pid in pids)
    assert Path(folder).is_dir()
    mine = House("after-")
    try:
        assert not Path(folder).exists()
        assert mine.folder.parent == FOLDERS
        assert _processes_of(mine.folder)
    finally:
        mine.close()
    assert not mine.folder.exists()
    assert not _processes_of(mine.folder)


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
