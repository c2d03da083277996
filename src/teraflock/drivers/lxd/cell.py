"""Starts a program without rights, in a root that has only the program, its libraries and one folder.

Run in the network namespace of a project:

    python -m teraflock.drivers.lxd.cell UID FOLDER SHARE PROGRAM ARGUMENT…

The program sees its libraries, /dev/null, and `cell` in FOLDER as /cell. It can write only to /cell/run. It has its own
user and no capabilities, gets none by executing anything, and its files, processes and memory are limited. SHARE is the
file of a cgroup, which limits its processor time, or `-`. This module uses only the standard library, so that it starts
quickly.
"""

import ctypes
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

NEW_MOUNTS, NEW_IPC, NEW_NAMES = 0x00020000, 0x08000000, 0x04000000
READ_ONLY, NO_SUID, NO_DEVICES, NO_PROGRAMS, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
RECURSIVE, PRIVATE = 16384, 1 << 18
NO_NEW_PRIVILEGES, DROP_FROM_BOUND, SET_SECURE_BITS, CLEAR_AMBIENT = 38, 24, 28, (47, 4)
CAPABILITIES_MAX: Final = 63
NO_ROOT_LOCKED: Final = 0x2B
"""`SECBIT_NOROOT` and the locks of all flags: user 0 would have no capabilities either."""
LIMITS: Final = {
    resource.RLIMIT_NOFILE: 8192,
    resource.RLIMIT_NPROC: 64,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_AS: 1 << 30,
    resource.RLIMIT_FSIZE: 1 << 24,
    resource.RLIMIT_MEMLOCK: 0,
}
LIBRARY: Final = re.compile(r"(?:^|\s)(/[^\s]+)(?=\s\(0x)")
_libc = ctypes.CDLL(None, use_errno=True)


def main(words: list[str]) -> None:
    user, folder, share, program, *arguments = words
    if share != "-":
        Path(share).write_text("0", "ascii")  # this process, and all that it starts
    files = [program, *libraries(program)]
    _call(_libc.unshare(NEW_MOUNTS | NEW_IPC | NEW_NAMES), "unshare")
    _mount("none", "/", "", RECURSIVE | PRIVATE)
    root = build_root(Path(folder), files)
    os.chroot(root)
    os.chdir("/")
    drop_rights(int(user))
    os.execve(program, [program, *arguments], {"PATH": "/usr/sbin:/usr/bin"})  # noqa: S606


def libraries(program: str) -> list[str]:
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    return LIBRARY.findall(done.stdout)


def build_root(folder: Path, files: list[str]) -> Path:
    """Assemble the new root, over the empty folder `root` in `folder`, seen by this process only."""
    root = folder / "root"
    _mount("none", str(root), "tmpfs", NO_SUID | NO_DEVICES, b"size=1m,mode=755")
    for each in files:
        _bind(Path(each).resolve(), root / each[1:], READ_ONLY | NO_SUID | NO_DEVICES)
    _bind(Path("/dev/null"), root / "dev/null", NO_SUID | NO_PROGRAMS)
    (root / "cell").mkdir()
    _mount(str(folder / "cell"), str(root / "cell"), "", BIND)
    _mount("none", str(root / "cell"), "", REMOUNT | BIND | NO_SUID | NO_DEVICES | NO_PROGRAMS)
    _mount("none", str(root), "", REMOUNT | BIND | READ_ONLY | NO_SUID | NO_DEVICES)
    return root


def drop_rights(user: int) -> None:
    """A process that leaves user 0 loses its capabilities; the rest makes sure that it never gets one again."""
    for kind, most in LIMITS.items():
        resource.setrlimit(kind, (most, most))
    for number in range(CAPABILITIES_MAX + 1):
        _libc.prctl(DROP_FROM_BOUND, number, 0, 0, 0)  # fails for numbers that the kernel does not have
    _call(_libc.prctl(SET_SECURE_BITS, NO_ROOT_LOCKED, 0, 0, 0), "securebits")
    _call(_libc.prctl(*CLEAR_AMBIENT, 0, 0, 0), "ambient")
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _call(_libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    os.umask(0o077)


def _bind(source: Path, target: Path, flags: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch()
    _mount(str(source), str(target), "", BIND)
    _mount("none", str(target), "", REMOUNT | BIND | flags)


def _mount(source: str, target: str, kind: str, flags: int, data: bytes = b"") -> None:
    done = _libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, data or None)
    _call(done, f"mount {target}")


def _call(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


if __name__ == "__main__":
    main(sys.argv[1:])
