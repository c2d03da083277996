"""Settings that isolate a guest from the host and from other guests, as keys of its configuration. Pure.

Each guest has its own range of user ids, and some system calls are denied. Arguments are compared under a
mask: the kernel reads only 32 bits of an `ioctl` number and single bits of `clone` flags, so setting another
bit would bypass an exact comparison. The rules apply to every ABI of the processor, 32-bit programs included.
"""

from typing import Final

import msgspec

from teraflock.drivers.lxd import ids

_ALWAYS: Final = (
    # Kernel keys are shared by user id, and guests do not need them.
    "keyctl errno 38",
    "add_key errno 38",
    "request_key errno 38",
    # The ioctls of btrfs: a subvolume created in a guest has no disk limit. Reflink copies fall back to plain
    # ones.
    "ioctl errno 1 [1,0x9400,SCMP_CMP_MASKED_EQ,0xff00]",
)
_USER_NAMESPACES: Final = (
    "unshare errno 1 [0,0x10000000,SCMP_CMP_MASKED_EQ,0x10000000]",
    "clone errno 1 [0,0x10000000,SCMP_CMP_MASKED_EQ,0x10000000]",
    "clone3 errno 38",  # its flags are in memory, where no filter can read them; programs fall back to `clone`
)
_IO_URING: Final = ("io_uring_setup errno 38", "io_uring_enter errno 38", "io_uring_register errno 38")
_BPF: Final = ("bpf errno 1",)


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the kernel that guests may use, although container escapes have used them before."""

    user_namespaces: bool = False
    io_uring: bool = False
    bpf: bool = False


CLOSED: Final = Surface()


def settings(index: int, surface: Surface = CLOSED) -> dict[str, str]:
    """Return the settings for a guest. `index` is that of its range of user ids."""
    return {
        "security.nesting": "false",
        "security.privileged": "false",
        "security.idmap.isolated": "true",
        "security.idmap.size": str(ids.SIZE),
        "security.idmap.base": str(ids.base(index)),
        "security.syscalls.deny_default": "true",
        "security.syscalls.deny": "\n".join(denied(surface)),
    }


def denied(surface: Surface) -> tuple[str, ...]:
    return (
        *_ALWAYS,
        *(() if surface.user_namespaces else _USER_NAMESPACES),
        *(() if surface.io_uring else _IO_URING),
        *(() if surface.bpf else _BPF),
    )
