"""The backup file: a ZIP whose last member, `manifest.json`, describes the others.

Invariants:
- the manifest has the size and the SHA-256 of every member; if a member differs, the backup is damaged;
- a backup with a newer format or schema is refused;
- an unfinished file never has the final name: it is written under another name and renamed.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Final

import msgspec

from teraflock.app.files import sync_folder
from teraflock.base.errors import BadInput, BrokenSource, Conflict, Refused

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DATABASE: Final = "database.jsonl"
PIECE_BYTES: Final = 1 << 20
MANIFEST_BYTES_MAX: Final = 16 << 20


class BackupPart(msgspec.Struct, frozen=True, kw_only=True):
    bytes: int
    sha256: str


class BackupDisk(msgspec.Struct, frozen=True, kw_only=True):
    instance_id: str
    part: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    teraflock: str
    """The version of Teraflock that created it."""
    schema: int
    """The number of migrations in its database."""
    schema_checksums: tuple[str, ...]
    created_at: datetime
    machine: str
    installation_id: str
    engine: str
    engine_is_ours: bool
    """Whether Teraflock started the engine itself, in a folder that depends on the home."""
    organisations: int
    instances: int
    settings: str
    """The text of settings.toml. It may contain the password of a database."""
    parts: Mapping[str, BackupPart]
    disks: tuple[BackupDisk, ...] = ()
    not_included: tuple[str, ...] = ()


class Writer:
    """Adds members to a new archive."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.parts: dict[str, BackupPart] = {}

    def add(self, name: str, pieces: Iterable[bytes], *, packed: bool = True) -> None:
        """`packed`: compress the member."""
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        info.external_attr = 0o600 << 16
        digest, count = hashlib.sha256(), 0
        with self._archive.open(info, "w", force_zip64=True) as member:
            for piece in pieces:
                member.write(piece)
                digest.update(piece)
                count += len(piece)
        self.parts[name] = BackupPart(bytes=count, sha256=digest.hexdigest())

    def finish(self, manifest: Manifest) -> None:
        self._archive.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))


@contextmanager
def new_archive(target: Path) -> Iterator[Writer]:
    """A new file, readable only by its owner. It gets its name when everything is on disk."""
    if target.exists():
        raise Conflict(f"`{target}` already exists", hint="Choose another name, or remove the file first")
    temporary = target.with_name(f"{target.name}.partial")
    try:
        temporary.unlink(missing_ok=True)
        file = os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
    except OSError as error:
        raise BadInput(
            f"Could not write `{target}`: {error.strerror}", hint="Choose a writable folder"
        ) from None
    try:
        with file:
            with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
                yield Writer(archive)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


class Reader:
    def __init__(self, path: Path, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self._path = path
        self._archive = archive
        self.manifest = manifest

    def check(self) -> None:
        """Read every member once and compare it with the manifest."""
        for name, part in self.manifest.parts.items():
            digest, count = hashlib.sha256(), 0
            for piece in self.pieces(name):
                digest.update(piece)
                count += len(piece)
            if (count, digest.hexdigest()) != (part.bytes, part.sha256):
                raise damaged(self._path, f"the content of `{name}` does not match the manifest")

    def pieces(self, name: str) -> Iterator[bytes]:
        try:
            with self._archive.open(name) as member:
                while piece := member.read(PIECE_BYTES):
                    yield piece
        except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError) as error:
            raise damaged(self._path, str(error)) from None
        except Exception as error:  # zlib.error is not an OSError
            raise damaged(self._path, type(error).__name__) from error

    def lines(self, name: str) -> Iterator[bytes]:
        rest = b""
        for piece in self.pieces(name):
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
        if rest:
            yield rest

    def content(self, name: str) -> bytes:
        return b"".join(self.pieces(name))

    def save(self, name: str, target: Path) -> None:
        with target.open("wb") as file:
            for piece in self.pieces(name):
                file.write(piece)


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """Open a backup with a readable manifest that is not newer than this program."""
    try:
        file: IO[bytes] = path.open("rb")
    except OSError as error:
        raise BadInput(
            f"Could not read `{path}`: {error.strerror}", hint="Give the path of a backup"
        ) from None
    with file:
        try:
            with zipfile.ZipFile(file) as archive:
                if archive.getinfo(MANIFEST).file_size > MANIFEST_BYTES_MAX:
                    raise damaged(path, "its manifest is too long")
                content = archive.read(MANIFEST)
        except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, NotImplementedError) as error:
            raise damaged(path, str(error)) from None
        manifest = _manifest(path, content)
        with zipfile.ZipFile(file) as archive:
            yield Reader(path, archive, manifest)


def _manifest(path: Path, content: bytes) -> Manifest:
    class Head(msgspec.Struct):
        format: int

    try:
        made = msgspec.json.decode(content, type=Head).format
        if made > FORMAT:
            raise Refused(
                f"`{path}` was created by a newer version of Teraflock (format {made}, supported: {FORMAT})",
                hint="Update Teraflock, then restore the backup",
            )
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise damaged(path, str(error)) from None


def damaged(path: Path, why: str) -> BrokenSource:
    return BrokenSource(
        f"`{path}` is damaged or not a backup: {why}", hint="Use another backup. Nothing was changed"
    )
