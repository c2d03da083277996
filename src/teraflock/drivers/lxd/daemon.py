"""The engine's own process: finds a running engine, or starts and stops our own.

An engine that already runs is used as it is and never stopped. Our own engine has its own folder (`LXD_DIR`,
`INCUS_DIR`), needs no systemd, and restarts after `kill -9` with the same folder, whether its guests survived
or not. A note next to the folder says which program it belongs to, because LXD and Incus cannot read each
other's data.
"""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.drivers.lxd import errors
from teraflock.drivers.lxd.lxcfs import Lxcfs
from teraflock.drivers.lxd.rest import LxdClient

KNOWN_SOCKETS: Final = (
    Path("/var/lib/incus/unix.socket"),
    Path("/var/snap/lxd/common/lxd/unix.socket"),
    Path("/var/lib/lxd/unix.socket"),
)
_IN_ROOT_CGROUP: Final = (
    "sh",
    "-c",
    '[ ! -e "$0/cgroup.controllers" ] || echo $$ >"$0/cgroup.procs"; exec "$@"',
    "/sys/fs/cgroup",
)
"""Prefix for the daemon's command. With cgroups v2 the daemon must run in the root group. In the caller's
group, limits on processors or memory may be unavailable, and the engine then skips them without an error."""
READY_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 60
LOOK_AGAIN_SECONDS: Final = 0.05


class NoEngine(Unavailable):
    """LXD or Incus is not installed, or did not start."""

    code = "no_engine"
    remedy = "Run `make up` as root. `tera doctor` shows what is missing."


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two engines, where their processes differ. Both have the same API on the socket."""

    title: str
    name: str
    """Name of the program and of its process."""
    folder_variable: str
    templates_variable: str
    folders: tuple[str, ...] = ()
    """Folders in which packages install it, besides the search path."""

    def path(self) -> str | None:
        """Return the path of the installed program."""
        return shutil.which(self.name) or shutil.which(self.name, path=os.pathsep.join(self.folders))


LXD: Final = Program(
    title="LXD",
    name="lxd",
    folder_variable="LXD_DIR",
    templates_variable="LXD_LXC_TEMPLATE_CONFIG",
    folders=("/usr/sbin", "/snap/bin"),
)
INCUS: Final = Program(
    title="Incus",
    name="incusd",
    folder_variable="INCUS_DIR",
    templates_variable="INCUS_LXC_TEMPLATE_CONFIG",
    folders=("/usr/libexec/incus", "/opt/incus/bin"),  # Debian's and Ubuntu's package; the upstream package
)
PROGRAMS: Final = (LXD, INCUS)


def installed() -> Program | None:
    """Return the program that a new daemon would use."""
    return next((program for program in PROGRAMS if program.path()), None)


def find(environment: Mapping[str, str], known: Sequence[Path] = KNOWN_SOCKETS) -> Path | None:
    """Return the socket of an engine that answers: the one in the environment, or one in a usual place."""
    for program in (INCUS, LXD):
        if environment.get(program.folder_variable):
            return Path(environment[program.folder_variable]) / "unix.socket"
    return next((path for path in known if answers(path)), None)


def answers(socket_path: Path) -> bool:
    """Check whether an engine answers on the socket and trusts us."""
    client = LxdClient(socket_path)
    try:
        return bool(client.get().get("auth") == "trusted")
    except TeraflockError:
        return False
    finally:
        client.close()


class Daemon:
    """Our own engine. `enter` is a prefix for its command, for a daemon in its own namespaces."""

    def __init__(self, folder: Path, *, enter: Sequence[str] = (), program: Program | None = None) -> None:
        """`program` is the engine for an empty folder. Default: the one that is installed."""
        self.folder = folder
        self.socket_path = folder / "unix.socket"
        self.lxcfs = Lxcfs(folder, enter=enter)
        self._enter = tuple(enter)
        self._wish = program
        self._kind_file = folder.with_name(folder.name + ".kind")
        self._pid_file = folder.with_name(folder.name + ".pid")
        self._log = folder.with_name(folder.name + ".log")

    def program(self) -> Program | None:
        """Return the program that this folder belongs to or will belong to, or None if none is installed."""
        try:
            noted = self._kind_file.read_text("ascii").strip()
        except OSError:
            # A folder without a note was created by an earlier version, and belongs to LXD.
            return self._wish or (LXD if self.folder.exists() else installed())
        return next((program for program in PROGRAMS if program.name == noted), None)

    def ensure(self) -> None:
        """Start the daemon unless it runs. Return once it answers."""
        shown = self.lxcfs.ensure()
        if answers(self.socket_path):
            return
        self._wait_ready(self.pid() or self._spawn(shown=shown))

    def pid(self) -> int | None:
        """Return the process id if the process that we started is alive."""
        program = self.program()
        try:
            pid = _process(int(self._pid_file.read_text("ascii")), program.name if program else "")
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        folder = os.fsencode(f"{program.folder_variable}={self.folder}") if program else b""
        return pid if folder in environment else None

    def was_started(self) -> bool:
        """Check whether we started the daemon and did not stop it. A daemon that crashed leaves its note."""
        return self._pid_file.exists()

    def stop(self) -> None:
        """Stop the daemon and all its guests."""
        self._end(signal.SIGPWR)  # both handle it as a power failure: they stop the guests, then exit
        self.lxcfs.stop()

    def stop_daemon_alone(self) -> None:
        """Stop the daemon. Its guests keep running, and the next daemon finds them."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the daemon immediately, as a crash would."""
        self._end(signal.SIGKILL)

    def _spawn(self, *, shown: bool) -> int:
        program = self.program()
        path = program.path() if program else None
        if program is None or path is None:
            title = program.title if program else "LXD"
            raise NoEngine(f"{title} is not installed", hint="Run as root: `sh scripts/engine-install`")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._kind_file.write_text(f"{program.name}\n", "ascii")
        command = [*self._enter, *_IN_ROOT_CGROUP, path, "--group", "root"]
        more = {program.folder_variable: str(self.folder)}
        if shown:
            more[program.templates_variable] = str(self.lxcfs.templates)
        appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawnp(
            command[0],
            command,
            {**os.environ, **more},
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, self._log, appended, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ),
            setsid=True,  # it outlives this process, and signals from our terminal do not reach it
        )
        self._pid_file.write_text(f"{pid}\n", "ascii")
        return pid

    def _wait_ready(self, pid: int) -> None:
        # There is no notification when the socket appears. Count attempts, so that no clock is needed.
        for _ in range(int(READY_SECONDS_MAX / LOOK_AGAIN_SECONDS)):
            if answers(self.socket_path):
                return
            if not _lives(pid):
                break
            time.sleep(LOOK_AGAIN_SECONDS)
        raise errors.down(f"See the end of {self._log}")

    def _end(self, how: signal.Signals) -> None:
        pid = self.pid()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)
        for _ in range(int(STOP_SECONDS_MAX / LOOK_AGAIN_SECONDS)):
            if not _lives(pid):
                self._pid_file.unlink(missing_ok=True)
                return
            time.sleep(LOOK_AGAIN_SECONDS)
        raise Unavailable("The container engine did not stop", context={"pid": pid})


def _process(pid: int, name: str) -> int:
    """Return the daemon itself. The command that enters a process namespace stays as its parent and forwards
    no signal."""
    process = Path(f"/proc/{pid}")
    if (process / "comm").read_text("utf-8").strip() == name:
        return pid
    children = (process / "task" / str(pid) / "children").read_text("ascii").split()
    return _process(int(children[0]), name) if children else pid


def _lives(pid: int) -> bool:
    """Check whether a process is alive. A zombie is dead; if it is our child, this also reaps it."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
