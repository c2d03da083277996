"""Processors, memory and disks of this host, read from the kernel.

In a container the kernel shows the whole machine. The usable amount is the smaller of that and the container's limits.
"""

import os
from pathlib import Path
from typing import Final

from teraflock.host.model import HostDisk, HostMemory, Processors, Space

_SECTOR_BYTES: Final = 512  # the unit of /sys/block/*/size, independent of the disk
_NO_DISKS: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")
_CGROUP: Final = "sys/fs/cgroup"


def read_processors(root: Path = Path("/"), *, affinity: int | None = None) -> Processors:
    """`affinity` is the number of threads that this process may use. Default: ask the system."""
    allowed = affinity or len(os.sched_getaffinity(0))
    blocks = [block for block in _text(root / "proc/cpuinfo").split("\n\n") if block.strip()]
    fields = [_fields(block) for block in blocks]
    threads = sum(1 for each in fields if "processor" in each) or allowed
    sockets = {each["physical id"] for each in fields if "physical id" in each}
    cores = {
        (each["physical id"], each["core id"])
        for each in fields
        if "physical id" in each and "core id" in each
    }
    quota = _processor_quota(root)
    return Processors(
        model=next((each["model name"] for each in fields if "model name" in each), ""),
        sockets=len(sockets) or 1,
        cores=len(cores) or threads,
        threads=threads,
        usable=min(float(allowed), quota) if quota else float(allowed),
    )


def read_memory(root: Path = Path("/")) -> HostMemory:
    fields = _fields(_text(root / "proc/meminfo"))
    total = _kibibytes(fields.get("MemTotal", ""))
    limit = _limit(
        _text(root / _CGROUP / "memory.max") or _text(root / _CGROUP / "memory/memory.limit_in_bytes")
    )
    usable = min(total, limit) if limit else total
    return HostMemory(
        total_bytes=total,
        usable_bytes=usable,
        available_bytes=min(usable, _kibibytes(fields.get("MemAvailable", ""))),
    )


def read_disks(root: Path = Path("/")) -> tuple[HostDisk, ...]:
    """Physical disks. Devices that are backed by files, memory or other disks are left out."""
    try:
        blocks = sorted((root / "sys/block").iterdir())
    except OSError:
        return ()
    found = []
    for block in blocks:
        size = _number(_text(block / "size")) * _SECTOR_BYTES
        if size and not block.name.startswith(_NO_DISKS):
            rotates = _text(block / "queue/rotational").strip() == "1"
            model = _text(block / "device/model").strip()
            found.append(HostDisk(name=block.name, model=model, size_bytes=size, rotates=rotates))
    return tuple(found)


def read_space(path: Path) -> Space:
    """The space of the file system that contains `path`, even if `path` does not exist yet."""
    while not path.exists() and path != path.parent:
        path = path.parent
    found = os.statvfs(path)
    return Space(
        path=str(path),
        total_bytes=found.f_blocks * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize,
    )


def container_kind(root: Path = Path("/")) -> str:
    """The kind of container that this process runs in; empty if none is recognised."""
    for mark, kind in (("run/.containerenv", "podman"), (".dockerenv", "docker"), ("dev/lxd/sock", "lxd")):
        if (root / mark).exists():
            return kind
    named = _text(root / "run/systemd/container").strip()
    if named:
        return named
    environment = _text(root / "proc/1/environ").split("\0")
    return next((word.partition("=")[2] for word in environment if word.startswith("container=")), "")


def _processor_quota(root: Path) -> float | None:
    """The processor time that the container may use, in threads. None: no limit."""
    quota, _, period = _text(root / _CGROUP / "cpu.max").strip().partition(" ")
    if not quota:
        quota = _text(root / _CGROUP / "cpu/cpu.cfs_quota_us").strip()
        period = _text(root / _CGROUP / "cpu/cpu.cfs_period_us").strip()
    microseconds, turn = _number(quota), _number(period)
    return microseconds / turn if microseconds > 0 and turn > 0 else None


def _limit(text: str) -> int | None:
    """A limit in bytes. `max`, or the huge number that older kernels write instead, means None."""
    number = _number(text)
    return number if 0 < number < 1 << 60 else None


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _kibibytes(text: str) -> int:
    return _number(text.removesuffix("kB")) * 1024


def _number(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        return 0


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
