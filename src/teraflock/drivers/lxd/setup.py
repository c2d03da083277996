"""Creates what the engine needs before the first guest: our project and our storage pool. Safe to repeat.

Bridges are in the engine's `default` project, because LXD has them nowhere else. They carry our tag.
"""

import contextlib
from typing import Final

import msgspec

from teraflock.base.errors import Refused
from teraflock.base.quantities import GIB
from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.engine_errors import EngineBusy

_CREATED: Final = "Created"
_MADE_BY: Final = "made by teraflock"


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
    found = member_of(client)
    if found != ours.member:
        raise Refused(
            f"This LXD or Incus is {_membership(found)}, but Teraflock uses it as {_membership(ours.member)}",
            hint="A member of a cluster joins with `tera host join`. A host whose engine entered or left a cluster must"
            " leave and join again",
        )
    _ensure(client, ours, "projects", ours.project, _project(ours))
    if ours.member:
        _ensure_pool_of_cluster(client, ours, pool)
    else:
        _ensure(client, ours, "storage-pools", ours.pool, _pool(ours, pool))


def member_of(client: LxdClient) -> str:
    """Return the engine's name in its cluster. Empty: it is in none."""
    environment = client.get()["environment"]
    return str(environment["server_name"]) if environment.get("server_clustered") else ""


def _membership(member: str) -> str:
    return f"the member `{member}` of a cluster" if member else "a single server"


def _ensure_pool_of_cluster(client: LxdClient, ours: Names, wish: PoolWish) -> None:
    """Create the pool on all members, which a cluster wants one by one and then together."""
    place = ("storage-pools", ours.pool)
    with contextlib.suppress(EngineMissing):
        found = client.get(*place)
        if found["status"] == _CREATED:
            check_ours(found, ours, f"storage-pools `{ours.pool}`")
            return
    body = {"name": ours.pool, "driver": wish.driver, "description": _MADE_BY}
    with contextlib.suppress(EngineTaken):  # by another member, perhaps at the same time
        for member in client.names("cluster", "members"):
            with contextlib.suppress(EngineTaken):
                client.post("storage-pools", body={**body, "config": _storage(wish)}, target=member)
        client.post("storage-pools", body={**body, "config": {names.TAG: ours.installation}})
    found = client.get(*place)
    if found["status"] != _CREATED:
        raise EngineBusy("The cluster is still creating the storage pool", hint="Teraflock tries again")
    check_ours(found, ours, f"storage-pools `{ours.pool}`")


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
        "description": _MADE_BY,
        "config": {
            "features.images": "true",
            "features.profiles": "true",  # keeps devices of the default profile out of guests
            "features.storage.volumes": "true",
            names.TAG: ours.installation,
        },
    }


def _pool(ours: Names, wish: PoolWish) -> dict[str, object]:
    return {
        "name": ours.pool,
        "driver": wish.driver,
        "description": _MADE_BY,
        "config": {names.TAG: ours.installation, **_storage(wish)},
    }


def _storage(wish: PoolWish) -> dict[str, str]:
    if wish.source:
        return {"source": wish.source}
    return {} if wish.driver == "dir" else {"size": f"{wish.size_bytes}B"}
