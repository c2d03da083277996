"""Decides which disks are copied now, and which copies are no longer needed. Pure. `volume/rules.py`: for volumes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Final, TypeVar

from teraflock.instance.copy.model import DiskCopy
from teraflock.instance.copy.states import CopyState
from teraflock.instance.lookup import is_at_rest
from teraflock.instance.model import Instance, Operation, RestartPolicy
from teraflock.instance.states import ENDED, Phase, Wanted
from teraflock.instance.volume.model import VolumeCopy

STALE_AFTER: Final = timedelta(seconds=60)
"""The process that makes a copy says more often that it still works on it."""
C = TypeVar("C", DiskCopy, VolumeCopy)


def best(copies: Iterable[C]) -> C | None:
    """The newest complete copy."""
    ready = [each for each in copies if each.state == CopyState.READY]
    return max(ready, key=lambda each: (each.made_at, each.id), default=None)


def is_in_work(copy: DiskCopy | VolumeCopy, now: datetime) -> bool:
    return copy.state == CopyState.MAKING and now - copy.touched_at < STALE_AFTER


def is_old(newest: DiskCopy | VolumeCopy | None, every: timedelta, now: datetime) -> bool:
    return newest is None or now - newest.made_at >= every


def grouped(copies: Iterable[C], by: Callable[[C], str]) -> Mapping[str, Sequence[C]]:
    found: dict[str, list[C]] = defaultdict(list)
    for each in copies:
        found[by(each)].append(each)
    return found


def is_movable(instance: Instance, *, with_volumes: bool = False) -> bool:
    """Whether an instance may be created again on another host.

    Its tenant allows it, and its image is from a recipe: one made from an instance exists only at its own site. An
    instance with volumes stays, because they do, unless they can come along (`with_volumes`).
    """
    is_asked = instance.spec.restart_policy == RestartPolicy.ELSEWHERE and instance.wanted == Wanted.RUNNING
    stays = instance.spec.rental is not None or bool(instance.volumes and not with_volumes)
    return is_asked and bool(instance.spec.recipe) and not stays


def is_due(
    instance: Instance,
    copies: Sequence[DiskCopy],
    every: timedelta,
    now: datetime,
    *,
    with_volumes: bool = False,
) -> bool:
    """Whether the disk of an instance should be copied now. `copies` are those of this instance. `with_volumes`: all of
    its volumes are copied, too."""
    movable = is_movable(instance, with_volumes=with_volumes)
    if not (movable and instance.phase == Phase.RUNNING and is_at_rest(instance)):
        return False
    if any(is_in_work(each, now) for each in copies):
        return False
    return is_old(best(each for each in copies if each.host_id != instance.host_id), every, now)


def obsolete(
    copies: Sequence[DiskCopy],
    instances: Mapping[str, Instance],
    now: datetime,
    removed_hosts: Set[str] = frozenset(),
) -> tuple[DiskCopy, ...]:
    """The copies to remove: interrupted ones, older ones, those on removed hosts, and those whose instances no longer
    need them."""
    found: list[DiskCopy] = []
    for id, some in grouped(copies, lambda each: each.instance_id).items():
        instance = instances.get(id)
        kept = best(some) if instance is not None and _needs_copy(instance) else None
        for each in some:
            if each.host_id in removed_hosts:
                found.append(each)
                continue
            if is_in_work(each, now) or (instance is not None and is_in_use(instance, each.id)):
                continue
            if each != kept or (instance and _is_useless(instance, each)):
                found.append(each)
    return tuple(found)


def is_in_use(instance: Instance, copy_id: str) -> bool:
    """Whether the instance is being created from this copy."""
    request = instance.request
    return request is not None and request.operation == Operation.LAUNCH and request.subject == copy_id


def _needs_copy(instance: Instance) -> bool:
    is_asked = instance.spec.restart_policy == RestartPolicy.ELSEWHERE and instance.wanted != Wanted.GONE
    return is_asked and instance.phase not in ENDED


def _is_useless(instance: Instance, copy: DiskCopy) -> bool:
    """It is on the instance's own host: the instance was created from it, and would be lost with it."""
    return copy.host_id == instance.host_id and is_at_rest(instance)
