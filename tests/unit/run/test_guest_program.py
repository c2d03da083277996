"""The program that the server runs in guests, as a process on this machine with a folder of its own."""

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from teraflock.run.checkpoint import GuestEntry, saved_seconds, to_pull
from teraflock.run.guest import PYTHON, program_text

SECONDS_MAX = 20.0


class Inside:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = folder / "runs"
        self.python = sys.executable

    def call(self, *words: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [self.python, *PYTHON[1:], program_text(), *words],
            input=stdin,
            capture_output=True,
            env={**os.environ, "TERA_RUN_BASE": str(self.base), "TERA_RUN_SPARE": str(self.folder / "spare")},
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def start(self, key: str, *command: str, **environment: str) -> None:
        given = {
            "command": command,
            "environment": environment,
            "folder": str(self.folder),
            "folders": [str(self.folder / "saved")],
            "files": {str(self.folder / "lib" / "module.py"): "VALUE = 7\n"},
        }
        self.call("start", key, stdin=json.dumps(given).encode())

    def state(self, key: str, offset: int = 0) -> tuple[dict[str, Any], bytes]:
        head, _, log = self.call("state", key, str(offset), "1000").partition(b"\n")
        return json.loads(head), log

    def ended(self, key: str) -> tuple[dict[str, Any], bytes]:
        for _ in range(400):
            seen = self.state(key)
            if seen[0]["state"] != "running":
                return seen
            time.sleep(0.02)
        raise AssertionError("it does not end")


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Inside]:
    made = Inside(tmp_path)
    yield made
    for each in made.base.glob("*/group"):
        made.call("signal", each.parent.name, "9")


def test_program_runs_once_with_its_environment_and_log(inside: Inside) -> None:
    assert inside.state("run.1")[0]["state"] == "absent"
    for _ in range(2):
        inside.start("run.1", "sh", "-c", "echo $WORD; echo again >> count; exit 3", WORD="hello")
        seen, log = inside.ended("run.1")
    assert (seen["state"], seen["exit_code"], log) == ("ended", 3, b"hello\n")
    assert (inside.folder / "count").read_text() == "again\n", "a repeated start changes nothing"
    assert inside.state("run.1", 2)[1] == b"llo\n"
    assert (inside.folder / "lib" / "module.py").exists()


def test_exit_code_is_kept_when_the_disk_is_full(inside: Inside) -> None:
    """Otherwise the run would seem lost, and fill the disk again in its next attempt."""
    inside.start("run.1", "sh", "-c", "mkdir $(dirname $TERA_PROGRESS)/exit.new; exit 3")
    seen, _ = inside.ended("run.1")
    assert (seen["exit_code"], seen["is_full"]) == (3, True)
    inside.call("signal", "run.1", "15")
    inside.start("run.2", "true")
    seen, _ = inside.ended("run.2")
    assert (seen["exit_code"], seen["is_full"]) == (0, False)


def test_packages_of_the_guest_have_no_part_in_the_program(inside: Inside) -> None:
    """A broken one would make the guest seem lost, and one that prints would be taken for its answer."""
    venv.create(inside.folder / "own", symlinks=True)
    (packages,) = inside.folder.glob("own/lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text("import os; os._exit(7)")
    inside.python = str(inside.folder / "own" / "bin" / "python")
    assert subprocess.run([inside.python, "-I", "-c", ""], check=False).returncode == 7
    assert inside.state("run.1")[0]["state"] == "absent"


def test_missing_program_ends_with_127(inside: Inside) -> None:
    inside.start("run.1", "no-such-program")
    seen, log = inside.ended("run.1")
    assert seen["exit_code"] == 127
    assert b"no-such-program" in log


def test_signal_reaches_children_and_is_the_exit_code(inside: Inside) -> None:
    inside.start("run.1", "sh", "-c", "sleep 60 & wait")
    assert inside.state("run.1")[0]["state"] == "running"
    inside.call("signal", "run.1", "15")
    assert inside.ended("run.1")[0]["exit_code"] == 143


def test_kill_also_ends_what_left_the_group_of_the_program(inside: Inside) -> None:
    """As the workers of torchrun do: they would keep their GPU memory."""
    inside.start("run.1", "sh", "-c", "setsid sleep 61 & echo $! > child; wait")
    child = inside.folder / "child"
    for _ in range(200):
        if child.exists() and child.read_text().strip():
            break
        time.sleep(0.02)
    inside.call("signal", "run.1", "9")
    assert inside.ended("run.1")[0]["exit_code"] == 137
    status = Path(f"/proc/{child.read_text().strip()}/stat")
    for _ in range(200):
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    raise AssertionError("it still runs")


def test_program_whose_supervisor_died_is_lost_and_ended_by_the_next_attempt(inside: Inside) -> None:
    inside.start("run.1", "sleep", "60")
    supervisor = int((inside.base / "run.1" / "supervisor").read_text().split()[0])
    for _ in range(100):
        if (inside.base / "run.1" / "group").exists():
            break
        time.sleep(0.02)
    program = int((inside.base / "run.1" / "group").read_text())
    os.kill(supervisor, 9)
    while Path(f"/proc/{supervisor}/stat").exists() and inside.state("run.1")[0]["state"] == "running":
        time.sleep(0.02)
    assert inside.state("run.1")[0]["state"] == "lost"
    inside.start("run.2", "true")
    assert inside.ended("run.2")[0]["exit_code"] == 0
    for _ in range(100):
        status = Path(f"/proc/{program}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    raise AssertionError("two attempts ran at the same time")


def test_progress_is_the_last_complete_line(inside: Inside) -> None:
    text = 'printf \'{"step": 1}\\n{"step": 2}\\n{"st\' >> "$TERA_PROGRESS"'
    inside.start("run.1", "sh", "-c", text)
    assert json.loads(inside.ended("run.1")[0]["progress"]) == {"step": 2}


def test_files_arrive_in_pieces_and_a_repeated_piece_changes_nothing(inside: Inside) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("deep/note")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"hello"))
    content, target = buffer.getvalue(), inside.folder / "work"
    (target / "old").mkdir(parents=True)
    inside.call("receive", "run.1", "0", stdin=content[:700])
    for _ in range(2):
        inside.call("receive", "run.1", "700", stdin=content[700:])
    inside.call("unpack", "run.1", str(target), "replace")
    assert (target / "deep" / "note").read_text() == "hello"
    assert not (target / "old").exists()


def test_list_shows_entries_without_links_and_hidden_files(inside: Inside) -> None:
    saved = inside.folder / "saved"
    (saved / "folder").mkdir(parents=True)
    (saved / "folder" / "weights").write_bytes(b"12345")
    (saved / "folder" / "link").symlink_to("weights")
    (saved / "one").write_bytes(b"1")
    (saved / ".hidden").write_bytes(b"1")
    (saved / "link").symlink_to("/etc/passwd")
    os.mkfifo(saved / "pipe")
    (saved / "piped").mkdir()
    os.mkfifo(saved / "piped" / "pipe")
    before = json.loads(inside.call("list", str(saved)))
    assert [each["name"] for each in before] == ["folder", "one"]
    assert [each["files"] for each in before] == [2, 1], "the folder, and its file"
    (saved / "new").write_bytes(b"2")
    (saved / "new").rename(saved / "one")
    after = json.loads(inside.call("list", str(saved)))
    assert after[0] == before[0]
    assert after[1]["mark"] != before[1]["mark"], "a replaced file of the same size is another one"
    assert json.loads(inside.call("list", str(inside.folder / "absent"))) == []


def test_names_that_are_not_utf8_do_not_hide_other_entries(inside: Inside) -> None:
    saved = inside.folder / "saved"
    saved.mkdir()
    (saved / "good").write_bytes(b"1")
    (saved / os.fsdecode(b"bad\xff")).write_bytes(b"1")
    found = msgspec.json.decode(inside.call("list", str(saved)), type=tuple[GuestEntry, ...])
    assert [each.name for each in to_pull(found, (), keep=9, bytes_max=9)] == ["good"]


def test_only_what_has_no_content_is_special(inside: Inside) -> None:
    outputs = inside.folder / "outputs"
    (outputs / "deep").mkdir(parents=True)
    (outputs / "file").write_bytes(b"1")
    (outputs / "link").symlink_to("/dev/null")
    os.mkfifo(outputs / "deep" / "pipe")
    os.mkfifo(outputs / os.fsdecode(b"bad\xff"))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(outputs / "socket"))
    found = msgspec.json.decode(inside.call("special", str(outputs)), type=list[str])
    assert set(found) == {f"{outputs}/{name}" for name in ("deep/pipe", "socket", "bad?")}
    assert json.loads(inside.call("special", str(outputs / "absent"))) == []


SAVES = """
import os, sys, time
os.chdir(sys.argv[1])
os.mkdir("two.tmp")
with open("one.tmp", "wb") as one, open("two.tmp/part", "wb") as two:
    one.write(b"1"), two.write(b"2")
    time.sleep(0.3)
os.rename("one.tmp", "one")
os.rename("two.tmp", "two")
"""


def test_list_tells_how_long_a_save_took_also_if_it_ended_with_a_rename(inside: Inside) -> None:
    saved = inside.folder / "saved"
    inside.start("run.1", sys.executable, "-c", SAVES, str(saved))
    assert inside.ended("run.1")[0]["exit_code"] == 0
    entries = [GuestEntry(**each) for each in json.loads(inside.call("list", str(saved)))]
    assert [each.name for each in entries] == ["one", "two"]
    if not entries[0].begun_ns:
        pytest.skip("the file system does not tell when a file was created")
    for each in entries:
        assert (saved_seconds(each, ()) or 0) >= 0.29  # the times of files are those of a coarse clock
    packed = json.loads(inside.call("pack", "run.1", str(saved / "two")))
    (inside.base / "run.1.outgoing").rename(inside.base / "run.2.incoming")
    inside.call("unpack", "run.2", str(inside.folder / "restored"), "add")
    (restored,) = json.loads(inside.call("list", str(inside.folder / "restored")))
    assert packed["size_bytes"] > 0
    assert saved_seconds(GuestEntry(**restored), ()) is None, "it was copied there"


def test_folder_is_packed_pushed_and_fetched(inside: Inside) -> None:
    """Without links: they would lead out of the folder where it is extracted."""
    from tests.faults.test_run_buckets import HttpBucket

    saved = inside.folder / "saved" / "step-1"
    saved.mkdir(parents=True)
    (saved / "weights").write_bytes(b"w" * 5000)
    (saved / "link").symlink_to("/etc/passwd")
    bucket = HttpBucket()
    try:
        packed = json.loads(inside.call("pack", "run.1", str(saved)))
        inside.call("push", "run.1", stdin=bucket.put_url("a.tar", packed["size_bytes"]).encode())
        assert len(bucket.objects["a.tar"]) == packed["size_bytes"]
        inside.call("fetch", "run.2", packed["digest"], stdin=bucket.get_url("a.tar").encode())
        inside.call("unpack", "run.2", str(inside.folder / "back"), "add")
        assert (inside.folder / "back" / "step-1" / "weights").read_bytes() == b"w" * 5000
        assert not (inside.folder / "back" / "step-1" / "link").exists()
        with pytest.raises(AssertionError, match="damaged"):
            inside.call("fetch", "run.3", "0" * 64, stdin=bucket.get_url("a.tar").encode())
        inside.call("pack", "run.1", str(saved))
        with pytest.raises(AssertionError, match="403") as told:
            inside.call("push", "run.1", stdin=bucket.put_url("a.tar", 7).encode())
        assert "127.0.0.1" not in str(told.value), "the address is a credential"
    finally:
        bucket.close()


def test_of_many_entries_the_newest_are_listed(inside: Inside) -> None:
    folder = inside.folder / "saved"
    folder.mkdir()
    for number in range(1100):
        path = folder / f"step-{number:06}"
        path.write_bytes(b"x")
        os.utime(path, ns=(number, (2000 - number) * 1_000_000_000))
    listed = {each["name"] for each in json.loads(inside.call("list", str(folder)))}
    assert len(listed) == 1000
    assert "step-000000" in listed
    assert "step-001099" not in listed
