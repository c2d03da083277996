"""The engine's own process: finds the one that is there, or starts and stops one of ours.

An engine found is used as it is and never stopped. One of ours lives in a folder of its own (`LXD_DIR`), needs no
systemd, and comes back after `kill -9` with the same folder, whether its guests survived or not.
"""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.drivers.lxd import errors
from teraflock.drivers.lxd.rest import Client

KNOWN_SOCKETS: Final = (
    Path("/var/lib/incus/unix.socket"),
    Path("/var/snap/lxd/common/lxd/unix.socket"),
    Path("/var/lib/lxd/unix.socket"),
)
READY_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 60
LOOK_AGAIN_SECONDS: Final = 0.05


class NoEngine(Unavailable):
    code = "no_engine"


def find(environment: Mapping[str, str], known: Sequence[Path] = KNOWN_SOCKETS) -> Path | None:
    """The socket of an engine that answers: the one the environment names, else one in a usual place."""
    for variable in ("INCUS_DIR", "LXD_DIR"):
        if environment.get(variable):
            return Path(environment[variable]) / "unix.socket"
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
    """An LXD of our own. `enter` is put before its command, for a daemon that lives in namespaces of its own."""

    def __init__(self, folder: Path, *, enter: Sequence[str] = ()) -> None:
        self.folder = folder
        self.socket_path = folder / "unix.socket"
        self._enter = tuple(enter)
        self._pid_file = folder.with_name(folder.name + ".pid")
        self._log = folder.with_name(folder.name + ".log")

    def ensure(self) -> None:
        """Start it unless it runs; return once it answers."""
        if answers(self.socket_path):
            return
        self._wait_ready(self.pid() or self._spawn())

    def pid(self) -> int | None:
        """The process's id, if it lives and is the one we started."""
        try:
            pid = _program(int(self._pid_file.read_text("ascii")))
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if b"LXD_DIR=" + os.fsencode(self.folder) in environment else None

    def stop(self) -> None:
        """End the daemon and all its guests."""
        self._end(signal.SIGPWR)  # LXD takes it for a power cut announced: guests first, then itself

    def stop_daemon_alone(self) -> None:
        """End the daemon; its guests run on and are found again by the next one."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the daemon without a word, as a crash would."""
        self._end(signal.SIGKILL)

    def _spawn(self) -> int:
        program = shutil.which("lxd")
        if program is None:
            raise NoEngine("LXD is not installed", hint="As root: `sh scripts/engine-install`")
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [*self._enter, program, "--group", "root"]
        appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawnp(
            command[0],
            command,
            {**os.environ, "LXD_DIR": str(self.folder)},
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


def _program(pid: int) -> int:
    """The daemon itself: what enters a namespace of processes stays behind as its parent, and passes no signal on."""
    process = Path(f"/proc/{pid}")
    if (process / "comm").read_text("utf-8").strip() == "lxd":
        return pid
    children = (process / "task" / str(pid) / "children").read_text("ascii").split()
    return _program(int(children[0])) if children else pid


def _lives(pid: int) -> bool:
    """A zombie is dead; one that is our own child is taken off the list by asking for its end."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
