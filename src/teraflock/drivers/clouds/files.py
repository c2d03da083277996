"""Reads files of rented machines over SSH. One connection serves many files: an archive opens each file of a folder.

A program in the guest (`PROGRAM`) reads a path per line and answers with a line of JSON and, for a file, its content in
pieces, each after its length. It ends when its input is closed, and after `IDLE_SECONDS` without a question. So nothing
is left in the guest, even if this process is killed.

The guest may be hostile: lines, pieces and the time for an answer are limited, and nothing it says names a local file.
"""

import json
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from teraflock.drivers.clouds.channel import GuestChannel
from teraflock.instance.driver import FileKind, GuestFile, Handle
from teraflock.instance.engine_errors import EngineDown, EngineMissing, EngineRefused

IDLE_SECONDS: Final = 20
REUSED_SECONDS_MAX: Final = 10.0
"""A session that rested longer may be ending in the guest."""
RESTING_MAX: Final = 32
"""Sessions that are kept open for the next question, of all machines together."""
ANSWER_SECONDS_MAX: Final = 30.0
PIECE_BYTES_MAX: Final = 1 << 16
HEAD_BYTES_MAX: Final = 16 << 20
SLOW_SECONDS: Final = 60.0
BYTES_PER_SECOND_MIN: Final = 32 << 10
"""A guest that sends its content more slowly, after `SLOW_SECONDS`, does not hold a thread of the server."""
PROGRAM: Final = """
import json, os, select, stat, struct, sys
out = sys.stdout.buffer
def look(path):
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return {"kind": "link"}, None
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            return {"kind": "absent"}, None
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return {"kind": "absent"}, None
    found = os.fstat(file)
    mode = found.st_mode & 0o777
    if stat.S_ISDIR(found.st_mode):
        names = sorted(os.fsdecode(each) for each in os.listdir(file))
        os.close(file)
        return {"kind": "folder", "mode": mode, "names": names}, None
    return {"kind": "file", "mode": mode, "size": found.st_size}, file
while select.select([0], [], [], IDLE)[0]:
    line = sys.stdin.buffer.readline()
    if not line:
        break
    head, file = look(os.fsencode(json.loads(line)))
    out.write(json.dumps(head).encode() + b"\\n")
    if file is not None:
        while True:
            piece = os.read(file, PIECE)
            out.write(struct.pack(">I", len(piece)) + piece)
            if not piece:
                break
        os.close(file)
    out.flush()
""".replace("IDLE", str(IDLE_SECONDS)).replace("PIECE", str(PIECE_BYTES_MAX))
COMMAND: Final = ("python3", "-I", "-X", "utf8", "-c", PROGRAM)


class _Head(msgspec.Struct, frozen=True):
    kind: Literal["file", "folder", "link", "absent"]
    mode: Annotated[int, Meta(ge=0, le=0o777)] = 0o644
    size: Annotated[int, Meta(ge=0, le=1 << 60)] = 0
    names: tuple[str, ...] = ()


class FileSession:
    """One connection to the program in a guest. It answers one question after another."""

    def __init__(self, channel: GuestChannel, seconds: Callable[[], float]) -> None:
        self._channel = channel
        self._seconds = seconds
        self._read = bytearray()
        self._since = 0.0
        self._bytes = 0
        self.at_rest = True
        """Whether the last answer was read to its end."""
        self.rests_since = 0.0

    def ask(self, path: str) -> _Head | None:
        """What a path is. None: the program has ended."""
        self.at_rest, self._since, self._bytes = False, self._seconds(), 0
        try:
            self._channel.send(json.dumps(path).encode("ascii") + b"\n")
        except OSError:
            return None
        line = self._line()
        if line is None:
            return None
        try:
            head = msgspec.convert(
                json.loads(line), _Head
            )  # msgspec's own reader refuses names that are not UTF-8
        except (ValueError, RecursionError, msgspec.MsgspecError):
            raise _nonsense() from None
        self._is_over(head.kind != "file")
        return head

    def content(self) -> Iterator[bytes]:
        while length := struct.unpack(">I", self._exactly(4))[0]:
            if length > PIECE_BYTES_MAX:
                raise _nonsense()
            yield self._exactly(length)
        self._is_over(True)

    def close(self) -> None:
        self._channel.close()

    def _is_over(self, over: bool) -> None:
        self.at_rest, self.rests_since = over, self._seconds()

    def _line(self) -> bytes | None:
        while b"\n" not in self._read:
            if len(self._read) > HEAD_BYTES_MAX:
                raise EngineRefused("The folder has too many entries", hint="Copy parts of it instead")
            if not self._more():
                return None
        line, _, rest = bytes(self._read).partition(b"\n")
        self._read = bytearray(rest)
        return line

    def _exactly(self, count: int) -> bytes:
        while len(self._read) < count:
            if not self._more():
                raise EngineDown("The rented machine stopped sending a file", hint="Teraflock tries again")
        found = bytes(self._read[:count])
        del self._read[:count]
        return found

    def _more(self) -> bool:
        took = self._seconds() - self._since
        if took > SLOW_SECONDS + self._bytes / BYTES_PER_SECOND_MIN:
            return False
        piece = self._channel.receive(ANSWER_SECONDS_MAX)
        self._read += piece
        self._bytes += len(piece)
        return bool(piece)


class GuestFiles:
    """The files of all machines of a site. `connect` starts `COMMAND` in a machine."""

    def __init__(
        self, connect: Callable[[Handle], GuestChannel], *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._connect = connect
        self._seconds = seconds
        self._lock = threading.Lock()
        self._resting: list[tuple[Handle, FileSession]] = []

    @contextmanager
    def file(self, handle: Handle, path: str) -> Iterator[GuestFile]:
        session, head = self._asked(handle, path)
        try:
            if head.kind == "file":
                yield GuestFile(
                    kind=FileKind.FILE, mode=head.mode, size_bytes=head.size, content=session.content()
                )
                return
        finally:  # an archive opens the files of a folder while the folder is open, with the same session
            self._rest(handle, session)
        if head.kind == "absent":
            raise EngineMissing(f"The machine has no file or folder `{path[:80]}`")
        yield GuestFile(kind=FileKind(head.kind), mode=head.mode, names=head.names)

    def close(self) -> None:
        with self._lock:
            resting, self._resting = self._resting, []
        for _, session in resting:
            session.close()

    def _asked(self, handle: Handle, path: str) -> tuple[FileSession, _Head]:
        """Ask a session that rests, and a new one if that has ended meanwhile."""
        for session in self._sessions(handle):
            try:
                head = session.ask(path)
            except BaseException:
                session.close()
                raise
            if head is not None:
                return session, head
            session.close()
        raise EngineDown("The rented machine does not answer over SSH", hint="Teraflock tries again")

    def _sessions(self, handle: Handle) -> Iterator[FileSession]:
        if resting := self._woken(handle):
            yield resting
        yield FileSession(self._connect(handle), self._seconds)

    def _woken(self, handle: Handle) -> FileSession | None:
        with self._lock:
            old = [each for each in self._resting if not self._is_fresh(each[1])]
            fresh = [each for each in self._resting if self._is_fresh(each[1])]
            mine = next((each for each in fresh if each[0] == handle), None)
            self._resting = [each for each in fresh if each is not mine]
        for _, session in old:
            session.close()
        return mine[1] if mine else None

    def _is_fresh(self, session: FileSession) -> bool:
        return self._seconds() - session.rests_since < REUSED_SECONDS_MAX

    def _rest(self, handle: Handle, session: FileSession) -> None:
        with self._lock:
            keeps = session.at_rest and len(self._resting) < RESTING_MAX
            if keeps:
                self._resting.append((handle, session))
        if not keeps:
            session.close()


def _nonsense() -> EngineRefused:
    return EngineRefused("The machine answered with something that is not a file")
