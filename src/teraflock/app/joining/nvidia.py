"""Installs NVIDIA's driver from the Debian sources of this machine: what to install, and why it cannot be installed.

The plan is pure; `read_ground` reads the machine and `install` runs the commands. The kernel and its headers come from
the same source as the driver, because the driver is built for the kernel that runs after the next boot.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from teraflock.app.joining.releases import REASON_CHARACTERS_MAX
from teraflock.base.errors import Refused, Unavailable
from teraflock.host.machine import container_kind
from teraflock.host.model import Inspection

OnProgress = Callable[[str], None]

COMPONENTS: Final = ("contrib", "non-free", "non-free-firmware")
"""Debian's driver needs all three besides `main`: its alternatives, the driver, and the firmware of the cards."""
DRIVER: Final = (
    "nvidia-kernel-dkms", "firmware-nvidia-gsp", "nvidia-driver-libs", "libcuda1", "nvidia-smi", "nvidia-persistenced",
)  # fmt: skip
"""For computing and for drawing without a display."""
RELEASE: Final = ("debian", "12")
ARCHITECTURES: Final = {"x86_64": "amd64"}
SECONDS_MAX: Final = 3600
_KERNEL: Final = re.compile(r"\d+\.\d+\.\d+-\d+-((?:cloud-|rt-)?amd64)")
_SECURE_BOOT: Final = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_GUIDE: Final = "docs/hosts.md has the steps"


class DriverGround(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether the driver can be installed here."""

    release: tuple[str, str]
    """The id and version of the distribution."""
    machine: str
    kernel: str
    components: frozenset[str]
    """Of all sources of packages."""
    secure_boot: bool
    container: str
    is_root: bool


def needs_driver(found: Inspection) -> bool:
    """Whether this machine has cards, and no driver that answers."""
    return not found.driver and any(not card.answers for card in found.cards)


def commands(ground: DriverGround) -> tuple[tuple[str, ...], ...]:
    """The commands that install the driver. Raise if they could not work here, with the reason."""
    if ground.release != RELEASE or ground.machine not in ARCHITECTURES:
        raise Refused(
            f"The driver is installed only on Debian 12 for amd64, and this is {' '.join(ground.release) or 'unknown'}"
            f" for {ground.machine}",
            hint="Follow the instructions of your distribution, reboot, and check with `nvidia-smi`",
        )
    if ground.container:
        raise Refused(
            f"This runs in a container ({ground.container}), and a driver belongs to the machine",
            hint="Run the command on the machine itself",
        )
    if ground.secure_boot:
        raise Refused(
            "Secure Boot is on, and refuses a driver that is built on this machine",
            hint=f"Turn it off in the firmware, or sign the driver with a key of your own: {_GUIDE}",
        )
    kernel = _KERNEL.fullmatch(ground.kernel)
    if kernel is None:
        raise Refused(
            f"The kernel {ground.kernel[:60]} is not the one of Debian 12, so its headers are not there",
            hint="Run the kernel of Debian 12 (`apt install linux-image-amd64`), or install the driver by hand:"
            f" {_GUIDE}",
        )
    if missing := [each for each in COMPONENTS if each not in ground.components]:
        raise Refused(
            f"The sources of this machine lack {' and '.join(f'`{each}`' for each in missing)}, where the driver is",
            hint="Add to the components in /etc/apt/sources.list or /etc/apt/sources.list.d/debian.sources:"
            f" {' '.join(COMPONENTS)}",
        )
    if not ground.is_root:
        raise Refused("Only root can install the driver", hint="Run the command as root")
    wanted = (f"linux-image-{kernel[1]}", f"linux-headers-{kernel[1]}", *DRIVER)
    return (
        ("apt-get", "update"),
        ("apt-get", "install", "--yes", "--no-install-recommends", *wanted),
    )


def read_ground(root: Path = Path("/")) -> DriverGround:
    named = platform.freedesktop_os_release() if (root / "etc/os-release").exists() else {}
    return DriverGround(
        release=(named.get("ID", ""), named.get("VERSION_ID", "")),
        machine=os.uname().machine,
        kernel=os.uname().release,
        components=_components(),
        secure_boot=is_secure_boot(root),
        container=container_kind(root),
        is_root=os.geteuid() == 0,
    )


def is_secure_boot(root: Path = Path("/")) -> bool:
    """The firmware's variable: four bytes of attributes, then one byte."""
    try:
        return (root / _SECURE_BOOT).read_bytes()[4:5] == b"\1"
    except OSError:
        return False


def install(ground: DriverGround, on_progress: OnProgress) -> None:
    for command in commands(ground):
        on_progress("updating the package lists" if "update" in command else "installing the NVIDIA driver")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"`{' '.join(command[:2])}` did not end within an hour") from None
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            last = (said or ["no reason given"])[-1][-REASON_CHARACTERS_MAX:]
            raise Unavailable(
                f"`{' '.join(command[:2])}` failed: {last}",
                hint=f"Repair it, then repeat the command. {_GUIDE}",
            )


def _components() -> frozenset[str]:
    program = shutil.which("apt-get")
    if program is None:
        return frozenset()
    command = [program, "indextargets", "--format", "$(COMPONENT)", "Identifier: Packages"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return frozenset(done.stdout.split())
