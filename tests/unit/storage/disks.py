"""Full and read-only disks, as far as this machine allows."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[None]:
    """A separate small disk at `folder`. Skips the test if that is not possible."""
    _mount("-t", "tmpfs", "-o", f"size={size_bytes}", "teraflock-test", str(folder))
    try:
        yield
    finally:
        _unmount(folder)


def resize_disk(folder: Path, size_bytes: int) -> None:
    _mount("-o", f"remount,size={size_bytes}", str(folder))


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Make `folder` read-only, even for root. Skips the test if that is not possible."""
    if os.getuid() != 0:
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(0o755)
        return
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,bind,ro", str(folder))
        yield
    finally:
        _unmount(folder)


def _mount(*words: str) -> None:
    try:
        done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("`mount` is not installed")
    if done.returncode:
        pytest.skip(f"cannot mount a disk here: {done.stderr.partition(chr(10))[0]}")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
