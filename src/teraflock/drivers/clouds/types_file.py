"""Keeps the machine types of a site in a file, so that they are known right after a start."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from teraflock.instance.driver import MachineType


def read(path: Path) -> tuple[MachineType, ...]:
    """The types as last written. A missing or damaged file has none: they are read from the provider soon."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[MachineType, ...])
    except (OSError, msgspec.MsgspecError):
        return ()


def write(path: Path, types: Sequence[MachineType]) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(msgspec.json.encode(types))
    beside.replace(path)
