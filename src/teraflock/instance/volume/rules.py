"""Decisions about volumes. Pure: what has to be done next, from the row and from what the engine reports."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB, bytes_text
from teraflock.instance.copy.rules import best, grouped, is_in_work, is_old
from teraflock.instance.copy.states import CopyState
from teraflock.instance.volume.model import (
    FOLDER,
    Volume,
    VolumeCopy,
    VolumeMount,
    VolumeSeen,
    VolumeSnapshot,
    VolumeSnapshotState,
)

SIZE_BYTES_MIN: Final = GIB
SIZE_BYTES_MAX: Final = 1 << 46
PER_PROJECT_MAX: Final = 500
PER_INSTANCE_MAX: Final = 16
SNAPSHOTS_MAX: Final = 50
PATH: Final = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]{0,63}){1,8}")
TAKEN: Final = (
    "/bin",
    "/boot",
    "/data",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
)


class VolumeAct(StrEnum):
    CREATE = "create"
    """Create it on the engine, or let it grow."""
    ATTACH = "attach"
    DETACH = "detach"
    FREE = "free"
    """The engine has taken it from its instance: write this down."""
    RESTORE = "restore"
    SNAPSHOTS = "snapshots"
    """Make and delete snapshots."""
    DELETE = "delete"


def next_act(
    volume: Volume, seen: VolumeSeen | None, snapshots: Sequence[VolumeSnapshot], *, has_instance: bool
) -> VolumeAct | None:
    """What to do next. `seen` is None if the engine does not have it. `has_instance`: its instance exists, is on its
    host and should have it."""
    if not volume.host_id:
        return VolumeAct.DELETE if volume.deleting else None
    users = seen.users if seen else ()
    if volume.instance_id and not has_instance:
        return VolumeAct.DETACH if volume.instance_id in users else VolumeAct.FREE
    if volume.deleting:
        return VolumeAct.DELETE
    if volume.made_bytes < volume.size_bytes and (seen is not None or not volume.made_bytes):
        return VolumeAct.CREATE
    if volume.instance_id and seen is not None and volume.instance_id not in users:
        return VolumeAct.ATTACH
    if volume.restore_from:
        return VolumeAct.RESTORE
    return VolumeAct.SNAPSHOTS if any(each.state != VolumeSnapshotState.READY for each in snapshots) else None


def best_copy(volume: Volume, copies: Sequence[VolumeCopy]) -> VolumeCopy | None:
    """The newest complete copy of a volume's disk on another host."""
    return best(
        each for each in copies if each.source_id == volume.disk_id and each.host_id != volume.host_id
    )


def copies_to_follow(
    mounts: Sequence[VolumeMount], volumes: Mapping[str, Volume], copies: Mapping[str, Sequence[VolumeCopy]]
) -> tuple[VolumeCopy, ...] | None:
    """The copies from which all volumes of an instance can be recovered on one host. None: there is no such host.
    `volumes` are by the ids of their disks, `copies` by the ids of their volumes."""
    found: list[VolumeCopy] = []
    for mount in mounts:
        volume = volumes.get(mount.id)
        copy = best_copy(volume, copies.get(volume.id, ())) if volume is not None else None
        if volume is None or copy is None or not volume.copied or volume.deleting or volume.detaching:
            return None
        found.append(copy)
    return tuple(found) if len({each.host_id for each in found}) == 1 else None


def copy_is_due(volume: Volume, copies: Sequence[VolumeCopy], every: timedelta, now: datetime) -> bool:
    """Whether a volume should be copied now. `copies` are its own."""
    if not (volume.copied and volume.made_bytes) or volume.deleting or volume.restore_from:
        return False
    if any(each.state == CopyState.MAKING for each in copies):
        return False
    return is_old(best_copy(volume, copies), every, now)


def obsolete_copies(
    copies: Sequence[VolumeCopy], volumes: Mapping[str, Volume], now: datetime
) -> tuple[VolumeCopy, ...]:
    """The copies to remove: interrupted ones, older ones, and those that their volumes no longer need."""
    found: list[VolumeCopy] = []
    for id, some in grouped(copies, lambda each: each.volume_id).items():
        volume = volumes.get(id)
        kept = best_copy(volume, some) if volume and volume.copied and not volume.deleting else None
        found += [
            each
            for each in some
            if each.state != CopyState.REMOVING and not is_in_work(each, now) and each != kept
        ]
    return tuple(found)


def check_size(size_bytes: int) -> None:
    if not SIZE_BYTES_MIN <= size_bytes <= SIZE_BYTES_MAX:
        raise BadInput(
            f"A volume cannot have {bytes_text(size_bytes)}",
            hint=f"Use {bytes_text(SIZE_BYTES_MIN)} to {bytes_text(SIZE_BYTES_MAX)}",
        )


def checked_path(path: str, name: str) -> str:
    """The path of a volume in its instance."""
    chosen = path or f"{FOLDER}/{name}"
    top = "/" + chosen.split("/")[1] if chosen.count("/") else ""
    if not PATH.fullmatch(chosen) or top in TAKEN:
        raise BadInput(
            f"A volume cannot be mounted at `{chosen[:80]}`",
            hint="Use an absolute path such as `/mnt/results`, outside the folders of the system",
        )
    return chosen
