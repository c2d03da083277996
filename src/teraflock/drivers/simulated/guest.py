"""The inside of a simulated guest: a few programs and a disk that is a mapping. All pure.

Other programs do not exist, and the guest's message says that it is simulated.
"""

import base64
import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.quantities import parse_memory_bytes
from teraflock.drivers.simulated.model import Guest, SimulatedDisk
from teraflock.instance.driver import FileKind, GuestFile, Machine, Ran

NOT_FOUND: Final = 127
CUT_OFF: Final = 124  # same as `timeout` and the real engines
"""Exit code of a program that was killed because it took too long."""
SEQ_MAX: Final = 2_000_000
KEY_HEAD: Final = bytes.fromhex("0000000b7373682d6564323535313900000020")
"""The first bytes of every ed25519 public key."""


class GuestDone(msgspec.Struct, frozen=True):
    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    files: Mapping[str, bytes] | None = None
    """The disk's files, if the program changed them."""
    written_bytes: int = 0
    sent_bytes: int = 0
    """Sent out of the host."""

    @property
    def changes_anything(self) -> bool:
        return self.files is not None or bool(self.written_bytes or self.sent_bytes)


Program = Callable[[Machine, Mapping[str, bytes], Sequence[str], bytes], GuestDone]


def execute(machine: Machine, disk: SimulatedDisk, command: Sequence[str], stdin: bytes) -> GuestDone:
    program = PROGRAMS.get(command[0].rpartition("/")[2]) if command else None
    if program is None:
        known = ", ".join(PROGRAMS)
        return GuestDone(NOT_FOUND, stderr=f"simulated guest: no such program; available: {known}\n".encode())
    files = {**disk.mounted, **disk.files} if program is _cat else disk.files
    return program(machine, files, command[1:], stdin)


def run_script(machine: Machine, disk: SimulatedDisk, script: str) -> GuestDone:
    """Run a script line by line, whatever its interpreter. `exit N` ends it."""
    code, output, files = 0, b"", disk.files
    written = sent = 0
    for line in script.splitlines():
        words = [] if line.startswith("#") else shlex.split(line)
        if words[:1] == ["exit"]:
            return GuestDone(
                int(words[1]) if len(words) > 1 else code, output, b"", 0.0, files, written, sent
            )
        if words:
            done = execute(machine, msgspec.structs.replace(disk, files=files), words, b"")
            code, output = done.exit_code, output + done.stdout + done.stderr
            files = files if done.files is None else done.files
            written, sent = written + done.written_bytes, sent + done.sent_bytes
    return GuestDone(code, output, b"", 0.0, files, written, sent)


def entry(machine: Machine, disk: SimulatedDisk, path: str) -> GuestFile | None:
    """Return a file of the disk, or a folder if other paths contain it."""
    held = {**_given(machine), **disk.mounted, **disk.files}
    if path in held:
        return GuestFile(kind=FileKind.FILE, size_bytes=len(held[path]), content=iter((held[path],)))
    below = path.rstrip("/") + "/"
    names = {name.removeprefix(below).partition("/")[0] for name in held if name.startswith(below)}
    return GuestFile(kind=FileKind.FOLDER, mode=0o755, names=tuple(sorted(names))) if names else None


def after(found: Guest, done: GuestDone) -> Guest:
    """Return the guest after a program."""
    disk = msgspec.structs.replace(
        found.disk,
        files=found.disk.files if done.files is None else done.files,
        own_bytes=found.disk.own_bytes + done.written_bytes,
    )
    return msgspec.structs.replace(found, disk=disk, sent_bytes=found.sent_bytes + done.sent_bytes)


def ran(done: GuestDone, seconds_max: float) -> Ran:
    if done.seconds > seconds_max:
        return Ran(exit_code=CUT_OFF, stdout=b"", stderr=b"", timed_out=True)
    return Ran(exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr)


def host_key(instance_id: str) -> str:
    """Return a well-formed key without a private part."""
    digest = hashlib.sha256(f"simulated {instance_id}".encode()).digest()
    return f"ssh-ed25519 {base64.b64encode(KEY_HEAD + digest).decode()}"


def _true(_machine: Machine, _files: Mapping[str, bytes], _words: Sequence[str], _stdin: bytes) -> GuestDone:
    return GuestDone()


def _false(_machine: Machine, _files: Mapping[str, bytes], _words: Sequence[str], _stdin: bytes) -> GuestDone:
    return GuestDone(1)


def _echo(_machine: Machine, _files: Mapping[str, bytes], words: Sequence[str], _stdin: bytes) -> GuestDone:
    return GuestDone(stdout=f"{' '.join(words)}\n".encode())


def _hostname(
    machine: Machine, _files: Mapping[str, bytes], _words: Sequence[str], _stdin: bytes
) -> GuestDone:
    return GuestDone(stdout=f"{machine.hostname}\n".encode())


def _nproc(machine: Machine, _files: Mapping[str, bytes], _words: Sequence[str], _stdin: bytes) -> GuestDone:
    return GuestDone(stdout=f"{machine.vcpus}\n".encode())


def _nvidia_smi(
    machine: Machine, _files: Mapping[str, bytes], _words: Sequence[str], _stdin: bytes
) -> GuestDone:
    lines = [f"GPU {place}: simulated ({gpu.slot})\n" for place, gpu in enumerate(machine.gpus)]
    return (
        GuestDone(stdout="".join(lines).encode())
        if lines
        else GuestDone(9, stderr=b"No devices were found\n")
    )


def _printenv(
    machine: Machine, _files: Mapping[str, bytes], _words: Sequence[str], _stdin: bytes
) -> GuestDone:
    lines = [f"{name}={value}\n" for name, value in machine.environment.items()]
    return GuestDone(stdout="".join(lines).encode())


def _cat(machine: Machine, files: Mapping[str, bytes], words: Sequence[str], stdin: bytes) -> GuestDone:
    if not words:
        return GuestDone(stdout=stdin)
    held = {**_given(machine), **files}
    missing = [name for name in words if name not in held]
    errors = "".join(f"cat: {name}: No such file or directory\n" for name in missing)
    text = b"".join(held[name] for name in words if name in held)
    return GuestDone(int(bool(missing)), text, errors.encode())


def _tee(_machine: Machine, files: Mapping[str, bytes], words: Sequence[str], stdin: bytes) -> GuestDone:
    written = len(stdin) * len(words)
    return GuestDone(stdout=stdin, files={**files, **dict.fromkeys(words, stdin)}, written_bytes=written)


def _rm(_machine: Machine, files: Mapping[str, bytes], words: Sequence[str], _stdin: bytes) -> GuestDone:
    missing = [name for name in words if name not in files and not name.startswith("-")]
    errors = "".join(f"rm: cannot remove '{name}': No such file or directory\n" for name in missing)
    left = {name: content for name, content in files.items() if name not in words}
    return GuestDone(int(bool(missing)), stderr=errors.encode(), files=left)


def _sleep(_machine: Machine, _files: Mapping[str, bytes], words: Sequence[str], _stdin: bytes) -> GuestDone:
    try:
        return GuestDone(seconds=float(words[0]))
    except (IndexError, ValueError):
        return GuestDone(1, stderr=b"sleep: how long?\n")


def _send(_machine: Machine, _files: Mapping[str, bytes], words: Sequence[str], _stdin: bytes) -> GuestDone:
    """Pretend to send data out of the host: `send 5GB`, or a number of bytes."""
    size = _size(words)
    return GuestDone(sent_bytes=size) if size is not None else GuestDone(1, stderr=b"send: how much?\n")


def _fill(_machine: Machine, _files: Mapping[str, bytes], words: Sequence[str], _stdin: bytes) -> GuestDone:
    """Pretend to write this many bytes to the disk."""
    size = _size(words)
    return (
        GuestDone(written_bytes=size) if size is not None else GuestDone(1, stderr=b"fill: with how much?\n")
    )


def _seq(_machine: Machine, _files: Mapping[str, bytes], words: Sequence[str], _stdin: bytes) -> GuestDone:
    """Print the numbers up to the given one."""
    last = _size(words)
    if last is None or last > SEQ_MAX:
        return GuestDone(1, stderr=b"seq: up to which number?\n")
    return GuestDone(stdout="".join(f"{number}\n" for number in range(1, last + 1)).encode())


def _size(words: Sequence[str]) -> int | None:
    text = words[0] if words else ""
    if text.isdecimal():
        return int(text)
    try:
        return parse_memory_bytes(text)
    except BadInput:
        return None


def _given(machine: Machine) -> dict[str, bytes]:
    """Return the files that every guest has from its start."""
    keys = "".join(f"{key}\n" for key in machine.authorized_keys)
    return {
        "/etc/hostname": f"{machine.hostname}\n".encode(),
        "/root/.ssh/authorized_keys": keys.encode(),
        "/etc/teraflock/user-data": machine.user_data.encode(),
    }


PROGRAMS: Final[Mapping[str, Program]] = {
    "true": _true,
    "false": _false,
    "echo": _echo,
    "cat": _cat,
    "tee": _tee,
    "rm": _rm,
    "sleep": _sleep,
    "hostname": _hostname,
    "nproc": _nproc,
    "printenv": _printenv,
    "nvidia-smi": _nvidia_smi,
    "send": _send,
    "fill": _fill,
    "seq": _seq,
}
