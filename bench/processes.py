"""Run a command like a user's shell, and measure wall time, processor time and peak memory.

The peak is the kernel's `ru_maxrss`, which starts before the exec: a child never reports less than its parent used. So
a process that measures memory must be small, and run large work in children.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).parent.parent
TERA: Final = Path(sys.executable).parent / "tera"
PEERS: Final = ROOT / ".venv-bench" / "bin" / "python"

FAULT_CHARACTERS: Final = 2_000  # last part of the stderr of a failed child


class Fault(Exception):
    """A benchmark failed because of a bug."""


class Run(msgspec.Struct, frozen=True):
    wall_seconds: float
    cpu_seconds: float
    """User and system time: the wall time on an idle core, without waiting for the disk."""
    peak_bytes: int
    stdout: bytes
    stderr: str


def run(command: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> Run:
    """Run a command and capture its output. Raise `Fault` if it fails."""
    with tempfile.TemporaryFile() as stderr:
        began = perf_counter()
        # No `with`: only wait4 reports the resources of this child alone.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL, cwd=ROOT, env=environment(env)
        )  # fmt: skip
        assert process.stdout is not None
        stdout = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        stderr.seek(0)
        stderr_text = stderr.read().decode(errors="replace")
    if process.returncode:
        words = " ".join(map(str, command))
        raise Fault(f"`{words}` exited with {process.returncode}:\n{stderr_text[-FAULT_CHARACTERS:]}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Run(wall, usage.ru_utime + usage.ru_stime, peak, stdout, stderr_text)


def run_task(module: str, *words: str | Path, env: Mapping[str, str] | None = None) -> Any:
    """Run one of our modules in a separate process and parse the JSON that it prints."""
    return json.loads(run([sys.executable, "-m", module, *words], env=env).stdout)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment without Python's settings, which could slow it down, and without Teraflock's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TERA_"))}
    return {**kept, **(more or {})}


def at_home(home: Path) -> dict[str, str]:
    """Return the environment variables that set the home folder of `tera`."""
    return {"TERA_HOME": str(home)}


def own_peak_bytes() -> int:
    """Return the peak memory of this process since its exec."""
    return peak_bytes_of(os.getpid())


def peak_bytes_of(process_id: int) -> int:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Fault("the kernel does not report the peak memory of a process")


def own_resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
