"""Tries common container escapes from inside a guest, and prints the result of each as JSON.

It is copied into a guest and run there with the guest's own Python. It uses only the standard library and
leaves nothing behind. `allowed` means that an attempt succeeded; `refused: …` gives the kernel's answer.
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import pathlib
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER = 0x10000000
HIGH_BIT = 1 << 32
SUBVOLUMES = {
    "create a subvolume": 0x5000940E,
    "create a subvolume (v2)": 0x50009418,
    "create a snapshot": 0x50009401,
    "create a snapshot (v2)": 0x50009417,
}
"""The btrfs ioctls that create data outside any disk limit."""
FOLDER = "/root"
MARK = "tera-probe-"


def main() -> None:
    found = {
        "keys": keys(),
        "disk": disk(),
        "surface": surface(),
        "reach": reach(sys.argv[1:]),
        "facts": facts(),
    }
    print(json.dumps(found))


def keys() -> dict[str, str]:
    kind, name = ctypes.create_string_buffer(b"user"), ctypes.create_string_buffer(b"tera-probe")
    process_keyring = ctypes.c_long(-2)  # removed together with the child process
    return {
        "read a keyring": call(250, 0, ctypes.c_long(-4), 1),
        "add a key": in_a_child(lambda: call(248, kind, name, name, 4, process_keyring)),
        "request a key": call(249, kind, name, None, process_keyring),
    }


def disk() -> dict[str, str]:
    found = {}
    where = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY)
    for what, number in SUBVOLUMES.items():
        found[what] = in_a_child(partial(ioctl, where, number, what))
        found[f"{what}, high bit set"] = in_a_child(partial(ioctl, where, number | HIGH_BIT, what))
        found[f"{what}, by the 32-bit door"] = in_a_child(partial(ioctl_of_32_bits, where, number, what))
    os.close(where)
    for left in pathlib.Path(FOLDER).glob(f"{MARK}*"):
        with contextlib.suppress(OSError):
            left.rmdir()
    return found


def surface() -> dict[str, str]:
    buffer = ctypes.create_string_buffer(256)
    flags = (ctypes.c_uint64 * 11)(NEW_USER, 0, 0, 0, signal.SIGCHLD)
    return {
        "io_uring": call(425, 4, buffer),
        "bpf": call(321, 0, buffer, 72),
        "user namespace by unshare": in_a_child(lambda: call(272, NEW_USER)),
        "user namespace by clone": in_a_child(lambda: call(56, NEW_USER | signal.SIGCHLD, 0, 0, 0, 0)),
        "user namespace by clone3": in_a_child(lambda: call(435, flags, 88)),
    }


def reach(targets: list[str]) -> dict[str, str]:
    """Check whether anything answers at `address:port`, even with a refusal."""
    found = {}
    for target in targets:
        host, _, port = target.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            found[target] = "allowed"
        except ConnectionRefusedError:
            found[target] = "allowed"
        except OSError as error:
            found[target] = f"refused: {errno.errorcode.get(error.errno or 0, 'silence')}"
    return found


def facts() -> dict[str, str]:
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    profile = ""
    with contextlib.suppress(OSError):
        profile = pathlib.Path("/proc/self/attr/current").read_text().strip("\0\n ")
    return {
        "ids": " ".join(pathlib.Path("/proc/self/uid_map").read_text().split()),
        "seccomp": status.get("Seccomp", "").strip(),
        "AppArmor": profile,
        "cgroups": "v2" if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1",
    }


def call(number: int, *arguments: object) -> str:
    ctypes.set_errno(0)
    return outcome(LIBC.syscall(ctypes.c_long(number), *arguments), ctypes.get_errno())


def ioctl(where: int, number: int, what: str) -> str:
    return call(16, where, ctypes.c_ulong(number), arguments(where, what))


def ioctl_of_32_bits(where: int, number: int, what: str) -> str:
    """Call it as a 32-bit program would. 64-bit programs can also use this entry to the kernel."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # `int 0x80` takes its arguments in other registers.
    code.write(bytes.fromhex("53 89f8 89f3 87d1 cd80 5b c3"))
    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint] * 4)
    enter = function(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    LIBC.mmap.restype = ctypes.c_void_p
    below_4_gib = LIBC.mmap(None, ctypes.c_size_t(4096), 3, 0x62, -1, ctypes.c_long(0))
    ctypes.memmove(below_4_gib, arguments(where, what), 4096)
    result = enter(54, where, number, below_4_gib)
    return outcome(result, -result)


def arguments(where: int, what: str) -> ctypes.Array[ctypes.c_char]:
    """Build the arguments of a subvolume call: a descriptor first, a name at the end."""
    content = bytearray(4096)
    content[:8] = (where if "snapshot" in what else 0).to_bytes(8, "little")
    name = f"{MARK}{os.getpid()}".encode()
    place = 56 if "v2" in what else 8
    content[place : place + len(name)] = name
    return (ctypes.c_char * 4096).from_buffer(content)


def outcome(result: int, number: int) -> str:
    return "allowed" if result >= 0 else f"refused: {errno.errorcode.get(number, str(number))}"


def in_a_child(act: Callable[[], str]) -> str:
    """Run in a child process what may end the process or change it permanently."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, act().encode())
        finally:
            os._exit(0)
    os.close(writing)
    output = os.read(reading, 200).decode()
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    return output or f"refused: {signal.Signals(os.WTERMSIG(status)).name}"


if __name__ == "__main__":
    main()
