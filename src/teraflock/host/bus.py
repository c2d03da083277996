"""What the kernel knows about NVIDIA cards without their driver: the cards on the PCI bus, and logged faults."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

NVIDIA: Final = "0x10de"
_DISPLAYS: Final = ("0x0300", "0x0302")
"""PCI classes of graphics cards, with and without a display. NVIDIA's other devices are sound, USB and switches."""
_XID: Final = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
LOG_BYTES_MAX: Final = 16 << 20  # the kernel log is smaller; a limit for a reader that new records overtake
RECORD_BYTES: Final = 8192  # the kernel returns one record at a time, and refuses a smaller buffer


def nvidia_cards(root: Path = Path("/")) -> tuple[str, ...]:
    """The PCI addresses of all NVIDIA cards on the bus. Empty if the bus is not visible."""
    found = []
    try:
        devices = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return ()
    for device in devices:
        try:
            vendor = (device / "vendor").read_text().strip()
            kind = (device / "class").read_text().strip()
        except OSError:
            continue  # it was unplugged meanwhile
        if vendor == NVIDIA and kind.startswith(_DISPLAYS):
            found.append(device.name.lower())
    return tuple(found)


def logged_faults(path: Path = Path("/dev/kmsg")) -> dict[str, tuple[int, ...]] | None:
    """The faults (Xids) in the kernel log by PCI address, latest first. None if the log is not readable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return faults_in(_records(descriptor))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def faults_in(lines: Iterable[str]) -> dict[str, tuple[int, ...]]:
    faults: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        for place, number in _XID.findall(line):
            faults[_with_function(place.lower())].insert(0, int(number))
    return {address: tuple(numbers) for address, numbers in faults.items()}


def _records(descriptor: int) -> list[str]:
    records: list[str] = []
    size = 0
    while size < LOG_BYTES_MAX:
        try:
            record = os.read(descriptor, RECORD_BYTES)
        except BlockingIOError:
            break  # no more records so far
        except BrokenPipeError:
            continue  # the record was overwritten: the next one is now the oldest
        if not record:
            break
        size += len(record)
        records.append(record.decode("utf-8", "replace"))
    return records


def _with_function(place: str) -> str:
    """Add the device function, which the log leaves out. For a card it is 0."""
    return place if "." in place else f"{place}.0"
