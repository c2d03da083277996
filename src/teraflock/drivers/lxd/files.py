"""Reads and removes files on a guest's disk with the engine's file API, on running and stopped guests.

The engine resolves paths within the guest's disk: a link to a file of the host does not work. A guest's file
can have any size, so every read has a limit.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from typing import Final

import msgspec

from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.transfers import end_transfers
from teraflock.instance.driver import FileKind, GuestFile
from teraflock.instance.engine_errors import EngineDown, EngineRefused

PIECE_BYTES: Final = 1 << 16
FOLDER_BYTES_MAX: Final = 16 << 20
PARTIAL: Final = 206
_KINDS: Final = {"directory": FileKind.FOLDER, "symlink": FileKind.LINK}


class _Names(msgspec.Struct):
    """The engine's response for a folder."""

    metadata: tuple[str, ...] | None = None


def tail(client: LxdClient, name: str, path: str, bytes_max: int) -> bytes:
    """Return the end of a file; empty if it does not exist or is not a regular file."""
    try:
        with client.open("instances", name, "files", path=path, headers=_range(bytes_max)) as response:
            if _kind(response) != FileKind.FILE:
                return b""
            if response.status == PARTIAL:
                return response.read(bytes_max)
            return _last(response, bytes_max)
    except EngineMissing:
        return b""


def remove(client: LxdClient, name: str, path: str) -> None:
    with suppress(EngineMissing):
        client.delete("instances", name, "files", path=path)


@contextmanager
def opened(client: LxdClient, name: str, path: str) -> Iterator[GuestFile]:
    try:
        with client.open("instances", name, "files", path=path) as response:
            yield _found(response)
    except EngineDown:
        client.get("instances", name)  # raises if it is the engine that does not answer
        end_transfers(name)
        raise EngineRefused(
            "A file of the instance cannot be read: it is a pipe, or does not answer", hint="Remove it"
        ) from None


def _found(response: HTTPResponse) -> GuestFile:
    kind = _kind(response)
    mode = int(_said(response, "mode") or "0644", 8)
    if kind == FileKind.FOLDER:
        return GuestFile(kind=kind, mode=mode, names=_names(response))
    if kind == FileKind.LINK:
        return GuestFile(kind=kind, mode=mode)
    size = response.getheader("Content-Length")
    if size is None or not size.isdecimal():
        raise EngineRefused("The container engine did not report the file's size")
    return GuestFile(kind=kind, mode=mode, size_bytes=int(size), content=_pieces(response))


def _range(bytes_max: int) -> dict[str, str]:
    return {"Range": f"bytes=-{bytes_max}"}


def _last(response: HTTPResponse, bytes_max: int) -> bytes:
    """Return the end of a complete response, without keeping more in memory than needed."""
    kept = b""
    for piece in _pieces(response):
        kept = (kept + piece)[-bytes_max:]
    return kept


def _pieces(response: HTTPResponse) -> Iterator[bytes]:
    while piece := response.read(PIECE_BYTES):
        yield piece


def _names(response: HTTPResponse) -> tuple[str, ...]:
    content = response.read(FOLDER_BYTES_MAX + 1)
    if len(content) > FOLDER_BYTES_MAX:
        raise EngineRefused("The folder has too many entries", hint="Copy parts of it instead")
    try:
        return tuple(sorted(msgspec.json.decode(content, type=_Names).metadata or ()))
    except msgspec.DecodeError as error:
        raise EngineRefused("The folder contains a name that cannot be read", hint="Rename it") from error


def _kind(response: HTTPResponse) -> FileKind:
    return _KINDS.get(_said(response, "type"), FileKind.FILE)


def _said(response: HTTPResponse, word: str) -> str:
    return response.getheader(f"X-LXD-{word}") or response.getheader(f"X-Incus-{word}") or ""
