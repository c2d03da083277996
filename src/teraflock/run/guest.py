"""What the server does inside a run's guest, through the driver's `run` and `file`. Every call may be repeated.

The guest belongs to a tenant and may be hostile: everything that it returns is bounded and decoded strictly, and files
come as an archive that `instance/archive.py` writes, so that no name or link of the guest reaches the server's disk.
"""

import json
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from teraflock.base.errors import TeraflockError
from teraflock.dataset.rules import joined
from teraflock.instance.archive import archive
from teraflock.instance.driver import ComputeDriver, Handle, Ran
from teraflock.instance.engine_errors import EngineRefused
from teraflock.run.checkpoint import GuestEntry
from teraflock.run.losses import with_loss
from teraflock.run.model import Run, RunProgress
from teraflock.run.pace import with_pace

WORK: Final = "/root/work"
OUTPUTS: Final = "/root/outputs"
CHECKPOINTS: Final = "/root/checkpoints"
LIBRARY: Final = "/var/lib/teraflock/python"
PYTHON: Final = ("python3", "-IS", "-c")
"""Without the packages of the guest, some of which run code at every start, and its variables."""
SECONDS_MAX: Final = 60.0
COPY_SECONDS_MAX: Final = 600.0
PIECE_BYTES: Final = 16 << 20
"""Sent to a guest with one call, which takes about 0.1 s besides."""
LOG_PIECE_BYTES: Final = 256 << 10
ENTRIES_MAX: Final = 1000
REPORT_BYTES_MAX: Final = 8192
"""Of the end of a piece of the output, where a report of the progress is looked for."""


class GuestState(msgspec.Struct, frozen=True, kw_only=True):
    state: Literal["absent", "running", "ended", "lost"]
    """`absent` (never started here), `running`, `ended`, or `lost` (it stopped without an exit code)."""
    exit_code: Annotated[int, Meta(ge=0, le=255)] | None
    log_bytes: Annotated[int, Meta(ge=0, le=1 << 60)]
    progress: Annotated[str, Meta(max_length=4096)]
    is_full: bool = False
    """Whether its disk had no room for the exit code, and perhaps not for the end of the log."""
    log: bytes = b""

    def has_more(self, offset: int) -> bool:
        """Whether the log continues after this piece. A guest that only says so is not believed."""
        return bool(self.log) and self.log_bytes > offset


class GuestTar(msgspec.Struct, frozen=True, kw_only=True):
    """A tar that the guest made, as it says."""

    size_bytes: Annotated[int, Meta(ge=0, le=1 << 60)]
    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]


class _Reported(msgspec.Struct, frozen=True, kw_only=True):
    """A line that `teraflock.progress` wrote, or one of the same form in the output of the command."""

    step: Annotated[int, Meta(ge=0, le=1 << 53)]
    of: Annotated[int, Meta(ge=0, le=1 << 53)] | None = None
    loss: Annotated[float, Meta(ge=-1e300, le=1e300)] | None = None
    memory_bytes: Annotated[int, Meta(ge=0, le=1 << 50)] | None = None


@cache
def program_text() -> str:
    return (files("teraflock.run") / "guest_program.py").read_text("utf-8")


@cache
def library_text() -> str:
    """The module `teraflock` for guests: only `teraflock.progress`."""
    return (files("teraflock") / "__init__.py").read_text("utf-8")


class RunGuest:
    """The guest of one run. It has no state of its own."""

    def __init__(self, driver: ComputeDriver, handle: Handle, near: str = "") -> None:
        """`near` is the region of the bucket that it can use. Empty: none."""
        self._driver = driver
        self._handle = handle
        self.near = near

    def put(self, key: str, pieces: Iterable[bytes], folder: str, *, replace: bool) -> None:
        """Send a tar in pieces and extract it into a folder."""
        offset = 0
        for piece in joined(pieces, PIECE_BYTES):
            self._call("receive", key, str(offset), stdin=piece, seconds_max=COPY_SECONDS_MAX)
            offset += len(piece)
        self._call("unpack", key, folder, "replace" if replace else "add", seconds_max=COPY_SECONDS_MAX)

    def start(
        self, key: str, command: Iterable[str], environment: Mapping[str, str], folders: list[str]
    ) -> None:
        """Start a program. The environment may contain secrets, so it is sent on stdin and not as arguments."""
        given = {
            "command": list(command),
            "environment": environment,
            "folder": WORK,
            "folders": [WORK, *folders],
            "files": {f"{LIBRARY}/teraflock/__init__.py": library_text()},
        }
        self._call("start", key, stdin=msgspec.json.encode(given))

    def state(self, key: str, log_offset: int) -> GuestState:
        ran = self._call("state", key, str(log_offset), str(LOG_PIECE_BYTES))
        head, _, log = ran.stdout.partition(b"\n")
        try:
            found = msgspec.json.decode(head, type=GuestState)
        except msgspec.MsgspecError:
            raise _nonsense() from None
        return msgspec.structs.replace(found, log=log[:LOG_PIECE_BYTES])

    def entries(self, folder: str) -> tuple[GuestEntry, ...]:
        try:
            found = msgspec.json.decode(self._call("list", folder).stdout, type=tuple[GuestEntry, ...])
        except msgspec.MsgspecError:
            raise _nonsense() from None
        return tuple(
            msgspec.structs.replace(each, mark=sha256(each.mark.encode("utf-8", "replace")).hexdigest())
            for each in found[:ENTRIES_MAX]
        )

    def pack(self, key: str, path: str) -> GuestTar:
        """Make a tar of a file or folder, to be pushed."""
        try:
            return msgspec.json.decode(
                self._call("pack", key, path, seconds_max=COPY_SECONDS_MAX).stdout, type=GuestTar
            )
        except msgspec.MsgspecError:
            raise _nonsense() from None

    def push(self, key: str, url: str) -> None:
        """Send the packed tar to an address of a bucket."""
        self._call("push", key, stdin=url.encode(), seconds_max=COPY_SECONDS_MAX)

    def fetch(self, key: str, url: str, digest: str, folder: str, *, replace: bool) -> None:
        """Extract a tar from an address of a bucket into a folder."""
        self._call("fetch", key, digest, stdin=url.encode(), seconds_max=COPY_SECONDS_MAX)
        self._call("unpack", key, folder, "replace" if replace else "add", seconds_max=COPY_SECONDS_MAX)

    def signal(self, key: str, number: int) -> None:
        self._call("signal", key, str(number))

    def special(self, folder: str) -> frozenset[str]:
        """The pipes, sockets and devices below a folder. They have no content."""
        try:
            return frozenset(msgspec.json.decode(self._call("special", folder).stdout, type=list[str]))
        except msgspec.MsgspecError:
            raise _nonsense() from None

    def archive(self, path: str, bytes_max: int, left_out: Container[str] = ()) -> Iterable[bytes]:
        open_file = partial(self._driver.file, self._handle)
        return archive(open_file, path, bytes_max=bytes_max, left_out=left_out)

    def _call(self, *words: str, stdin: bytes = b"", seconds_max: float = SECONDS_MAX) -> Ran:
        command = (*PYTHON, program_text(), *words)
        ran = self._driver.run(self._handle, command, stdin=stdin, seconds_max=seconds_max)
        if ran.exit_code:
            lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            said = ["".join(each if each.isprintable() else "?" for each in line) for line in lines]
            raise EngineRefused(
                f"The guest could not {words[0]}: {(said or ['no reason given'])[0][:200]}",
                hint="The image needs Python 3.9 or newer and free disk space",
            )
        return ran


def _nonsense() -> TeraflockError:
    return EngineRefused(
        "The guest answered with something that is not a state", hint="Use an image of Teraflock"
    )


def folder_of(path: str, default: str) -> str:
    """An absolute path in the guest. Relative paths start in the working folder."""
    return default if not path else path if path.startswith("/") else f"{WORK}/{path}"


def progress_of(seen: GuestState, run: Run, now: datetime) -> RunProgress | None:
    """The progress after a look: as `teraflock.progress` reported it, otherwise from a line of JSON in the output.

    What was known before, if neither can be read.
    """
    said = _report(seen.progress) if seen.progress else _reported_in(seen.log)
    return run.progress if said is None else _progress(said, run, now)


def _reported_in(log: bytes) -> _Reported | None:
    """The last complete line of a piece of the output that is a report."""
    lines = reversed(log[-REPORT_BYTES_MAX:].split(b"\n")[:-1])
    found = (_report(each.decode("utf-8", "replace")) for each in lines if b'"step"' in each)
    return next((each for each in found if each is not None), None)


def _report(text: str) -> _Reported | None:
    """Python writes NaN for a loss that has diverged, which is no JSON: then the loss is unknown, not the step."""
    try:
        found = json.loads(text, parse_constant=lambda name: None)
        return msgspec.convert(found, _Reported)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _most(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _progress(said: _Reported, run: Run, now: datetime) -> RunProgress:
    before = run.progress
    if before is not None and before.step == said.step and before.of == said.of:
        return before
    first = before is None or before.first_at is None or said.step < before.first_step
    return RunProgress(
        step=said.step,
        of=said.of,
        loss=said.loss,
        memory_bytes=_most(said.memory_bytes, before.memory_bytes if before else None),
        first_step=said.step if first or before is None else before.first_step,
        first_at=now if first or before is None else before.first_at,
        at=now,
        before_seconds=before.before_seconds if before else None,
        paces=with_pace(before, said.step, now),
        losses=with_loss(before.losses if before else (), said.step, said.loss),
    )
