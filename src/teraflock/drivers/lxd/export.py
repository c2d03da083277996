"""Exports instances to files and imports them. The engine packs disk, snapshots and configuration."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient

NAME: Final = "teraflock"
"""Name of the engine's temporary copy. A copy left by a crash is replaced."""
PACK_SECONDS_MAX: Final = 6 * 3600


def exported(engine: LxdClient, name: str) -> Iterator[bytes] | None:
    """Return the packed instance in chunks, or None if the engine does not have it."""
    try:
        engine.get("instances", name)
    except EngineMissing:
        return None
    return _pieces(engine, name)


def _pieces(engine: LxdClient, name: str) -> Iterator[bytes]:
    copy = ("instances", name, "backups", NAME)
    with contextlib.suppress(EngineMissing):
        engine.delete(*copy)
    body = {"name": NAME, "compression_algorithm": "zstd", "instance_only": False, "optimized_storage": False}
    engine.post("instances", name, "backups", body=body, seconds_max=PACK_SECONDS_MAX)
    try:
        yield from engine.stream(*copy, "export")
    finally:
        with contextlib.suppress(EngineMissing):
            engine.delete(*copy)


def imported(engine: LxdClient, ours: Names, name: str, file: Path) -> bool:
    """Import an instance. Return False, and change nothing, if the engine already has one of that name."""
    with contextlib.suppress(EngineMissing):
        engine.get("instances", name)
        return False
    headers = {"X-LXD-name": name, "X-LXD-pool": ours.pool}
    headers |= {key.replace("LXD", "Incus"): value for key, value in headers.items()}
    engine.create_instance(file, headers, seconds_max=PACK_SECONDS_MAX)
    return True
