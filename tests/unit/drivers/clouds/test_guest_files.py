"""Files of rented machines: the real program that answers in a guest, and guests that answer with anything."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds import files
from teraflock.drivers.clouds.channel import ProcessChannel, finished
from teraflock.drivers.clouds.files import GuestFiles
from teraflock.instance.archive import archive
from teraflock.instance.driver import FileKind, Handle
from teraflock.instance.engine_errors import EngineDown, EngineMissing, EngineRefused
from teraflock.instance.model import InstanceId

HANDLE = Handle(InstanceId("ins_1"), "", "m-1")


class Guests:
    """Starts the program on this machine, and counts the connections."""

    def __init__(self, command: Sequence[str] = files.COMMAND) -> None:
        self.command = command
        self.opened: list[subprocess.Popen[bytes]] = []
        self.seconds = 0.0
        self.files = GuestFiles(self._connect, seconds=lambda: self.seconds)

    def _connect(self, handle: Handle) -> ProcessChannel:
        words = [sys.executable, *self.command[1:]]
        self.opened.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return ProcessChannel(self.opened[-1])

    def close(self) -> None:
        self.files.close()


@pytest.fixture
def guests() -> Guests:
    return Guests()


def names_in(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as found:
        return {each.name: (file.read() if (file := found.extractfile(each)) else b"") for each in found}


def test_a_folder_is_read_over_one_connection(guests: Guests, tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    (folder / "deep" / "deeper").mkdir(parents=True)
    content = os.urandom(300_000)
    (folder / "model.bin").write_bytes(content)
    (folder / "empty").touch()
    (folder / "deep" / "deeper" / "x").write_text("x")
    (folder / "secret").symlink_to("/etc/shadow")
    os.mkfifo(folder / "pipe")
    tar = b"".join(archive(lambda path: guests.files.file(HANDLE, path), str(folder)))
    assert names_in(tar) == {
        "outputs": b"", "outputs/deep": b"", "outputs/deep/deeper": b"", "outputs/deep/deeper/x": b"x",
        "outputs/empty": b"", "outputs/model.bin": content,
    }  # fmt: skip
    assert len(guests.opened) == 1
    guests.close()
    assert guests.opened[0].returncode is not None


def test_kinds_of_paths(guests: Guests, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "new\nline \udcff").touch(0o640)
    with guests.files.file(HANDLE, str(tmp_path)) as folder:
        assert (folder.kind, folder.names) == (FileKind.FOLDER, ("link", "new\nline \udcff"))
    with guests.files.file(HANDLE, f"{tmp_path}/link") as link:
        assert link.kind == FileKind.LINK
    with guests.files.file(HANDLE, f"{tmp_path}/new\nline \udcff") as file:
        assert (file.kind, file.mode, b"".join(file.content or ())) == (FileKind.FILE, 0o640, b"")
    for absent in (f"{tmp_path}/none", "nul\0", f"{tmp_path}/link/\n"):
        with pytest.raises(EngineMissing), guests.files.file(HANDLE, absent):
            pass
    guests.close()


def test_a_file_that_is_not_read_to_its_end_ends_its_connection(guests: Guests, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    with guests.files.file(HANDLE, f"{tmp_path}/large") as file:
        assert file.content is not None
        next(file.content)
    assert guests.opened[0].returncode is not None
    with guests.files.file(HANDLE, f"{tmp_path}/large") as file:
        assert sum(len(piece) for piece in file.content or ()) == 1 << 20
    assert len(guests.opened) == 2
    guests.close()


def test_a_connection_that_ended_meanwhile_is_replaced(guests: Guests, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    for _ in range(2):
        with guests.files.file(HANDLE, f"{tmp_path}/one") as file:
            assert b"".join(file.content or ()) == b"1"
        guests.opened[-1].kill()
        guests.opened[-1].wait()
    assert len(guests.opened) == 2
    guests.close()


def test_another_machine_has_its_own_connection(guests: Guests, tmp_path: Path) -> None:
    for handle in (HANDLE, Handle(InstanceId("ins_1"), "", "m-2")):
        with guests.files.file(handle, str(tmp_path)):
            pass
    assert len(guests.opened) == 2
    guests.close()


def answering(output: bytes, more: bytes = b"", times: int = 0) -> Guests:
    program = f"import sys; sys.stdin.readline(); sys.stdout.buffer.write({output!r} + {more!r} * {times})"
    return Guests(("python3", "-c", program))


HEAD = json.dumps({"kind": "file", "size": 10}).encode() + b"\n"


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (b"", EngineDown),
        (b"not json\n", EngineRefused),
        (b'{"kind": "device"}\n', EngineRefused),
        (b'{"kind": "file", "size": -1}\n', EngineRefused),
        (b'{"kind": "folder", "names": [1]}\n', EngineRefused),
        (HEAD + b"\xff\xff\xff\xff", EngineRefused),
        (HEAD + b"\0\0\0\5abc", EngineDown),
        (HEAD, EngineDown),
    ],
)
def test_a_hostile_guest_gets_an_error_and_no_thread(output: bytes, error: type[TeraflockError]) -> None:
    guests = answering(output)

    def read() -> None:
        with guests.files.file(HANDLE, "/x") as file:
            b"".join(file.content or ())

    with pytest.raises(error):
        read()
    assert all(each.returncode is not None for each in guests.opened)


def test_a_guest_that_sends_too_slowly_is_left() -> None:
    guests = answering(HEAD, b"\0\0\0\1a", times=20_000)

    def read() -> None:
        with guests.files.file(HANDLE, "/x") as file:
            for _ in file.content or ():
                guests.seconds += 10**6

    with pytest.raises(EngineDown):
        read()
    assert guests.opened[0].returncode is not None


def run(program: str, stdin: bytes = b"", **limits: float) -> tuple[bytes, bytes, bool]:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe)
    given = {"seconds_max": 20.0, "bytes_max": 1000, **limits}
    output = finished(process, stdin, seconds_max=given["seconds_max"], bytes_max=int(given["bytes_max"]))
    assert process.returncode is not None
    return bytes(output.stdout), bytes(output.stderr), output.timed_out


def test_a_command_gets_its_input_and_its_output_is_limited() -> None:
    sent = os.urandom(1 << 20)
    copy = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    assert run(copy, sent, bytes_max=1 << 21) == (sent, b"", False)
    assert run(copy, sent) == (sent[:1000], b"", False)
    assert run("import sys; sys.stderr.write('no')", sent) == (b"", b"no", False), (
        "it does not read its input"
    )
    assert run("import time; print(1, flush=True); time.sleep(60)", seconds_max=0.5) == (b"1\n", b"", True)
