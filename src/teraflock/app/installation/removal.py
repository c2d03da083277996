"""Taking apart what we made on an engine, and the mounts its daemon leaves behind.

Everything is looked up by our mark and checked for it again before it is removed; what bears none is never named here.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

from teraflock.base.errors import Refused
from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import LOCKS, Networks
from teraflock.drivers.lxd.purge import purge
from teraflock.drivers.lxd.rest import Client
from teraflock.instance.driver import EngineRefused

MOUNTS: Final = Path("/proc/self/mountinfo")
STOP_SECONDS_MAX: Final = 30
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")  # the kernel writes a blank as \040


def stop_guests(socket: Path, installation: str) -> int:
    """Stop all our guests in an orderly way; how many ran."""
    engine = Client(socket, project=Names(installation).project)
    try:
        running = [each["name"] for each in _instances(engine) if each["status"] != "Stopped"]
        for name in running:
            _stop(engine, name, force=False)
    finally:
        engine.close()
    return len(running)


def remove_all(socket: Path, installation: str) -> None:
    """Guests, images, networks, firewall, pool and project; nothing that does not bear our mark."""
    ours = Names(installation)
    host = Client(socket)
    try:
        purge(host, ours, Networks(host, ours, way_out=False))
        (LOCKS / f"tera-{installation}-firewall").unlink(missing_ok=True)
    finally:
        host.close()


def _instances(engine: Client) -> list[dict[str, str]]:
    return _list(engine, "instances")


def _list(engine: Client, kind: str) -> list[dict[str, str]]:
    try:
        found: list[dict[str, str]] = engine.get(kind, recursion=1)
    except EngineMissing:  # our project was never made, or is gone already
        return []
    return found


def _stop(engine: Client, name: str, *, force: bool) -> None:
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
    """Where something is mounted in the folder or below, the innermost first."""
    found = []
    for line in mounts.read_text("utf-8", errors="surrogateescape").splitlines():
        place = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split()[4]))
        if place == folder or folder in place.parents:
            found.append(place)
    return sorted(found, key=lambda place: len(place.parts), reverse=True)


def remove_empty_tables() -> None:
    """Engines leave their tables behind, empty, when their last network goes. One with something in it is another's."""
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
    """Whatever is mounted there might be somebody's data: it is not removed with the folder."""
    left = mounts_below(folder) if MOUNTS.exists() else []
    if left:
        raise Refused(
            f"Something is still mounted at {left[0]}",
            hint=f"`umount {left[0]}`, then `make purge` again",
        )
