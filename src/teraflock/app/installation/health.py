"""Health checks of this machine, as values: each check has a result and a repair.

A check never raises: an error becomes its result. Kernel files are read below `root`, so that tests can
produce every result.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd import guest, kernel

PYTHON_MIN: Final = (3, 11)
DISK_BYTES_MIN: Final = 10 << 30
"""Space for an image, its unpacked copy and a small guest."""
INOTIFY_INSTANCES_MIN: Final = 1024
"""Enough for about 128 guests: the systemd of each one uses eight."""
PROCESS_IDS_MIN: Final = 1 << 20


class HealthVerdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Works, with limitations."""
    WRONG = "wrong"
    SKIPPED = "skipped"
    """Not needed in this configuration."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    verdict: HealthVerdict
    seen: str
    repair: str = ""
    """How to repair it; empty if everything is fine."""


class ThisMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the checks."""

    root: Path = Path("/")
    home: Path
    is_real: bool
    """Whether real containers run here. A simulated engine does not need what they need."""
    has_program: Callable[[str], str | None] = shutil.which

    def read(self, path: str) -> str | None:
        try:
            return (self.root / path.lstrip("/")).read_text("utf-8", errors="replace").strip()
        except OSError:
            return None


def ok(check: str, seen: str) -> Finding:
    return Finding(check=check, verdict=HealthVerdict.OK, seen=seen)


def warning(check: str, seen: str, repair: str) -> Finding:
    return Finding(check=check, verdict=HealthVerdict.WARNING, seen=seen, repair=repair)


def wrong(check: str, seen: str, repair: str) -> Finding:
    return Finding(check=check, verdict=HealthVerdict.WRONG, seen=seen, repair=repair)


def skipped(check: str, seen: str = "not needed by the simulated engine") -> Finding:
    return Finding(check=check, verdict=HealthVerdict.SKIPPED, seen=seen)


def guarded(check: str, look: Callable[[], Finding]) -> Finding:
    """Run a check. An exception becomes its result."""
    try:
        return look()
    except TeraflockError as error:
        return wrong(check, error.sentence, error.hint)
    except OSError as error:
        return wrong(check, str(error), "")


def check_machine(machine: ThisMachine) -> list[Finding]:
    return [guarded(name, lambda look=look: look(machine)) for name, look in CHECKS.items()]  # type: ignore[misc]


def python(machine: ThisMachine) -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON_MIN:
        return wrong(
            "python", version, "Install Python 3.11 or newer, set PYTHON to it, and run `make clean up`"
        )
    return ok("python", version)


def home(machine: ThisMachine) -> Finding:
    folder = machine.home
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        return wrong("home", f"{machine.home} is not writable", "Set `TERA_HOME` to a writable folder")
    return ok("home", str(machine.home))


def disk(machine: ThisMachine) -> Finding:
    folder = machine.home
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    seen = f"{free >> 30} GB free at {folder}"
    if free < DISK_BYTES_MIN and machine.is_real:
        return wrong("disk space", seen, f"Free {DISK_BYTES_MIN >> 30} GB for an image and its guests")
    return ok("disk space", seen)


def ssh_client(machine: ThisMachine) -> Finding:
    missing = [name for name in ("ssh", "scp", "ssh-keygen") if not machine.has_program(name)]
    if missing:
        result = wrong if machine.is_real else warning  # nobody logs in to a simulated instance
        return result("ssh client", f"no {', '.join(missing)}", "apt-get install openssh-client")
    return ok("ssh client", "ssh, scp and ssh-keygen are installed")


def nftables(machine: ThisMachine) -> Finding:
    if not machine.is_real:
        return skipped("nftables")
    program = machine.has_program("nft")
    if not program:
        return wrong("nftables", "no `nft`", "apt-get install nftables (isolates tenants)")
    done = subprocess.run([program, "list", "tables"], capture_output=True, text=True, check=False)
    if done.returncode:
        return wrong(
            "nftables", done.stderr.strip().splitlines()[0], "Run as root, on a kernel with nf_tables"
        )
    return ok("nftables", f"{len(done.stdout.splitlines())} tables, readable")


def bridge_filter(machine: ThisMachine) -> Finding:
    if not machine.is_real:
        return skipped("br_netfilter")
    value = machine.read("/proc/sys/net/bridge/bridge-nf-call-iptables")
    if value is None:
        return wrong(
            "br_netfilter",
            "the module is not loaded",
            "modprobe br_netfilter: without it, guests on the same bridge reach each other",
        )
    if value != "1":
        return wrong("br_netfilter", "turned off", "sysctl net.bridge.bridge-nf-call-iptables=1")
    return ok("br_netfilter", "traffic between guests passes the firewall")


def inotify(machine: ThisMachine) -> Finding:
    if not machine.is_real:
        return skipped("inotify")
    value = machine.read("/proc/sys/fs/inotify/max_user_instances")
    if value is None or not value.isdigit():
        return warning("inotify", "the limit is not readable", "Check fs.inotify.max_user_instances")
    if int(value) < INOTIFY_INSTANCES_MIN:
        return wrong(
            "inotify",
            f"{value} instances: about {int(value) // 8} guests",
            "sysctl fs.inotify.max_user_instances=8192 (`make up` sets it until the next boot)",
        )
    if int(value) < kernel.INOTIFY_INSTANCES_MIN:
        return warning(
            "inotify",
            f"{value} instances: one guest can use them all",
            f"sysctl fs.inotify.max_user_instances={kernel.INOTIFY_INSTANCES_MIN}"
            " (`make up` sets it until the next boot)",
        )
    return ok("inotify", f"{value} instances")


def process_ids(machine: ThisMachine) -> Finding:
    if not machine.is_real:
        return skipped("process ids")
    value = machine.read("/proc/sys/kernel/pid_max")
    if value is None or not value.isdigit():
        return warning("process ids", "the limit is not readable", "Check kernel.pid_max")
    if int(value) < PROCESS_IDS_MIN:
        return warning(
            "process ids",
            f"{value} in total: {int(value) // guest.PROCESSES_MAX} guests can use them all",
            "sysctl kernel.pid_max=4194304 (`make up` sets it until the next boot)",
        )
    return ok("process ids", f"{value} in total")


def cgroups(machine: ThisMachine) -> Finding:
    if not machine.is_real:
        return skipped("cgroups")
    unified = machine.read("/sys/fs/cgroup/cgroup.controllers")
    if unified is not None:
        missing = {"cpu", "memory", "pids"} - set(unified.split())
        if missing:
            return wrong(
                "cgroups",
                f"v2 without {', '.join(sorted(missing))}",
                "Enable them on the kernel command line",
            )
        return _first_process_is_placed(machine)
    missing = {
        each for each in ("cpu", "memory", "pids") if not (machine.root / "sys/fs/cgroup" / each).is_dir()
    }
    if missing:
        return wrong(
            "cgroups",
            f"no {', '.join(sorted(missing))}",
            "Mount the cgroup file system: limits are not enforced without it",
        )
    return ok("cgroups", "v1, with cpu, memory and pids")


def _first_process_is_placed(machine: ThisMachine) -> Finding:
    """Containers run beside process 1, so its cgroup must support limits. With systemd it always does."""
    place = (machine.read("/proc/1/cgroup") or "").strip().rpartition("::")[2].removesuffix("/init.scope")
    here = (machine.read(f"/sys/fs/cgroup{place}/cgroup.subtree_control") or "").split()
    if place.strip("/") and "memory" not in here:
        return wrong(
            "cgroups",
            f"v2, but process 1 is in {place}, which does not support limits",
            "Before `make up`, run `echo 1 >/sys/fs/cgroup/cgroup.procs`",
        )
    return ok("cgroups", "v2")


def app_armor(machine: ThisMachine) -> Finding:
    if not machine.is_real:
        return skipped("AppArmor")
    value = machine.read("/sys/module/apparmor/parameters/enabled")
    if value == "Y":
        return ok("AppArmor", "enabled")
    return warning(
        "AppArmor",
        "off in this kernel",
        "Isolation has one layer less: boot with `apparmor=1 security=apparmor` if you do not trust tenants",
    )


CHECKS: Final[dict[str, Callable[[ThisMachine], Finding]]] = {
    "python": python,
    "home": home,
    "disk space": disk,
    "ssh client": ssh_client,
    "nftables": nftables,
    "br_netfilter": bridge_filter,
    "inotify": inotify,
    "process ids": process_ids,
    "cgroups": cgroups,
    "AppArmor": app_armor,
}


def is_well(findings: Sequence[Finding]) -> bool:
    return all(finding.verdict is not HealthVerdict.WRONG for finding in findings)
