"""How many processors a running guest really has, read from its cgroup.

The engine spreads guests over processors on a thread of its own, some time after it has answered, and may then still
read the number from before; so what was granted is looked at, not believed.
"""

import os
import time
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
LOOK_AGAIN_SECONDS: Final = 0.02
LOOKS_MAX: Final = 50


def granted(project: str, name: str, cgroups: Path = CGROUPS) -> int | None:
    """None where it does not run, or its cgroup is not where we know it."""
    for folder in (cgroups / "cpuset", cgroups):
        try:
            text = (folder / f"lxc.payload.{project}_{name}" / "cpuset.cpus").read_text("ascii")
        except OSError:
            continue
        return counted(text) or None
    return None


def counted(text: str) -> int:
    """How many processors a list such as `0-2,5` names."""
    total = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1 if part else 0
    return total


def settled(project: str, name: str, vcpus: int) -> bool:
    """Whether the guest has come to its number within a second. What cannot be seen counts as settled."""
    wanted = min(vcpus, os.cpu_count() or vcpus)
    for _ in range(LOOKS_MAX):
        if granted(project, name) in (None, wanted):
            return True
        time.sleep(LOOK_AGAIN_SECONDS)
    return False
