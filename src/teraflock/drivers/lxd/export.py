"""Instances as files: the engine packs one with its disk, its snapshots and its configuration, and unpacks it again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import Client

NAME: Final = "teraflock"
"""Of the engine's own copy, which is there only while it is read; one that a crash left is replaced."""
PACK_SECONDS_MAX: Final = 6 * 3600


def exported(engine: Client, name: str) -> Iterator[bytes] | None:
    """The packed instance piece by piece; None where the engine does not have it."""
    try:
        engine.get("instances", name)
    except EngineMissing:
        return None
    return _pieces(engine, name)


def _pieces(engine: Client, name: str) -> Iterator[bytes]:
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


def imported(engine: Client, ours: Names, name: str, file: Path) -> bool:
    """Unpack an instance; False where the engine has one of that name already, which is left as it is."""
    with contextlib.suppress(EngineMissing):
        engine.get("instances", name)
        return False
    headers = {"X-LXD-name": name, "X-LXD-pool": ours.pool}
    headers |= {key.replace("LXD", "Incus"): value for key, value in headers.items()}
    engine.post("instances", body=file, headers=headers, seconds_max=PACK_SECONDS_MAX)
    return True
