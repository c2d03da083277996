"""The program that the server runs in a guest, as `python3 -c SOURCE VERB …`. Only the standard library, Python 3.9+.

Nothing of it stays running except the supervisor of `start`, which waits for the program and records its exit code.

    receive KEY OFFSET      append stdin to the incoming file of KEY, which has OFFSET bytes
    unpack KEY FOLDER HOW   extract the incoming tar; HOW is `replace` (empty the folder first) or `add`
    start KEY               start the program that stdin describes, once: a second call changes nothing
    state KEY OFFSET MAX    a JSON line with the state, then the log from OFFSET
    list FOLDER             the entries of a folder as JSON: name, mark, size, number of files, and its times
    special FOLDER          the paths of pipes, sockets and devices below a folder, as JSON
    signal KEY NUMBER       send a signal to the program and its children
    pack KEY PATH           make a tar of a file or folder; its size and SHA-256 as JSON
    push KEY                send that tar to the address on stdin
    fetch KEY SHA256        make what is at the address on stdin the incoming file of KEY
"""

import contextlib
import ctypes
import hashlib
import heapq
import itertools
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

BASE = Path(os.environ.get("TERA_RUN_BASE", "/var/lib/teraflock/runs"))
SPARE = Path(os.environ.get("TERA_RUN_SPARE", "/run/teraflock-runs"))
"""In memory: where exit codes are if the disk is full."""
PROGRESS_BYTES_MAX = 4096
ENTRIES_MAX = 1000
SECONDS_MAX = 120
LIBC = ctypes.CDLL(None)
CONTENT = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
AT_FDCWD, AT_SYMLINK_NOFOLLOW, STATX_BTIME = -100, 0x100, 0x800
Mark = tuple[str, int, int, int]


def receive(key: str, offset: str) -> None:
    BASE.mkdir(parents=True, exist_ok=True)
    path = _incoming(key)
    if (path.stat().st_size if path.exists() else 0) < int(offset):
        sys.exit("the incoming file is shorter than expected")
    with path.open("ab") as file:
        file.truncate(int(offset))
        shutil.copyfileobj(sys.stdin.buffer, file)


def unpack(key: str, folder: str, how: str) -> None:
    if how == "replace":
        shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tarfile.open(_incoming(key)) as archive:
        archive.extractall(folder)  # noqa: S202  # the tenant's own files, in the tenant's own guest
    _incoming(key).unlink()


def start(key: str) -> None:
    given = json.load(sys.stdin)
    for other in _older(key):  # an earlier attempt whose supervisor died
        _kill(other, signal.SIGKILL)
    BASE.mkdir(parents=True, exist_ok=True)
    folder = BASE / key
    try:
        folder.mkdir()
    except FileExistsError:
        return
    for each in given["folders"]:
        Path(each).mkdir(parents=True, exist_ok=True)
    for name, text in given["files"].items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    pid = os.fork()
    if pid == 0:
        _supervise(folder, given)
    _write(folder / "supervisor", f"{pid} {_started(pid)}")


def _supervise(folder: Path, given: dict[str, Any]) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    with (folder / "log").open("ab") as log:
        try:
            program = subprocess.Popen(
                given["command"],
                cwd=given["folder"],
                env={**os.environ, **given["environment"], "TERA_PROGRESS": str(folder / "progress")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            _write(folder / "group", str(program.pid))
            code = program.wait()
        except (OSError, ValueError) as error:
            log.write(f"the command cannot be run: {error}\n".encode())
            code = 126 if isinstance(error, PermissionError) else 127
    _write_exit(folder, str(code if code >= 0 else 128 - code))
    os._exit(0)


def state(key: str, offset: str, most: str) -> None:
    folder = BASE / key
    found: dict[str, Any] = {"state": "absent", "exit_code": None, "log_bytes": 0, "progress": ""}
    found["is_full"] = (SPARE / key).exists()
    if folder.is_dir():
        alive = _is_alive(folder)  # read before the exit code, which is written before the supervisor ends
        code = _exit_of(folder)
        found["state"] = "ended" if code else "running" if alive else "lost"
        found["exit_code"] = int(code) if code else None
        found["progress"] = _last_line(folder / "progress")
    chunk = b""
    with contextlib.suppress(OSError), (folder / "log").open("rb") as log:
        found["log_bytes"] = os.fstat(log.fileno()).st_size
        log.seek(int(offset))
        chunk = log.read(int(most))
    sys.stdout.buffer.write(json.dumps(found).encode() + b"\n" + chunk)


def entries(folder: str) -> None:
    """Only the newest: a program may write any number of them."""
    found: list[dict[str, Any]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as scanned:
        there = (each for each in scanned if _is_content(each) and not each.name.startswith("."))
        for each in sorted(heapq.nlargest(ENTRIES_MAX, there, key=_changed), key=lambda one: one.name):
            with contextlib.suppress(OSError):  # removed meanwhile, or not content
                found.append(_entry(Path(each.path)))
    json.dump(found, sys.stdout)


def _entry(path: Path) -> dict[str, Any]:
    """A rename is a change, so it is done when the last of its files changed."""
    every = sorted(path.rglob("*")) if path.is_dir() else [path]
    if any(each.is_fifo() or each.is_socket() for each in every if not each.is_symlink()):
        raise OSError("a pipe has no content, and whoever opens it waits")
    marks = [_mark(each, path) for each in every if not each.is_dir()]
    text = ";".join(":".join(map(str, mark)) for mark in marks)
    return {
        "name": _text(path.name),
        "mark": hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest(),
        "size_bytes": sum(mark[1] for mark in marks),
        "files": sum(not each.is_symlink() for each in {path, *every}),
        "begun_ns": min(map(_created_ns, [path, *every])),
        "written_ns": max([mark[2] for mark in marks], default=0),
        "done_ns": max(each.lstat().st_ctime_ns for each in [path, *every]),
    }


def special(folder: str) -> None:
    """Whoever opens one of these waits, or gets an error."""
    walked = (Path(at, name) for at, _, names in os.walk(folder) for name in names)
    found = (_text(str(path)) for path in walked if stat.S_IFMT(_mode(path)) not in CONTENT)
    json.dump(list(itertools.islice(found, ENTRIES_MAX)), sys.stdout)


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:  # removed meanwhile
        return stat.S_IFREG


def _text(name: str) -> str:
    """A name that JSON can have. Others are not UTF-8, and nothing can be opened by them."""
    return name.encode("utf-8", "replace").decode()


def _is_content(entry: "os.DirEntry[str]") -> bool:
    """Links, devices and pipes are not."""
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def _changed(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:  # removed meanwhile
        return 0


def send(key: str, number: str) -> None:
    _kill(BASE / key, int(number))


def pack(key: str, path: str) -> None:
    BASE.mkdir(parents=True, exist_ok=True)
    outgoing = _outgoing(key)
    with tarfile.open(outgoing, "w") as archive:
        archive.add(path, Path(path).name, filter=_plain)
    found = {"size_bytes": outgoing.stat().st_size, "digest": _digest(outgoing)}
    json.dump(found, sys.stdout)


def push(key: str) -> None:
    """The address is a credential: it comes on stdin, where no other process sees it."""
    outgoing = _outgoing(key)
    size = str(outgoing.stat().st_size)
    with outgoing.open("rb") as file:
        headers = {"Content-Length": size}
        request = urllib.request.Request(sys.stdin.read(), file, headers, method="PUT")  # noqa: S310
        with _opened(request):
            pass
    outgoing.unlink()


def fetch(key: str, digest: str) -> None:
    BASE.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(sys.stdin.read())  # noqa: S310
    with _opened(request) as answer, _incoming(key).open("wb") as file:
        shutil.copyfileobj(answer, file, 1 << 20)
    if _digest(_incoming(key)) != digest:
        sys.exit("what was fetched is damaged")


def _opened(request: urllib.request.Request) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=SECONDS_MAX)  # noqa: S310  # an address of the server
    except OSError as error:  # not its text, which may contain the address
        sys.exit(f"the bucket did not accept the request: {getattr(error, 'code', type(error).__name__)}")


def _plain(member: tarfile.TarInfo) -> "tarfile.TarInfo | None":
    return member if member.isfile() or member.isdir() else None


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _mark(path: Path, below: Path) -> Mark:
    seen = path.lstat()
    return (str(path.relative_to(below)), seen.st_size, seen.st_mtime_ns, seen.st_ino)


def _created_ns(path: Path) -> int:
    """When a file was created. 0: the system does not say. Python has no call for it."""
    found = ctypes.create_string_buffer(256)
    with contextlib.suppress(AttributeError):  # an old libc
        if LIBC.statx(AT_FDCWD, os.fsencode(path), AT_SYMLINK_NOFOLLOW, STATX_BTIME, found) == 0:
            mask, seconds, rest = struct.unpack_from("=I76xqI", found.raw)
            return int(seconds * 10**9 + rest) if mask & STATX_BTIME else 0
    return 0


def _older(key: str) -> list[Path]:
    run = key.rpartition(".")[0]
    return [path for path in BASE.glob(f"{run}.*") if path.name != key and path.is_dir()]


def _kill(folder: Path, number: int) -> None:
    group = _read(folder / "group")
    if group and not _exit_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(group), number)
    if number == signal.SIGKILL:
        _kill_left(f"TERA_PROGRESS={folder / 'progress'}".encode())


def _kill_left(variable: bytes) -> None:
    """Kill what left the group of the program, as the workers of torchrun do. They have its environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def _is_alive(folder: Path) -> bool:
    pid, _, began = _read(folder / "supervisor").partition(" ")
    return bool(pid) and _started(int(pid)) == began


def _started(pid: int) -> str:
    """When a process started. An id alone may belong to another process after a restart."""
    fields = _read(Path(f"/proc/{pid}/stat"), 1000).rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _last_line(path: Path) -> str:
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - PROGRESS_BYTES_MAX))
        lines = file.read().decode("utf-8", "replace").split("\n")
        return next((line for line in reversed(lines[:-1]) if line.strip()), "")
    return ""


def _read(path: Path, most: int = 100) -> str:
    with contextlib.suppress(OSError), path.open() as file:
        return file.read(most).strip()
    return ""


def _write(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    with beside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)


def _write_exit(folder: Path, text: str) -> None:
    try:
        _write(folder / "exit", text)
    except OSError:  # the command has filled the disk
        SPARE.mkdir(parents=True, exist_ok=True)
        _write(SPARE / folder.name, text)


def _exit_of(folder: Path) -> str:
    """The exit code of a program. Empty: it has not ended."""
    return _read(folder / "exit") or _read(SPARE / folder.name)


def _incoming(key: str) -> Path:
    return BASE / f"{key}.incoming"


def _outgoing(key: str) -> Path:
    return BASE / f"{key}.outgoing"


VERBS: dict[str, Callable[..., None]] = {
    "receive": receive,
    "unpack": unpack,
    "start": start,
    "state": state,
    "list": entries,
    "special": special,
    "signal": send,
    "pack": pack,
    "push": push,
    "fetch": fetch,
}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])
