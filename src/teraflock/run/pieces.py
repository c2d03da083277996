"""Makes an upload from pieces of earlier ones, so that a changed folder is not sent as a whole.

A client splits its tar into pieces and names them by their SHA-256. The server says which ones no upload of the project
has, gets these as one file, and puts the tar together. `DIGEST.pieces` beside an upload lists its pieces.

Invariants: a list is written only after every piece in it was hashed; the result has the digest that names it, or is
discarded. A lost list costs nothing but a longer upload.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, Conflict

UPLOADS_LOOKED_AT: Final = 20
"""The newest ones of a project: older ones have little in common with what is sent now."""
PIECE_BYTES_MAX: Final = 8 << 20
LISTED: Final = ".pieces"


class UploadPiece(msgspec.Struct, frozen=True, array_like=True):
    digest: str
    size_bytes: int


class _Found(msgspec.Struct, frozen=True):
    path: Path
    offset: int
    size_bytes: int


def missing(folder: Path, pieces: Sequence[UploadPiece]) -> tuple[int, ...]:
    """The positions of the pieces that no upload of the project has. Of equal ones, the first."""
    known: set[str] = set(_known(folder))
    found = []
    for position, piece in enumerate(pieces):
        if piece.digest not in known:
            known.add(piece.digest)
            found.append(position)
    return tuple(found)


def assemble(path: Path, digest: str, pieces: Sequence[UploadPiece], rest: Path | None) -> None:
    """Put an upload together. `rest` has the missing pieces one after another. Repeating it changes nothing."""
    if any(not 0 < piece.size_bytes <= PIECE_BYTES_MAX for piece in pieces):
        raise BadInput("A piece has up to 8 MiB", hint="Split larger files")
    if path.exists():
        _list(path, pieces, _read(path, pieces))
        return
    places = _known(path.parent)
    if rest is not None:
        places |= _within(rest, pieces)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        new = Path(file.name)
        try:
            whole = hashlib.sha256()
            for content in _copied(pieces, places):
                whole.update(content)
                file.write(content)
            if whole.hexdigest() != digest:
                raise Conflict("The pieces do not have the announced content", hint="Upload it again")
            file.flush()
            os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    _list(path, pieces, iter(()))


def list_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{LISTED}")


def _known(folder: Path) -> dict[str, _Found]:
    """Where each listed piece is, in the newest uploads."""
    lists = sorted(folder.glob(f"*{LISTED}"), key=_changed_at, reverse=True)[:UPLOADS_LOOKED_AT]
    found: dict[str, _Found] = {}
    for each in lists:
        offset, upload = 0, each.with_suffix("")
        try:
            pieces = msgspec.json.decode(each.read_bytes(), type=list[UploadPiece])
        except (OSError, msgspec.MsgspecError):  # it was removed meanwhile, or is damaged
            continue
        for piece in pieces if upload.exists() else ():
            found.setdefault(piece.digest, _Found(upload, offset, piece.size_bytes))
            offset += piece.size_bytes
    return found


def _within(rest: Path, pieces: Sequence[UploadPiece]) -> dict[str, _Found]:
    """Where some of the pieces are in a file that has them in their order. It is not known which ones it has."""
    found: dict[str, _Found] = {}
    if not rest.exists():
        raise Conflict("Some pieces have not been uploaded", hint="Upload them first")
    with rest.open("rb") as file:
        for piece in pieces:
            offset = file.tell()
            if hashlib.sha256(file.read(piece.size_bytes)).hexdigest() == piece.digest:
                found[piece.digest] = _Found(rest, offset, piece.size_bytes)
            else:
                file.seek(offset)
    return found


def _copied(pieces: Sequence[UploadPiece], places: dict[str, _Found]) -> Iterator[bytes]:
    for piece in pieces:
        at = places.get(piece.digest)
        if at is None:
            raise Conflict("Some pieces have not been uploaded", hint="Upload them first")
        try:
            with at.path.open("rb") as file:
                file.seek(at.offset)
                content = file.read(at.size_bytes)
        except FileNotFoundError:  # it was removed meanwhile
            content = b""
        _check(piece, content)
        yield content


def _read(path: Path, pieces: Sequence[UploadPiece]) -> Iterator[bytes]:
    with path.open("rb") as file:
        for piece in pieces:
            content = file.read(piece.size_bytes)
            _check(piece, content)
            yield content
        if file.read(1):
            raise Conflict("The pieces are not the whole content", hint="List all of them")


def _check(piece: UploadPiece, content: bytes) -> None:
    if len(content) != piece.size_bytes or hashlib.sha256(content).hexdigest() != piece.digest:
        raise Conflict("A piece does not have the announced content", hint="Upload it again")


def _list(path: Path, pieces: Sequence[UploadPiece], checked: Iterator[bytes]) -> None:
    for _ in checked:
        pass
    new = path.with_name(f"{path.name}{LISTED}.part")
    new.write_bytes(msgspec.json.encode(pieces))
    new.replace(list_of(path))


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
