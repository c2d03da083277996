"""Divides a card into slices (MIG), and finds the device nodes that open one slice and no other.

`nvidia-smi` does the work: it knows the profile names of every driver. All calls may be repeated.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from teraflock.base.errors import Refused
from teraflock.host.cards import read_slices
from teraflock.host.nvml import NoNvml, opened

SECONDS_MAX: Final = 60
NODES: Final = "/dev/nvidia-caps/nvidia-cap"
_CAPABILITIES: Final = Path("/proc/driver/nvidia/capabilities")
_DEVICES: Final = Path("/proc/devices")
_NOTHING_TO_DESTROY: Final = 6  # the exit code of `nvidia-smi mig -dgi` without instances


class NotSliced(Refused):
    """A GPU could not be divided."""

    code = "card_not_sliced"
    remedy = "Choose other profiles, or free the GPU: `tera host show` lists who holds it."


class SliceNode(msgspec.Struct, frozen=True):
    """A device node that a process must be able to open to use a slice."""

    major: int
    minor: int

    @property
    def path(self) -> str:
        return f"{NODES}{self.minor}"


def slice_card(address: str, profiles: tuple[str, ...]) -> None:
    """Divide the card at a PCI address. Without profiles, make it whole. If that fails, leave it as it was."""
    on, found = _current(address)
    if on == bool(profiles) and Counter(found) == Counter(profiles):
        return
    try:
        _divide(address, profiles, on=on)
    except NotSliced:
        with suppress(NotSliced):
            _divide(address, found, on=_current(address)[0])
        raise


def _divide(address: str, profiles: tuple[str, ...], *, on: bool) -> None:
    """`on`: whether MIG is on now."""
    if on:
        _smi("mig", "-dci", "-i", address, accepts=_NOTHING_TO_DESTROY)
        _smi("mig", "-dgi", "-i", address, accepts=_NOTHING_TO_DESTROY)
    if on != bool(profiles):
        _smi("-i", address, "-mig", "1" if profiles else "0")
        if _current(address)[0] != bool(profiles):
            raise NotSliced(
                "The card changes its MIG mode only when it is reset",
                hint="Stop everything that uses it, run `nvidia-smi --gpu-reset`, or reboot the host",
            )
    if profiles:
        _smi("mig", "-i", address, "-cgi", ",".join(_largest_first(profiles)), "-C")


def nodes_of_slices(slots: Iterable[str]) -> dict[str, tuple[SliceNode, ...]]:
    """The nodes of those slots that are slices, by UUID."""
    return {uuid: slice_nodes(uuid) for slot in slots if (uuid := slot.partition("/")[2])}


def slice_nodes(uuid: str) -> tuple[SliceNode, ...]:
    """The nodes of a slice: of its part of the memory, and of its part of the processors."""
    try:
        with opened() as nvml:
            part = nvml.nvmlDeviceGetHandleByUUID(uuid.encode())
            card = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part)
            place = _CAPABILITIES / f"gpu{nvml.nvmlDeviceGetMinorNumber(card)}" / "mig"
            place /= f"gi{nvml.nvmlDeviceGetGpuInstanceId(part)}"
            inner = place / f"ci{nvml.nvmlDeviceGetComputeInstanceId(part)}"
            return tuple(SliceNode(_major(), _minor(each / "access")) for each in (place, inner))
    except NoNvml as reason:
        raise NotSliced(str(reason)) from None
    except Exception as error:  # NVML's errors are untyped; the slice may just have been removed
        raise NotSliced(f"The slice {uuid} cannot be opened: {error}") from error


def _current(address: str) -> tuple[bool, tuple[str, ...]]:
    """Whether MIG is on, and the profiles of the slices."""
    try:
        with opened() as nvml:
            card = nvml.nvmlDeviceGetHandleByPciBusId(address.encode())
            return bool(_mode(nvml, card)), tuple(each.profile for each in read_slices(nvml, card))
    except NoNvml as reason:
        raise NotSliced(str(reason)) from None


def _mode(nvml: Any, card: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetMigMode(card)[0])
    except nvml.NVMLError as error:
        raise NotSliced(f"The card cannot be divided: {error}") from error


def _largest_first(profiles: tuple[str, ...]) -> list[str]:
    """In this order every combination that fits finds its place on the card."""
    return sorted(profiles, key=lambda each: -int(each.partition("g.")[0]))


def _smi(*words: str, accepts: int = 0) -> None:
    try:
        done = subprocess.run(
            ["nvidia-smi", *words], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotSliced(f"`nvidia-smi` does not work on this host: {error}") from error
    if done.returncode not in (0, accepts):
        said = (line.strip() for line in (done.stdout + done.stderr).splitlines())
        lines = [line for line in said if line and not line.startswith("Successfully")]
        raise NotSliced(
            f"The driver refused to divide the card: {lines[0][:200] if lines else 'no reason given'}"
        )


def _major() -> int:
    found = re.search(r"^\s*(\d+) nvidia-caps$", _DEVICES.read_text(), re.MULTILINE)
    if found is None:
        raise OSError("the driver has no device nodes for slices")
    return int(found[1])


def _minor(access: Path) -> int:
    found = re.search(r"DeviceFileMinor:\s*(\d+)", access.read_text())
    if found is None:
        raise OSError(f"{access} names no device node")
    return int(found[1])
