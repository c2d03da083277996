"""Packs the server's own program for its hosts. The same files always give the same package."""

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import teraflock
from teraflock.instance.join.model import Package

FOLDER: Final = Path(teraflock.__file__).parent
LEFT_OUT: Final = frozenset({"__pycache__"})


def package(folder: Path = FOLDER, version: str = teraflock.__version__) -> Package:
    content = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=content, mode="wb", compresslevel=1, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path in _files(folder):
            _add(archive, path, f"teraflock/{path.relative_to(folder).as_posix()}")
    return Package(version=version, content=content.getvalue())


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_OUT:
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    content = path.read_bytes()
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o755 if path.stat().st_mode & 0o100 else 0o644
    archive.addfile(info, io.BytesIO(content))
