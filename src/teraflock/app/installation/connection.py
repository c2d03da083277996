"""`connection.json`: the server and the key that the commands use. Readable only by its owner."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from teraflock.base.errors import BadInput, BrokenSource


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    """For example `http://127.0.0.1:8372`."""
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
            f"Could not read `{path}`: {error}", hint="Remove it; `make up` then writes a new one"
        ) from None


def find(path: Path, environment: Mapping[str, str]) -> Connection | None:
    """The connection from the environment, or from the file. `BadInput` if the environment has only one of the two."""
    server, key = environment.get("TERA_SERVER", "").rstrip("/"), environment.get("TERA_KEY", "")
    if server and key:
        return Connection(server=server, key=key)
    kept = read(path)
    if server and kept and kept.server == server:
        return kept
    if server or (key and not kept):
        missing = "TERA_KEY" if server else "TERA_SERVER"
        raise BadInput(f"`{missing}` is not set", hint="Set both `TERA_SERVER` and `TERA_KEY`")
    return Connection(server=kept.server, key=key or kept.key) if kept else None


def write(path: Path, connection: Connection) -> None:
    put_secret(path, msgspec.json.format(msgspec.json.encode(connection), indent=2) + b"\n")


def put_secret(path: Path, content: bytes) -> None:
    """Write a file atomically, and never readable by others, not even for a moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    temporary.unlink(missing_ok=True)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
