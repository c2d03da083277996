"""The examples for runs, killed at random moments and started again as `tera run` does: the result is that of an
uninterrupted run. Needs PyTorch; `make corpus` has it.

What `tera run` does between two attempts is done here: only what is complete in $TERA_CHECKPOINTS survives.
"""

import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: `make corpus` runs these")

from teraflock.run.checkpoint import UNFINISHED
from teraflock.run.nodes import environment

EXAMPLES = Path(__file__).parents[2] / "examples"
DECLARED = Path(__file__).parent / "declared"
"""So that libraries which import torchvision can do so where its compiled library does not load."""
SECONDS_MAX = 300.0
KILLS = 3


def start(
    script: str, words: list[str], home: Path, more: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    given = {
        **os.environ,
        "TERA_CHECKPOINTS": str(home / "checkpoints"),
        "TERA_OUTPUTS": str(home / "outputs"),
    }
    given |= {
        "HOME": str(home),
        "TERA_PROGRESS": str(home / "progress"),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(DECLARED), *filter(None, [os.environ.get("PYTHONPATH")])]),
        **(more or {}),
    }
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(EXAMPLES / script), *words], env=given, cwd=home, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip


def survivors(home: Path) -> None:
    """Keep only what would have been copied: complete entries of the checkpoint folder."""
    for path in home.iterdir():
        if path.name not in ("checkpoints", "log"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (home / "checkpoints").iterdir() if (home / "checkpoints").exists() else ():
        if path.name.startswith(".") or path.name.endswith(UNFINISHED):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def result(home: Path) -> str:
    return (home / "outputs" / "result.txt").read_text()


def saved(home: Path) -> set[str]:
    folder = home / "checkpoints"
    return {each.name for each in folder.iterdir()} if folder.exists() else set()


def interrupted(script: str, words: list[str], home: Path, draw: random.Random) -> int:
    """Run a script that is killed after a new checkpoint, a few times. Return how often it was killed."""
    home.mkdir()
    kills = 0
    while True:
        program = start(script, words, home)
        before, until = len(marks(home)), time.monotonic() + SECONDS_MAX
        while program.poll() is None and time.monotonic() < until:
            if kills < KILLS and len(marks(home)) > before:
                time.sleep(draw.uniform(0, 0.3))
                os.killpg(program.pid, signal.SIGKILL)
                kills += program.wait() != 0
                break
            time.sleep(0.02)
        if program.wait() == 0:
            return kills
        assert program.returncode == -signal.SIGKILL, (home / "log").read_text()[-3000:]
        survivors(home)


SEEN: dict[Path, set[tuple[str, int]]] = {}


def marks(home: Path) -> set[tuple[str, int]]:
    """All checkpoints that ever were there."""
    folder, known = home / "checkpoints", SEEN.setdefault(home, set())
    for path in folder.iterdir() if folder.exists() else ():
        try:
            known.add((path.name, path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue  # renamed meanwhile
    return known


@pytest.mark.parametrize(
    ("script", "needs", "words"),
    [
        ("train_torch.py", "torch", ["1500"]),
        ("train_trainer.py", "accelerate", ["400"]),
        ("train_lightning.py", "lightning", ["12"]),
    ],
)
def test_interrupted_example_has_the_result_of_an_uninterrupted_one(
    tmp_path: Path, script: str, needs: str, words: list[str]
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    whole = tmp_path / "whole"
    whole.mkdir()
    assert start(script, words, whole).wait(SECONDS_MAX) == 0, (whole / "log").read_text()[-3000:]
    parts = tmp_path / "parts"
    assert interrupted(script, words, parts, random.Random(3)) == KILLS
    assert "continues after" in (parts / "log").read_text()
    assert result(parts) == result(whole)


def test_example_on_several_nodes_continues_on_all_of_them(tmp_path: Path) -> None:
    """With the variables that nodes of a run get, on one machine."""

    def attempt(name: str, steps: str) -> list["subprocess.Popen[bytes]"]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        started = []
        for rank in (0, 1):
            home = tmp_path / f"{name}-{rank}"
            home.mkdir(exist_ok=True)
            given = environment(rank, ["127.0.0.1", "127.0.0.1"], 0)
            given |= {"MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
            started.append(start("train_nodes.py", [steps], home, given))
        return started

    assert [each.wait(SECONDS_MAX) for each in attempt("whole", "400")] == [0, 0], (
        tmp_path / "whole-0" / "log"
    ).read_text()[-3000:]
    assert [each.wait(SECONDS_MAX) for each in attempt("parts", "150")] == [0, 0]
    survivors(tmp_path / "parts-0")
    survivors(tmp_path / "parts-1")
    assert not (tmp_path / "parts-1" / "checkpoints").exists(), "node 0 tells the others where to continue"
    assert [each.wait(SECONDS_MAX) for each in attempt("parts", "400")] == [0, 0]
    assert "node 1 continues after step 150" in (tmp_path / "parts-1" / "log").read_text()
    assert result(tmp_path / "parts-0") == result(tmp_path / "whole-0")
