"""An import that pauses half way until the test continues it. Its folder contains a named pipe."""

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.story.tera import SECONDS_MAX, Tera
from tests.unit.offer.catalogs import own

from teraflock.offer.importers.own import NEEDED

ROWS_BEFORE = 2500  # more than one batch, so that some are already in the database
HEADER = ",".join(NEEDED) + "\n"
ROW = "aws,T4,1,on-demand,9,USD,hour\n"


class PausedImport:
    """An import that has read its first file and waits for the second."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: int) -> None:
        self.process = process
        self._pipe: int | None = pipe
        self._write(HEADER)

    def write(self, rows: int) -> None:
        """Let it read this many more rows. Raises `BrokenPipeError` if it has stopped reading."""
        for _ in range(rows):
            self._write(ROW)

    def end(self) -> None:
        """End the file."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _write(self, text: str) -> None:
        assert self._pipe is not None, "the pipe is closed"
        os.write(self._pipe, text.encode())


@contextmanager
def paused_import(tera: Tera, folder: Path, price: str) -> Iterator[PausedImport]:
    own(folder / "a.csv", [{"instance_type": f"new{i}", "price": price} for i in range(ROWS_BEFORE)])
    os.mkfifo(folder / "b.csv")
    process = tera.start("offers", "import", "mine", folder)
    paused = PausedImport(process, _opened_by_both(folder / "b.csv", process))
    try:
        yield paused
    finally:
        paused.end()
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_MAX)
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def _opened_by_both(pipe: Path, process: "subprocess.Popen[bytes]") -> int:
    """The writing end of the pipe, once the import has opened the other."""
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until and process.poll() is None:
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # not open for reading yet
                raise
            time.sleep(0.002)
        else:
            os.set_blocking(end, True)
            return end
    raise AssertionError(f"the import never came to the pipe: {process.communicate()}")
