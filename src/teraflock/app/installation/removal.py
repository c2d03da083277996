"""Removes what we created on an engine, and the mounts that its daemon leaves.

Everything is found by our mark, and the mark is checked again before the removal. Nothing else is touched.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

from teraflock.base.errors import Refused
from teraflock.drivers.lxd.balancers import LxdBalancers
from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import LOCKS, LxdNetworks
from teraflock.drivers.lxd.purge import purge
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.engine_errors import EngineRefused

MOUNTS: Final = Path("/proc/self/mountinfo")
STOP_SECONDS_MAX: Final = 30
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")  # the kernel writes a space as \040


def stop_guests(socket: Path, installation: str) -> int:
    """Shut down all our guests and balancers. Returns how many guests were running."""
    engine = LxdClient(socket, project=Names(installation).project)
    try:
        running = [each["name"] for each in _instances(engine) if each["status"] != "Stopped"]
        for name in running:
            _stop(engine, name, force=False)
    finally:
        engine.close()
    host = LxdClient(socket)
    try:
        ours = Names(installation)
        LxdBalancers(ours, LxdNetworks(host, ours, way_out=False)).leave()
    finally:
        host.close()
    return len(running)


def remove_all(socket: Path, ours: Names) -> None:
    """Remove guests, images, networks, firewall, pool and project, if they have our mark."""
    host = LxdClient(socket)
    try:
        networks = LxdNetworks(host, ours, way_out=False)
        LxdBalancers(ours, networks).leave()
        purge(host, ours, networks)
        (LOCKS / f"tera-{ours.installation}-firewall").unlink(missing_ok=True)
    finally:
        host.close()


def _instances(engine: LxdClient) -> list[dict[str, str]]:
    return _list(engine, "instances")


def _list(engine: LxdClient, kind: str) -> list[dict[str, str]]:
    try:
        found: list[dict[str, str]] = engine.get(kind, recursion=1)
    except EngineMissing:  # our project never existed, or is already removed
        return []
    return found


def _stop(engine: LxdClient, name: str, *, force: bool) -> None:
    body = {"action": "stop", "timeout": STOP_SECONDS_MAX, "force": force}
    try:
        engine.put("instances", name, "state", body=body)
    except EngineMissing:
        return
    except EngineRefused:
        if force:
            raise
        _stop(engine, name, force=True)


def mounts_below(folder: Path, mounts: Path = MOUNTS) -> list[Path]:
    """The mount points in or below the folder, the innermost first."""
    found = []
    for line in mounts.read_text("utf-8", errors="surrogateescape").splitlines():
        place = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split()[4]))
        if place == folder or folder in place.parents:
            found.append(place)
    return sorted(found, key=lambda place: len(place.parts), reverse=True)


def remove_empty_tables() -> None:
    """Remove the empty nftables tables that engines leave with their last network. A table with rules is not ours."""
    for family in ("inet", "bridge"):
        for name in ("lxd", "incus"):
            table = ["table", family, name]
            asked = subprocess.run(["nft", "list", *table], capture_output=True, text=True, check=False)
            if asked.returncode == 0 and asked.stdout.split() == [*table, "{", "}"]:
                subprocess.run(["nft", "delete", *table], capture_output=True, check=False)


def unmount_below(folder: Path) -> None:
    for place in mounts_below(folder):
        subprocess.run(["umount", os.fspath(place)], capture_output=True, check=False)


def refuse_mounts_below(folder: Path) -> None:
    """Refuse to remove a folder with mounts, because they may contain data."""
    left = mounts_below(folder) if MOUNTS.exists() else []
    if left:
        raise Refused(
            f"A file system is still mounted at {left[0]}",
            hint=f"Run `umount {left[0]}`, then `make purge` again",
        )
