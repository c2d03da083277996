"""The server's log stays short and keeps its newest lines."""

import logging
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from teraflock.app.server_log import ServerLog


def opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def write(log: ServerLog, count: int) -> None:
    for number in range(count):
        log.emit(logging.LogRecord("x", logging.INFO, "", 0, f"line {number}", None, None))


@given(st.integers(0, 200), st.integers(100, 2000))
def test_the_log_stays_short_and_keeps_its_last_lines(count: int, bytes_max: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        descriptor = opened(path)
        write(ServerLog(path, descriptor, bytes_max=bytes_max), count)
        os.close(descriptor)
        old = path.with_name("server.log.old")
        kept = (old.read_text() if old.exists() else "") + path.read_text()
        assert path.stat().st_size <= bytes_max
        numbers = [int(line.rpartition(" ")[2]) for line in kept.splitlines()]
        assert numbers == list(range(count))[len(range(count)) - len(numbers) :]
        assert bool(numbers) == bool(count)
        assert not old.exists() or old.stat().st_mode & 0o077 == 0


def test_other_files_are_not_truncated(tmp_path: Path) -> None:
    other = tmp_path / "other"
    descriptor = opened(other)
    write(ServerLog(tmp_path / "server.log", descriptor, bytes_max=10), 50)
    os.close(descriptor)
    assert len(other.read_text().splitlines()) == 50
    assert list(tmp_path.iterdir()) == [other]
