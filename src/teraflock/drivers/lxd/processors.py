"""Reads from the cgroup how many processors a running guest really has.

The engine assigns processors on its own thread, some time after it has answered, and may still use the old
number. So this module checks the result.
"""

import os
import time
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
LOOK_AGAIN_SECONDS: Final = 0.02
LOOKS_MAX: Final = 50


def granted(project: str, name: str, cgroups: Path = CGROUPS) -> int | None:
    """Return the number of processors, or None if the guest does not run or its cgroup is not at the known
    path."""
    for folder in (cgroups / "cpuset", cgroups):
        try:
            text = (folder / f"lxc.payload.{project}_{name}" / "cpuset.cpus").read_text("ascii")
        except OSError:
            continue
        return counted(text) or None
    return None


def counted(text: str) -> int:
    """Count the processors in a list such as `0-2,5`."""
    total = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1 if part else 0
    return total


def settled(project: str, name: str, vcpus: int) -> bool:
    """Wait up to a second for the guest to have this number. What cannot be read counts as settled."""
    wanted = min(vcpus, os.cpu_count() or vcpus)
    for _ in range(LOOKS_MAX):
        if granted(project, name) in (None, wanted):
            return True
        time.sleep(LOOK_AGAIN_SECONDS)
    return False
