"""Runs a command as a user's shell would, and says what it cost: wall time, processor time, peak memory.

The peak is the kernel's `ru_maxrss`, which counts from before the exec: a child is never said to use less than the
process that started it. So whoever measures memory here must be small itself, and do large things in children.
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

FAULT_CHARACTERS: Final = 2_000  # of what a child that failed wrote last


class Fault(Exception):
    """A benchmark could not run, and it is not the machine's fault."""


class Run(msgspec.Struct, frozen=True):
    wall_seconds: float
    cpu_seconds: float
    """User and system time: what the wall time comes to on an idle core, disk aside."""
    peak_bytes: int
    stdout: bytes
    stderr: str


def run(command: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> Run:
    """Run to the end, reading what it writes. A command that fails is a fault."""
    with tempfile.TemporaryFile() as stderr:
        began = perf_counter()
        # no `with`: the child must be waited for by wait4, which alone tells of this child and no other
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
        said = stderr.read().decode(errors="replace")
    if process.returncode:
        words = " ".join(map(str, command))
        raise Fault(f"`{words}` ended with {process.returncode}:\n{said[-FAULT_CHARACTERS:]}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Run(wall, usage.ru_utime + usage.ru_stime, peak, stdout, said)


def run_task(module: str, *words: str | Path, env: Mapping[str, str] | None = None) -> Any:
    """Run one of our own modules in a process of its own; what it prints is JSON."""
    return json.loads(run([sys.executable, "-m", module, *words], env=env).stdout)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """As this process has it, but for what would slow Python down, such as being told to keep no bytecode."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TERA_"))}
    return {**kept, **(more or {})}


def at_home(home: Path) -> dict[str, str]:
    """What makes `tera` keep its data there."""
    return {"TERA_HOME": str(home)}


def own_peak_bytes() -> int:
    """The most this process ever had, since its exec."""
    return peak_bytes_of(os.getpid())


def peak_bytes_of(process_id: int) -> int:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Fault("the kernel does not tell the peak of a process")


def own_resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
