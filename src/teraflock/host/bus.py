"""What the kernel knows of NVIDIA's cards without their driver: who is on the bus, and which faults were logged."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

NVIDIA: Final = "0x10de"
_DISPLAYS: Final = ("0x0300", "0x0302")
"""Classes of devices: a graphics card, and one that drives no screen. The rest of NVIDIA's are sound, USB, switches."""
_XID: Final = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
LOG_BYTES_MAX: Final = 16 << 20  # the kernel's own log is smaller; bounds a reader that is overtaken
RECORD_BYTES: Final = 8192  # the kernel hands over one record at a time, and refuses a smaller place for it


def nvidia_cards(root: Path = Path("/")) -> tuple[str, ...]:
    """The PCI addresses of all NVIDIA cards on the bus; none where the bus cannot be seen."""
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
            continue  # it was unplugged while we looked
        if vendor == NVIDIA and kind.startswith(_DISPLAYS):
            found.append(device.name.lower())
    return tuple(found)


def logged_faults(path: Path = Path("/dev/kmsg")) -> dict[str, tuple[int, ...]] | None:
    """By PCI address, the faults (Xids) in the kernel's log, the last first; None where it may not be read."""
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
            break  # all that there is so far
        except BrokenPipeError:
            continue  # overwritten while we read: the next one is the oldest there is
        if not record:
            break
        size += len(record)
        records.append(record.decode("utf-8", "replace"))
    return records


def _with_function(place: str) -> str:
    """The log leaves out the function of the device, which for a card is 0."""
    return place if "." in place else f"{place}.0"
