"""No test is lost: `make test` and `make test-long` run all tests together. CI runs both, also in the background."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.distribution import group, is_long_on_postgres, order, to_run_again

ROOT = Path(__file__).parents[2]


def recipe(target: str) -> str:
    """The commands that `make` runs for a target."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found, target
    return found[1]


def test_make_test_and_make_test_long_select_opposite_tests() -> None:
    fast, long = recipe("test"), recipe("test-long")
    assert '-m "not long"' in fast
    assert fast.replace("not long", "long") == long


def test_ci_runs_both_parts_and_the_checks() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert [line for line in lines if line.startswith("make ")] == [
        "make test",
        "make test-long",
        "make check",
    ]


def test_a_long_test_needs_a_reason(pytester_folder: Path) -> None:
    (pytester_folder / "test_it.py").write_text(
        "import pytest\n@pytest.mark.long\ndef test_it() -> None: ...\n"
    )
    done = run_pytest(str(pytester_folder), "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest")
    assert done.returncode != 0
    assert "say why it is long" in done.stdout + done.stderr


def test_ctrl_c_works_for_background_jobs() -> None:
    """A shell starts background jobs with SIGINT ignored."""
    test = "tests/unit/storage/test_group_commit.py::test_an_interrupted_caller_withdraws_its_work"
    done = run_pytest(test, ignoring=signal.SIGINT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tests_of_a_folder_share_their_engine_and_start_first() -> None:
    shared = group("tests/engine/test_life.py::test_a[lxd]")
    assert group("tests/engine/test_networks.py::test_b[lxd]") == shared
    assert group("tests/engine/test_attacks.py::test_b[lxd]") == group(
        "tests/engine/test_images.py::test_c[lxd]"
    )
    assert group("tests/engine/test_attacks.py::test_b[lxd]") != shared, "two workers share this folder"
    contract = "tests/contract/driver/test_life.py::test_c"
    assert group(f"{contract}[lxd-1]") == group("tests/contract/driver/test_fuzz.py::test_d[lxd]") != shared
    assert group(f"{contract}[memory]") == "tests/contract/driver/test_life.py"
    slow = "tests/simulation/test_simulation.py::test_e[1]"
    assert group(slow) == slow, "each on any worker"
    walk = "tests/faults/test_walk.py::test_f[1]"
    assert group(walk) == walk
    assert sorted([f"{contract}[memory]", walk, slow, f"{contract}[lxd-1]"], key=order) == [
        f"{contract}[lxd-1]",
        slow,
        walk,
        f"{contract}[memory]",
    ]


def test_half_of_the_tests_run_on_postgres_in_the_fast_part() -> None:
    names = [f"tests/contract/network/test_a.py::test_{number}" for number in range(1000)]
    long = [name for name in names if is_long_on_postgres(f"{name}[postgres]")]
    assert 400 < len(long) < 600
    assert all(is_long_on_postgres(f"{name}[postgres-1]") == (name in long) for name in names)
    assert not any(is_long_on_postgres(name.replace("network", "storage")) for name in names)


FAKE_PYTHON = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in *@*) exit "$SECOND" ;; esac
printf "$FAILED" >"$TERA_FAILED_TESTS"
exit "$FIRST"
"""


@pytest.mark.parametrize(
    ("first", "failed", "second", "calls", "status"),
    [
        (0, "", 9, 1, 0),
        (1, "tests/a.py::test_a\n", 0, 2, 0),
        (1, "tests/a.py::test_a\n", 1, 2, 1),
        (1, "", 9, 1, 1),  # the collection failed
        (2, "", 9, 1, 2),
        (3, "tests/a.py::test_a\n", 9, 1, 3),  # pytest itself failed
        (1, "tests/a.py::test_a\n" * 11, 9, 1, 1),
    ],
)
def test_only_failed_tests_run_again(
    first: int, failed: str, second: int, calls: int, status: int, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    told = {"FIRST": str(first), "FAILED": failed, "SECOND": str(second), "CALLS": str(tmp_path / "calls")}
    done = subprocess.run(
        ["sh", str(ROOT / "scripts/test"), str(python)],
        env={**os.environ, **told},
        capture_output=True,
        check=False,
    )
    assert done.returncode == status, done
    assert len((tmp_path / "calls").read_text().splitlines()) == calls


def test_nothing_runs_again_after_a_failed_collection() -> None:
    test = pytest.TestReport("tests/a.py::test_a", ("tests/a.py", 1, "test_a"), {}, "failed", None, "call")
    worker = pytest.CollectReport("gw1", "failed", "Different tests were collected", [])
    assert to_run_again([test, test]) == ["tests/a.py::test_a"]
    assert to_run_again([test, worker]) == []


@pytest.fixture
def pytester_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tests"
    folder.mkdir()
    return folder


def run_pytest(*words: str, ignoring: signal.Signals | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=(lambda: signal.signal(ignoring, signal.SIG_IGN)) if ignoring else None,
    )
