"""What a joined host stores: its key and certificate, and how to open its engine. All in one folder.

The key is written before it is used, and the rest only when the server has accepted the host, each in one step. After
a crash, `tera host join` continues with the same key.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from teraflock.app.files import put
from teraflock.app.home import home
from teraflock.base.errors import BadInput, Refused
from teraflock.drivers.joined.authority import Identity, new_key

FOLDER: Final = "host"


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str
    """At which the server and the users of published ports reach this host."""
    listen: str
    """Address and port of the host program."""
    mark: str
    engine: str
    """The kind of its engine: `lxd` or `simulated`."""
    options: dict[str, str]
    """Options of the engine's driver."""
    server: str
    """Where it joined, for people."""
    certificate: str
    authority: str


class HostPlaces:
    """Paths only. Creates nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self.home = folder or Path(home())
        self.folder = self.home / FOLDER
        self.config = self.folder / "host.json"
        self.key = self.folder / "host.key"
        self.log = self.folder / "host.log"
        self.pid = self.folder / "host.pid"
        self.lock = self.folder / "host.lock"


def key_of(places: HostPlaces) -> str:
    """The key of this host. Create it if there is none."""
    places.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return places.key.read_text("ascii")
    except FileNotFoundError:
        put(places.key, new_key().encode(), mode=0o600)
        return places.key.read_text("ascii")


def read_config(places: HostPlaces) -> HostConfig | None:
    try:
        return msgspec.json.decode(places.config.read_bytes(), type=HostConfig)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise Refused(f"Only root can read `{places.config}`") from None
    except msgspec.DecodeError:
        raise BadInput(
            f"`{places.config}` is damaged", hint="Run `tera host leave`, then join again with a new token"
        ) from None


def joined_config(places: HostPlaces) -> HostConfig:
    found = read_config(places)
    if found is None:
        raise Refused(
            "This machine has not joined a server",
            hint="Run `tera host add` on the server. It prints the command to run here",
        )
    return found


def write_config(places: HostPlaces, config: HostConfig) -> None:
    put(places.config, msgspec.json.format(msgspec.json.encode(config)), mode=0o600)


def identity_of(places: HostPlaces, config: HostConfig) -> Identity:
    return Identity(certificate=config.certificate, key=key_of(places), authority=config.authority)


def forget(places: HostPlaces) -> None:
    """Remove what identifies this host. Logs stay."""
    for path in (places.config, places.key, places.pid, places.lock):
        path.unlink(missing_ok=True)


def is_root() -> bool:
    return os.geteuid() == 0
