"""Shows guests of our own daemon their share of the host: without lxcfs, `free` and /proc/cpuinfo show the
whole host.

lxcfs is a file system in a process. Each of our daemons has one, mounted next to its folder, and an LXC
configuration whose hook mounts its files over the guest's /proc. Invariants:
- lxcfs is optional: if it is not installed or does not start, guests run and see the host's numbers;
- it is never killed, because guests would lose /proc/meminfo. Instead it is unmounted, and the process ends
  when the last guest that uses it is gone;
- a crashed lxcfs is replaced at the next `ensure`. Guests that were running get their files back at their
  next start.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ASK_SECONDS_MAX: Final = 10
LOOKS_MAX: Final = 60
LOOK_AGAIN_SECONDS: Final = 0.05
_FAILED: Final = subprocess.CompletedProcess[bytes]((), 1)

HOOK: Final = """\
#!/bin/sh
# LXC runs this inside the mounts of a new guest, before it starts. The files are optional.
root=$(readlink -f "$LXC_ROOTFS_MOUNT")
for path in proc sys/devices/system/cpu; do
    for file in "${0%.lxc/show-share}.lxcfs/$path"/*; do
        [ -f "$file" ] && [ -f "$root/$path/${file##*/}" ] && mount -n --bind "$file" "$root/$path/${file##*/}"
    done
done
exit 0
"""


class Lxcfs:
    """The lxcfs of the daemon in `folder`. `enter` is a prefix for every command, as for the daemon."""

    def __init__(self, folder: Path, *, enter: Sequence[str] = ()) -> None:
        self.mount = folder.with_name(f"{folder.name}.lxcfs")
        self.templates = folder.with_name(f"{folder.name}.lxc")
        """The folder that LXC reads instead of /usr/share/lxc/config."""
        self._pid_file = folder.with_name(f"{folder.name}.lxcfs.pid")
        self._enter = tuple(enter)

    def ensure(self) -> bool:
        """Start it unless it answers. Return False if it is unavailable."""
        program = shutil.which("lxcfs")
        if self.answers():
            return True
        if program is None or not Path("/dev/fuse").exists():
            return False
        self._write_hook()
        self.stop()  # a crash leaves a mount that does not answer
        self.mount.mkdir(mode=0o755, exist_ok=True)
        self._spawn(program)
        for _ in range(LOOKS_MAX):  # counts attempts, so that no clock is needed
            if self.answers():
                return True
            time.sleep(LOOK_AGAIN_SECONDS)
        return False

    def answers(self) -> bool:
        return self._run("test", "-f", str(self.mount / "proc" / "meminfo")).returncode == 0

    def stop(self) -> None:
        self._run("umount", "--lazy", str(self.mount))
        self._pid_file.unlink(missing_ok=True)

    def _spawn(self, program: str) -> None:
        command = [*self._enter, program, "-f", "-p", str(self._pid_file), str(self.mount)]
        silent = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        )
        # It outlives this process, and signals from our terminal do not reach it.
        os.posix_spawnp(command[0], command, os.environ, file_actions=silent, setsid=True)

    def _write_hook(self) -> None:
        hook, settings = self.templates / "show-share", self.templates / "common.conf.d"
        settings.mkdir(parents=True, exist_ok=True)
        hook.write_text(HOOK, "ascii")
        for path in (self.templates, settings, hook):
            path.chmod(0o755)  # regardless of the umask: the guest's root runs it
        (settings / "lxcfs.conf").write_text(f"lxc.hook.mount = {hook}\n", "utf-8")

    def _run(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [*self._enter, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=ASK_SECONDS_MAX,
            )
        except (OSError, subprocess.TimeoutExpired):
            return _FAILED
