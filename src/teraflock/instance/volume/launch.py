"""Volumes of a new instance, which is placed on the host that has them."""

from collections.abc import Sequence

from teraflock.base.errors import Conflict
from teraflock.fleet.model import HostId
from teraflock.instance.model import Instance
from teraflock.instance.volume import store
from teraflock.instance.volume.model import Volume
from teraflock.instance.volume.rules import checked_path
from teraflock.instance.volume.service import attached, free_to_launch
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Project, ProjectId


def volumes_to_launch(tx: Transaction, project: Project, words: tuple[str, ...]) -> list[tuple[Volume, str]]:
    """The free volumes that `NAME` or `NAME:PATH` mean, with their paths. Locked until the transaction ends."""
    found: list[tuple[Volume, str]] = []
    for word in words:
        name, _, path = word.partition(":")
        volume = free_to_launch(tx, project, name)
        found.append((volume, checked_path(path, volume.name)))
    if len({each.id for each, _ in found}) < len(found) or len({path for _, path in found}) < len(found):
        raise Conflict("A volume or a path is given twice", hint="Name each volume once")
    return found


def volumes_meant(tx: Transaction, project: ProjectId, words: tuple[str, ...]) -> list[Volume]:
    """The volumes that an order names, as far as they exist. Locks nothing."""
    names = {word.partition(":")[0] for word in words}
    every = (each.volume for each in store.of_project(tx, project))
    return [each for each in every if each.id in names or each.name in names]


def host_of(volumes: Sequence[Volume], wanted: HostId | None) -> HostId | None:
    """The host that has the volumes, or the wanted one if no host has them yet."""
    hosts = {each.host_id for each in volumes if each.host_id}
    if wanted is not None:
        hosts.add(wanted)
    if len(hosts) > 1:
        raise Conflict(
            "The volumes are not all on the same host",
            hint="`tera volume list` shows them. Use those of one host, and leave out `--host`",
        )
    return HostId(hosts.pop()) if hosts else None


def attach_at_launch(
    tx: Transaction, volumes: Sequence[tuple[Volume, str]], made: Sequence[Instance]
) -> None:
    for instance in made:
        for (volume, _), mount in zip(volumes, instance.volumes, strict=True):
            store.put(tx, attached(volume, instance, mount))
