"""A test engine: LXD or Incus in its own namespaces, with its own folder and no access to any network.

Everything runs in one process namespace. Its first process dies with the tests, however they end, and takes the daemon,
guests, mounts, bridges and firewall with it. A killed run leaves only its folder and empty cgroups; the next run finds
them by the owner's process id and removes them.

    inside      the guests' host, with the daemon, its bridges and the firewall; 198.51.100.1 on `uplink`
    outside     a neighbour on the uplink, 198.51.100.2, which represents the internet
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from teraflock.drivers.lxd import kernel
from teraflock.drivers.lxd.daemon import LXD, PROGRAMS, Daemon, Program

FOLDERS = Path("/var/tmp")  # not /tmp, which is memory on many systems: pools need room
PREFIX = "tera-engine-test-"
MARK = "cgroup-mark-"
ENGINE = "engine"
INSIDE_ADDRESS = "198.51.100.1"
OUTSIDE_ADDRESS = "198.51.100.2"
NEW_NETWORK = 0x40000000  # CLONE_NEWNET

# `unshare` hides the cgroups with a new /sys, so mount them again. Ignoring SIGCHLD reaps orphans.
FIRST_PROCESS = """
set -e
mkdir -p "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$1/cgroup" /sys/fs/cgroup
ip link set lo up
unshare --net sleep infinity &
neighbour=$!
while [ "$(readlink /proc/$neighbour/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add uplink type veth peer name eth0 netns $neighbour
ip address add 198.51.100.1/24 dev uplink
ip link set uplink up
nsenter --target $neighbour --net sh -c '
    ip link set lo up; ip address add 198.51.100.2/24 dev eth0; ip link set eth0 up
    ip route add default via 198.51.100.1'
trap '' CHLD
echo ready
exec sleep infinity
"""


class NoSandbox(Exception):
    """Raised with the reason why this machine cannot run a test engine."""


class Sandbox:
    def __init__(self, name: str = "", program: Program = LXD) -> None:
        """`name` distinguishes test engines of one process."""
        _check_machine(program)
        remove_stale()
        self.member = ""
        """The name of its engine in a cluster. Empty: it is in none."""
        self.folder = FOLDERS / f"{PREFIX}{name}{os.getpid()}"
        new = FOLDERS / f"new-{self.folder.name}"  # others remove a folder without an owner
        new.mkdir()
        (new / "owner").write_text(f"{os.getpid()} {started(os.getpid())}")
        new.rename(self.folder)
        self._first = self._begin()
        self.inside_pid = _children(self._first.pid)[0]
        self.outside_pid = _children(self.inside_pid)[0]
        enter = ("nsenter", f"--target={self.inside_pid}", "--net", "--mount", "--pid", "--")
        self.daemon = Daemon(self.folder / ENGINE, enter=enter, program=program)
        kernel.raise_limits()
        try:
            self.daemon.ensure()
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Move this thread, and everything it starts, into the network of the guests' host."""
        there_now = Path(f"/proc/{self.inside_pid}/ns/net")
        with Path("/proc/thread-self/ns/net").open() as home, there_now.open() as there:
            _enter_network(there.fileno())
            try:
                yield
            finally:
                _enter_network(home.fileno())

    def inside_command(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the guests' host, with its processes and mounts."""
        enter = ["nsenter", f"--target={self.inside_pid}", "--net", "--mount", "--pid", "--"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, check=False)

    def outside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the neighbour."""
        enter = ["nsenter", f"--target={self.outside_pid}", "--net", "--"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, check=False)

    def close(self) -> None:
        self._first.kill()
        self._first.wait()
        remove(self.folder)

    def _begin(self) -> subprocess.Popen[str]:
        namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        command = [
            "setpriv",
            "--pdeathsig=KILL",
            *namespaces,
            "sh",
            "-c",
            FIRST_PROCESS,
            "sh",
            str(self.folder),
        ]
        first = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert first.stdout
        if first.stdout.readline() != "ready\n":
            first.kill()
            first.wait()
            remove(self.folder)
            raise NoSandbox("cannot create namespaces, cgroups or veth links here")
        first.stdout.close()
        return first


def remove_stale() -> None:
    """Remove what killed runs left. Folders of running tests are kept."""
    for folder in FOLDERS.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            pid, began = (folder / "owner").read_text().split()
            if started(int(pid)) == began:
                continue
        remove(folder)


def remove(folder: Path) -> None:
    """Remove all processes that use the folder, then its cgroups, then the folder."""
    for pid in _processes_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    projects = [path.name.removeprefix(MARK) for path in folder.glob(f"{MARK}*")]
    for _ in range(100):  # killed processes take a moment to end, and hold the folder until then
        left = [path for project in projects for path in _left_cgroups(project)]
        if not left:
            shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def mark_cgroups(folder: Path, project: str) -> None:
    """Note that guests of this engine project may leave cgroups."""
    (folder / f"{MARK}{project}").touch()


def started(pid: int) -> str | None:
    """Return when a process started, in kernel ticks: a process id alone may have been reused."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def _left_cgroups(project: str) -> list[Path]:
    """Return cgroups of the project's guests that cannot be removed yet, because they contain processes."""
    found = list(Path("/sys/fs/cgroup").glob(f"*/lxc.*.{project}_*"))
    found += Path("/sys/fs/cgroup").glob(f"lxc.*.{project}_*")
    for path in found:
        with contextlib.suppress(OSError):  # another run removes it as well
            inside = sorted(path.glob("**/"), reverse=True)
            for each in (*inside, path):
                with contextlib.suppress(OSError):
                    each.rmdir()
    return [path for path in found if path.exists()]


def _processes_of(folder: Path) -> list[int]:
    marks = {f"{program.folder_variable}={folder / ENGINE}".encode() for program in PROGRAMS}
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if not marks.isdisjoint(path.read_bytes().split(b"\0")):
                found.append(int(path.parent.name))
    return found


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _enter_network(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _check_machine(program: Program = LXD) -> None:
    if os.geteuid() != 0:
        raise NoSandbox("containers need root")
    if program.path() is None:
        raise NoSandbox(f"{program.title} is not installed")
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        raise NoSandbox(f"not installed: {', '.join(missing)} (scripts/engine-install)")
    if not any(Path("/sys/fs/cgroup").iterdir()):
        raise NoSandbox("cgroups are not available")


_PROGRAMS: Sequence[str] = (
    "nft", "mkfs.btrfs", "dnsmasq", "mmdebstrap", "zstd", "ssh", "ssh-keygen", "ip", "unshare", "nsenter", "setpriv",
)  # fmt: skip
