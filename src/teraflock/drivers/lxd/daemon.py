"""The engine's own process: finds the one that is there, or starts and stops one of ours.

An engine found is used as it is and never stopped. One of ours lives in a folder of its own (`LXD_DIR`, `INCUS_DIR`),
needs no systemd, and comes back after `kill -9` with the same folder, whether its guests survived or not. Which of the
two programs a folder belongs to is noted beside it: neither can read what the other wrote.
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
from teraflock.drivers.lxd.rest import Client

KNOWN_SOCKETS: Final = (
    Path("/var/lib/incus/unix.socket"),
    Path("/var/snap/lxd/common/lxd/unix.socket"),
    Path("/var/lib/lxd/unix.socket"),
)
_AT_THE_TOP: Final = (
    "sh",
    "-c",
    '[ ! -e "$0/cgroup.controllers" ] || echo $$ >"$0/cgroup.procs"; exec "$@"',
    "/sys/fs/cgroup",
)
"""Put before the daemon's words. With cgroups v2 it must stand at their top: below, where whoever calls us happens to
be, limits on processors or memory may not be had, and it then leaves them out without a word."""
READY_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 60
LOOK_AGAIN_SECONDS: Final = 0.05


class NoEngine(Unavailable):
    """LXD or Incus is not installed, or did not start."""

    code = "no_engine"
    remedy = "Run `make up` as root. `tera doctor` says what is missing."


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two engines, as far as their processes differ; over the socket they are one."""

    title: str
    name: str
    """Of the program, and of its process."""
    folder_variable: str
    templates_variable: str
    folders: tuple[str, ...] = ()
    """Where packages put it, besides the search path."""

    def path(self) -> str | None:
        """Where it is installed."""
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
    folders=("/usr/libexec/incus", "/opt/incus/bin"),  # Debian's and Ubuntu's package, the authors' own
)
PROGRAMS: Final = (LXD, INCUS)


def installed() -> Program | None:
    """What a new daemon of ours would be."""
    return next((program for program in PROGRAMS if program.path()), None)


def find(environment: Mapping[str, str], known: Sequence[Path] = KNOWN_SOCKETS) -> Path | None:
    """The socket of an engine that answers: the one the environment names, else one in a usual place."""
    for program in (INCUS, LXD):
        if environment.get(program.folder_variable):
            return Path(environment[program.folder_variable]) / "unix.socket"
    return next((path for path in known if answers(path)), None)


def answers(socket_path: Path) -> bool:
    """Somebody speaks our kind of REST there, and trusts us."""
    client = Client(socket_path)
    try:
        return bool(client.get().get("auth") == "trusted")
    except TeraflockError:
        return False
    finally:
        client.close()


class Daemon:
    """An engine of our own. `enter` is put before its command, for a daemon that lives in namespaces of its own."""

    def __init__(self, folder: Path, *, enter: Sequence[str] = (), program: Program | None = None) -> None:
        """`program` is what a folder that is still empty shall belong to; without it, what is installed."""
        self.folder = folder
        self.socket_path = folder / "unix.socket"
        self.lxcfs = Lxcfs(folder, enter=enter)
        self._enter = tuple(enter)
        self._wish = program
        self._kind_file = folder.with_name(folder.name + ".kind")
        self._pid_file = folder.with_name(folder.name + ".pid")
        self._log = folder.with_name(folder.name + ".log")

    def program(self) -> Program | None:
        """What this folder belongs to, or will; None where nothing is installed."""
        try:
            noted = self._kind_file.read_text("ascii").strip()
        except OSError:
            # A folder without a note is from before there were notes, and LXD's.
            return self._wish or (LXD if self.folder.exists() else installed())
        return next((program for program in PROGRAMS if program.name == noted), None)

    def ensure(self) -> None:
        """Start it unless it runs; return once it answers."""
        shown = self.lxcfs.ensure()
        if answers(self.socket_path):
            return
        self._wait_ready(self.pid() or self._spawn(shown=shown))

    def pid(self) -> int | None:
        """The process's id, if it lives and is the one we started."""
        program = self.program()
        try:
            pid = _process(int(self._pid_file.read_text("ascii")), program.name if program else "")
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        folder = os.fsencode(f"{program.folder_variable}={self.folder}") if program else b""
        return pid if folder in environment else None

    def was_started(self) -> bool:
        """Whether we started it and nobody stopped it in order: one that died leaves its note behind."""
        return self._pid_file.exists()

    def stop(self) -> None:
        """End the daemon and all its guests."""
        self._end(signal.SIGPWR)  # both take it for a power cut announced: guests first, then itself
        self.lxcfs.stop()

    def stop_daemon_alone(self) -> None:
        """End the daemon; its guests run on and are found again by the next one."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the daemon without a word, as a crash would."""
        self._end(signal.SIGKILL)

    def _spawn(self, *, shown: bool) -> int:
        program = self.program()
        path = program.path() if program else None
        if program is None or path is None:
            title = program.title if program else "LXD"
            raise NoEngine(f"{title} is not installed", hint="As root: `sh scripts/engine-install`")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._kind_file.write_text(f"{program.name}\n", "ascii")
        command = [*self._enter, *_AT_THE_TOP, path, "--group", "root"]
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
            setsid=True,  # it outlives us, and no key pressed on our terminal reaches it
        )
        self._pid_file.write_text(f"{pid}\n", "ascii")
        return pid

    def _wait_ready(self, pid: int) -> None:
        # Nothing tells when the socket appears; how long is counted in looks, so that no clock is asked.
        for _ in range(int(READY_SECONDS_MAX / LOOK_AGAIN_SECONDS)):
            if answers(self.socket_path):
                return
            if not _lives(pid):
                break
            time.sleep(LOOK_AGAIN_SECONDS)
        raise errors.down(f"see the end of {self._log}")

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
        raise Unavailable("The container engine does not stop", context={"pid": pid})


def _process(pid: int, name: str) -> int:
    """The daemon itself: what enters a namespace of processes stays behind as its parent, and passes no signal on."""
    process = Path(f"/proc/{pid}")
    if (process / "comm").read_text("utf-8").strip() == name:
        return pid
    children = (process / "task" / str(pid) / "children").read_text("ascii").split()
    return _process(int(children[0]), name) if children else pid


def _lives(pid: int) -> bool:
    """A zombie is dead; one that is our own child is taken off the list by asking for its end."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
