"""Ends transfers of files that a guest keeps from ending.

The engine reads a guest's files in a process of its own, `forkfile`. If the guest puts a pipe where a file was, that
process waits for ever, and LXD 5.0 waits for it before it stops the guest, even by force. So nobody could stop or
delete that guest. Such a process is killed here; the engine starts another one for the next file.
"""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

PROCESSES: Final = Path("/proc")
COMMAND: Final = b"forkfile"
END_SECONDS_MAX: Final = 2.0
DISK: Final = "fd/4"
"""The process has the guest's root folder open as this number: an argument of its command."""


def end_transfers(guest: str) -> None:
    """Kill the processes that read files of a guest, and wait until the engine knows: until then it would ask a dead
    one for the next file."""
    for process in PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if _reads_from(process, guest):
                _kill(process)
                _wait_for_end(process)


def _reads_from(process: Path, guest: str) -> bool:
    words = (process / "cmdline").read_bytes().split(b"\0")
    if words[1:2] != [COMMAND]:
        return False
    folder = (process / DISK).readlink()
    # The engine names folders PROJECT_GUEST.
    return folder.name == "rootfs" and folder.parent.name.rpartition("_")[2] == guest


def _kill(process: Path) -> None:
    """By the folder in /proc, which still means the same process if its number was given away."""
    there = os.open(process, os.O_RDONLY | os.O_DIRECTORY)
    try:
        signal.pidfd_send_signal(there, signal.SIGKILL)
    finally:
        os.close(there)


def _wait_for_end(process: Path) -> None:
    """The folder is there until the engine has asked how the process ended."""
    until = time.monotonic() + END_SECONDS_MAX
    while process.exists() and time.monotonic() < until:
        time.sleep(0.01)
