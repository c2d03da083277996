"""Creates what the engine needs before the first guest: our project and our storage pool. Safe to repeat.

Bridges are in the engine's `default` project, because LXD has them nowhere else. They carry our tag.
"""

from typing import Final

import msgspec

from teraflock.base.errors import Refused
from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient

GIB: Final = 1 << 30


class NotOurs(Refused):
    """Something with our name already exists in the engine, and Teraflock did not create it."""

    code = "not_ours"
    remedy = "Rename or remove it, then try again."


class PoolWish(msgspec.Struct, frozen=True, kw_only=True):
    """Storage for guests' disks: a file of this size, or a disk or folder that the operator provides."""

    driver: str = "btrfs"
    size_bytes: int = 64 * GIB
    source: str = ""


def ensure(client: LxdClient, ours: Names, pool: PoolWish) -> None:
    """`client` is for the `default` project: projects and pools belong to the whole engine."""
    _ensure(client, ours, "projects", ours.project, _project(ours))
    _ensure(client, ours, "storage-pools", ours.pool, _pool(ours, pool))


def _ensure(client: LxdClient, ours: Names, kind: str, name: str, body: dict[str, object]) -> None:
    try:
        found = client.get(kind, name)
    except EngineMissing:
        try:
            client.post(kind, body=body)
        except EngineTaken:  # another process of this installation was faster
            found = client.get(kind, name)
        else:
            return
    check_ours(found, ours, f"{kind} `{name}`")


def check_ours(found: dict[str, dict[str, str]], ours: Names, what: str) -> None:
    """Refuse to change anything without our tag, whatever its name."""
    if found.get("config", {}).get(names.TAG) != ours.installation:
        raise NotOurs(
            f"The container engine has {what}, which this installation did not create",
            hint="Rename or remove it, or give this installation another id",
        )


def _project(ours: Names) -> dict[str, object]:
    return {
        "name": ours.project,
        "description": "made by teraflock",
        "config": {
            "features.images": "true",
            "features.profiles": "true",  # keeps devices of the default profile out of guests
            "features.storage.volumes": "true",
            names.TAG: ours.installation,
        },
    }


def _pool(ours: Names, wish: PoolWish) -> dict[str, object]:
    config = {names.TAG: ours.installation}
    if wish.source:
        config["source"] = wish.source
    elif wish.driver != "dir":
        config["size"] = f"{wish.size_bytes}B"
    return {
        "name": ours.pool,
        "driver": wish.driver,
        "description": "made by teraflock",
        "config": config,
    }
