"""The server in the background: start it once, find it again, stop it.

If systemd runs the machine, systemd runs the server (`unit.py`). Otherwise it is a process of its own.

A process is ours only if it runs `tera serve` with our home. The pid file alone is not enough: after a reboot, another
process may have the same pid.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from teraflock.app.files import put
from teraflock.app.installation import unit
from teraflock.app.installation.places import Places
from teraflock.base.errors import Unavailable

START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 20.0
LOOK_AGAIN_SECONDS: Final = 0.05
LOG_LINES_TOLD: Final = 3
NO_PROCESS: Final = 1 << 30
"""Larger than any process id. Stands for a process that ended before its id was known."""


def running_pid(places: Places) -> int | None:
    """The pid of our running server. Without a pid file, searches for it: a start may have been interrupted."""
    try:
        noted = int(places.pid.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        noted = 0
    if noted > 0 and _is_ours(noted, places):
        return noted
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return next((pid for pid in pids if pid != os.getpid() and _is_ours(pid, places)), None)


def address(places: Places) -> str:
    """The `listen` address that the running server wrote down; empty until it does."""
    try:
        return places.pid.read_text("ascii").split()[1]
    except (OSError, ValueError, IndexError):
        return ""


def _is_ours(pid: int, places: Places) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"serve" not in words or not any(b"tera" in word for word in words):
            return False
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False  # it ended meanwhile, or belongs to another user
    return b"TERA_HOME=" + os.fsencode(places.home) in environment and is_running(pid)


def start(places: Places, answers: Callable[[], bool]) -> int:
    """Start the server and return when it answers. If it already runs, only wait for the answer."""
    pid = running_pid(places)
    if pid is None:
        pid = _by_systemd(places) if unit.is_possible() else _spawn(places)
    for _ in range(int(START_SECONDS_MAX / LOOK_AGAIN_SECONDS)):
        if answers():
            return pid
        if not is_running(pid):
            unit.stop(places)  # otherwise systemd would start it again and again
            raise Unavailable("The server ended right after it started", hint=log_hint(places.log))
        time.sleep(LOOK_AGAIN_SECONDS)
    raise Unavailable("The server does not answer", hint=log_hint(places.log))


def _by_systemd(places: Places) -> int:
    places.cloud.mkdir(parents=True, exist_ok=True, mode=0o700)
    unit.start(places)
    return running_pid(places) or NO_PROCESS


def _spawn(places: Places) -> int:
    places.cloud.mkdir(parents=True, exist_ok=True, mode=0o700)
    pid = spawn(("serve",), places.home, places.log)
    put(places.pid, f"{pid}\n".encode())
    return pid


def spawn(words: Sequence[str], home: Path, log_file: Path) -> int:
    """Start `tera` in a process that outlives this one and ignores Ctrl-C in its terminal."""
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "teraflock", *words],
            {**os.environ, "TERA_HOME": str(home)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(log)


def stop(places: Places) -> bool:
    """Stop the server and wait for its end. False: it was not running."""
    pid = running_pid(places)
    unit.stop(places)
    if pid is not None:
        end(pid)
    places.pid.unlink(missing_ok=True)
    return pid is not None


def end(pid: int) -> None:
    """Terminate a process, and kill it if it does not end."""
    for how, seconds_max in ((signal.SIGTERM, STOP_SECONDS_MAX), (signal.SIGKILL, STOP_SECONDS_MAX)):
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            return
        for _ in range(int(seconds_max / LOOK_AGAIN_SECONDS)):
            if not is_running(pid):
                return
            time.sleep(LOOK_AGAIN_SECONDS)
    raise Unavailable(f"Process {pid} does not end")


def is_running(pid: int) -> bool:
    """Whether the process runs. A zombie does not; one that is our own child is reaped here."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass  # not our child
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def log_hint(log: Path) -> str:
    """The path of a log and its last lines, as a hint."""
    return " / ".join([f"See the log at {log}", *last_lines(log)])


def last_lines(log: Path) -> list[str]:
    try:
        lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    return lines[-LOG_LINES_TOLD:]
