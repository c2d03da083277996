"""`connection.json`: which server the commands speak to and with which key. Readable by its owner alone."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from teraflock.base.errors import BadInput, BrokenSource


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    """Such as `http://127.0.0.1:8372`."""
    key: str


def read(path: Path) -> Connection | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=Connection)
    except msgspec.MsgspecError as error:
        raise BrokenSource(
            f"`{path}` cannot be read: {error}", hint="`make up` writes it anew once it is removed"
        ) from None


def find(path: Path, environment: Mapping[str, str]) -> Connection | None:
    """What the environment names, else what the file does. `BadInput` where the environment says half of it."""
    server, key = environment.get("TERA_SERVER", "").rstrip("/"), environment.get("TERA_KEY", "")
    if server and key:
        return Connection(server=server, key=key)
    kept = read(path)
    if server and kept and kept.server == server:
        return kept
    if server or (key and not kept):
        missing = "TERA_KEY" if server else "TERA_SERVER"
        raise BadInput(f"`{missing}` is not set", hint="`TERA_SERVER` and `TERA_KEY` belong together")
    return Connection(server=kept.server, key=key or kept.key) if kept else None


def write(path: Path, connection: Connection) -> None:
    put_secret(path, msgspec.json.format(msgspec.json.encode(connection), indent=2) + b"\n")


def put_secret(path: Path, content: bytes) -> None:
    """Whole or not at all, and never, not even for a moment, readable by others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    beside.unlink(missing_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
