"""The server's log: stderr. If stderr is the log file of this home, its size is limited.

The process that starts the server opens the file for appending. When the file is too large, it is copied and truncated,
so programs that follow it by name or also write to it continue to work.
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
            with suppress(OSError):  # for example a full disk: the next line tries again
                self._keep_short()

    def _keep_short(self) -> None:
        if os.fstat(self._descriptor).st_size > self._bytes_max:
            old = self._path.with_name(self._path.name + OLD_SUFFIX)
            with suppress(FileNotFoundError):
                shutil.copyfile(self._path, old)
                old.chmod(0o600)
            os.ftruncate(self._descriptor, 0)


def access_log(path: Path) -> logging.Logger:
    """A separate log of every request, so that requests push nothing out of the server's log."""
    from logging.handlers import RotatingFileHandler  # slow to import, so only if it is used

    path.touch(mode=0o600)
    handler = RotatingFileHandler(path, maxBytes=BYTES_MAX, backupCount=ACCESS_FILES - 1, encoding="utf-8")
    handler.rotator = _rotated
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("teraflock.access")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    return log


def _rotated(source: str, target: str) -> None:
    """Keep the new file as private as the old one."""
    Path(source).replace(target)
    Path(source).touch(mode=0o600)
