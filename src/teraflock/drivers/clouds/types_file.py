"""Keeps the machine types of a site in a file, with the time of their reading, for the next start."""

from datetime import datetime
from pathlib import Path

import msgspec

from teraflock.instance.driver import MachineType


class TypesRead(msgspec.Struct, frozen=True):
    types: tuple[MachineType, ...] = ()
    at: datetime | None = None
    """When the provider answered with them. None: never."""


def read(path: Path) -> TypesRead:
    """The types as last written. A missing or damaged file has none: they are read from the provider soon."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=TypesRead)
    except (OSError, msgspec.MsgspecError):
        return TypesRead()


def write(path: Path, found: TypesRead) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(msgspec.json.encode(found))
    beside.replace(path)
