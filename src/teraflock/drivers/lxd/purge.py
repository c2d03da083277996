"""Removes everything that this installation created in the engine, and nothing else. Safe to repeat, even
after a crash.

The tag decides, not the name: instances and images are in our project, bridges have our tag, and the tags of
pool and project are checked before they are removed.
"""

import contextlib

from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.moulds import remove
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import LxdNetworks
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.setup import check_ours


def purge(host: LxdClient, ours: Names, networks: LxdNetworks) -> None:
    """`host` is a client for the `default` project."""
    engine = LxdClient(host.socket_path, project=ours.project)
    try:
        with contextlib.suppress(EngineMissing):
            _empty_project(host, engine, ours)
    finally:
        engine.close()
    networks.remove_bridges()
    networks.leave()
    if not _others(host, ours):
        _remove(host, ours, "storage-pools", ours.pool)
    _remove(host, ours, "projects", ours.project)


def _others(host: LxdClient, ours: Names) -> bool:
    """Check whether other members of the cluster have guests of this installation. They have the same pool."""
    projects = host.get("projects", recursion=1) if ours.member else ()
    return any(
        each["config"].get(names.TAG) == ours.installation and each["name"] != ours.project
        for each in projects
    )


def _empty_project(host: LxdClient, engine: LxdClient, ours: Names) -> None:
    check_ours(host.get("projects", ours.project), ours, f"projects `{ours.project}`")
    for instance in engine.get("instances", recursion=1):
        remove(engine, instance["name"])
    for volume in engine.get("storage-pools", ours.pool, "volumes", "custom", recursion=1):
        with contextlib.suppress(EngineMissing):
            engine.delete("storage-pools", ours.pool, "volumes", "custom", volume["name"])
    for image in engine.get("images", recursion=1):
        with contextlib.suppress(EngineMissing):
            engine.delete("images", image["fingerprint"])


def _remove(host: LxdClient, ours: Names, kind: str, name: str) -> None:
    with contextlib.suppress(EngineMissing):
        check_ours(host.get(kind, name), ours, f"{kind} `{name}`")
        host.delete(kind, name)
