"""Limits how much processor time a group of processes gets together, with a cgroup of its own.

Works with cgroups of version 1 and 2. A group survives the server, and is removed when its last process has ended.
"""

import contextlib
from pathlib import Path
from typing import Final

from teraflock.drivers.lxd.processors import CGROUPS

PERIOD_MICROSECONDS: Final = 100_000


def ensure(name: str, processors: float, root: Path = CGROUPS) -> Path | None:
    """Create the group, or change its limit. Return the file that takes its processes, or None if the host has no
    cgroups for processor time."""
    group, quota = _group(name, root), int(processors * PERIOD_MICROSECONDS)
    try:
        if group.parent == root and not (root / "cgroup.controllers").exists():
            return None
        if group.parent == root:
            (root / "cgroup.subtree_control").write_text("+cpu", "ascii")
            group.mkdir(exist_ok=True)
            (group / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}", "ascii")
        else:
            group.mkdir(exist_ok=True)
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS), "ascii")
            (group / "cpu.cfs_quota_us").write_text(str(quota), "ascii")
    except OSError:
        return None
    return group / "cgroup.procs"


def remove(name: str, root: Path = CGROUPS) -> None:
    """Remove the group, unless it does not exist or has processes."""
    with contextlib.suppress(OSError):
        _group(name, root).rmdir()


def _group(name: str, root: Path) -> Path:
    """Version 1 has a hierarchy for processor time, and version 2 one for everything."""
    return (root / "cpu" if (root / "cpu").is_dir() else root) / name
