"""The server's log: stderr, and where that is the file of this home, one that does not grow for ever.

The file is opened by whoever starts the server, for appending. Once it is too long it is copied beside itself and
emptied, so whoever follows it by name, or writes to it as well, goes on.
"""

import logging
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

BYTES_MAX: Final = 16 << 20
OLD_SUFFIX: Final = ".old"
ACCESS_FILES: Final = 5
FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class ServerLog(logging.StreamHandler):  # type: ignore[type-arg]  # of texts, as stderr is
    def __init__(self, path: Path, descriptor: int = 2, *, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(sys.stderr if descriptor == 2 else os.fdopen(descriptor, "a", closefd=False))
        self.setFormatter(logging.Formatter(FORMAT))
        self._path = path
        self._descriptor = descriptor
        self._bytes_max = bytes_max
        self._is_file = False
        with suppress(OSError):
            self._is_file = os.path.samestat(os.fstat(descriptor), path.stat())

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        if self._is_file:
            with suppress(OSError):  # a full disk, say: the next line tries again
                self._keep_short()

    def _keep_short(self) -> None:
        if os.fstat(self._descriptor).st_size > self._bytes_max:
            old = self._path.with_name(self._path.name + OLD_SUFFIX)
            with suppress(FileNotFoundError):
                shutil.copyfile(self._path, old)
                old.chmod(0o600)
            os.ftruncate(self._descriptor, 0)


def access_log(path: Path) -> logging.Logger:
    """A log of its own for every request: however many there are, they push nothing out of the server's log."""
    from logging.handlers import RotatingFileHandler  # brings sockets and pickles: only where it is asked for

    path.touch(mode=0o600)
    handler = RotatingFileHandler(path, maxBytes=BYTES_MAX, backupCount=ACCESS_FILES - 1, encoding="utf-8")
    handler.rotator = _rotated
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("teraflock.access")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    return log


def _rotated(source: str, target: str) -> None:
    """The new file is as private as the old one."""
    Path(source).replace(target)
    Path(source).touch(mode=0o600)
