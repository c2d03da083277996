"""Lets guests of our own daemon see their share of the host: without it `free` and /proc/cpuinfo show all of it.

lxcfs is a file system in a process. Each daemon of ours has one, mounted beside its folder, and a configuration for LXC
whose hook lays its files over the guest's /proc. What holds:
- nothing depends on it: where it is not installed or does not come up, guests run and see the host's numbers;
- it is never killed. Guests lose /proc/meminfo with it, so its mount is taken away instead, and its process ends by
  itself once the last guest that uses it is gone;
- one that died is replaced at the next `ensure`; guests that ran then get theirs back when they are started again.
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
# Run by LXC inside a new guest's mounts, before it starts. A guest without these files is still a guest.
root=$(readlink -f "$LXC_ROOTFS_MOUNT")
for path in proc sys/devices/system/cpu; do
    for file in "${0%.lxc/show-share}.lxcfs/$path"/*; do
        [ -f "$file" ] && [ -f "$root/$path/${file##*/}" ] && mount -n --bind "$file" "$root/$path/${file##*/}"
    done
done
exit 0
"""


class Lxcfs:
    """The one of the daemon in `folder`. `enter` is put before every command, as for the daemon."""

    def __init__(self, folder: Path, *, enter: Sequence[str] = ()) -> None:
        self.mount = folder.with_name(f"{folder.name}.lxcfs")
        self.templates = folder.with_name(f"{folder.name}.lxc")
        """What LXC reads instead of /usr/share/lxc/config."""
        self._pid_file = folder.with_name(f"{folder.name}.lxcfs.pid")
        self._enter = tuple(enter)

    def ensure(self) -> bool:
        """Start it unless it answers. False where there is none to be had."""
        program = shutil.which("lxcfs")
        if self.answers():
            return True
        if program is None or not Path("/dev/fuse").exists():
            return False
        self._write_hook()
        self.stop()  # one that died leaves a mount that answers nobody
        self.mount.mkdir(mode=0o755, exist_ok=True)
        self._spawn(program)
        for _ in range(LOOKS_MAX):  # counted in looks, so that no clock is asked
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
        # It outlives us, and no key pressed on our terminal reaches it.
        os.posix_spawnp(command[0], command, os.environ, file_actions=silent, setsid=True)

    def _write_hook(self) -> None:
        hook, settings = self.templates / "show-share", self.templates / "common.conf.d"
        settings.mkdir(parents=True, exist_ok=True)
        hook.write_text(HOOK, "ascii")
        for path in (self.templates, settings, hook):
            path.chmod(0o755)  # whatever the umask: it is the guest's root who runs it
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
