"""`make down` and `make purge`: stop what runs; remove what was made, and nothing else.

What we made on an engine bears our installation's mark. What we made on disk lies in `<TERA_HOME>/cloud`,
`<TERA_HOME>/ssh` and the folder of our own engine; prices and plans, which lie beside them, stay.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from teraflock.app.engines import engine_mark
from teraflock.app.house import background, connection, engine, removal, unit
from teraflock.app.house.places import Places
from teraflock.app.house.up import server_url
from teraflock.app.settings import Settings, load_settings
from teraflock.base.clock import SystemClock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd.daemon import Daemon
from teraflock.storage.open import open_database
from teraflock.tenant.installation.store import installation_id

Tell = Callable[[str], None]


class Fallen(msgspec.Struct, frozen=True, kw_only=True):
    server: bool
    """Whether it ran."""
    daemon: bool
    """Whether an LXD of ours ran."""
    guests: int
    """How many guests were stopped, as far as they are counted."""
    foreign: bool = False
    """Whether the engine is another's and runs on."""


def down(places: Places, tell: Tell, *, guests_too: bool) -> Fallen:
    tell("server")
    server = background.stop(places)
    settings = kept_settings(places)
    if settings is None or settings.engine != "lxd":
        return Fallen(server=server, daemon=False, guests=0)
    tell("engine")
    guests = 0
    socket, installation = Path(settings.lxd_socket), installation_of(places, settings)
    if guests_too and installation:
        guests = removal.stop_guests(socket, installation)
    is_ours = socket.parent == places.lxd
    stopped = is_ours and engine.stop(places, guests_too=guests_too)
    return Fallen(server=server, daemon=stopped, guests=guests, foreign=not is_ours)


def purge(places: Places, tell: Tell) -> list[str]:
    """What is left that we cannot remove, in sentences."""
    tell("server")
    background.stop(places)
    unit.remove(places)
    settings = kept_settings(places)
    left: list[str] = []
    if settings and settings.engine == "lxd":
        tell("engine")
        _purge_engine(places, settings)
    elif places.engine.exists():  # of an engine that never answered
        Daemon(places.lxd).stop()
        removal.unmount_below(places.engine)
    if settings and "://" in settings.database:
        left.append(f"The tables in {settings.database.rpartition('@')[2]} stay; drop that database yourself")
    tell("files")
    _purge_connection(places, settings)
    for folder in (places.engine, places.ssh, places.cloud):  # the settings, which say what there is, go last
        _remove(folder)
    places.lock.unlink(missing_ok=True)
    for folder in (places.engine.parent, places.home):
        with suppress(OSError):  # others' things are in it, or it never was
            folder.rmdir()
    return left


def _purge_engine(places: Places, settings: Settings) -> None:
    socket, installation = Path(settings.lxd_socket), installation_of(places, settings)
    is_ours = socket.parent == places.lxd
    if is_ours and places.lxd.exists():
        Daemon(places.lxd).ensure()  # it alone knows how to take its guests and pools apart
    if installation:
        removal.remove_all(socket, installation)
    if is_ours:
        engine.stop(places, guests_too=True)
        removal.unmount_below(places.lxd)
        removal.remove_empty_tables()


def _purge_connection(places: Places, settings: Settings | None) -> None:
    try:
        kept = connection.read(places.connection)
    except TeraflockError:
        return
    if kept and (kept.key == _operator_key(places) or (settings and kept.server == server_url(settings))):
        places.connection.unlink(missing_ok=True)


def _operator_key(places: Places) -> str:
    try:
        return places.operator_key.read_text("ascii").strip()
    except OSError:
        return ""


def _remove(folder: Path) -> None:
    if not folder.is_dir():
        return
    removal.refuse_mounts_below(folder)
    shutil.rmtree(folder)


def kept_settings(places: Places) -> Settings | None:
    return load_settings(places.server) if places.settings.exists() else None


def installation_of(places: Places, settings: Settings) -> str:
    """The mark of all we made on an engine; empty where the database never came to be."""
    address = places.server.database(settings)
    if "://" not in address and not Path(address).exists():
        return ""
    database = open_database(address, SystemClock())
    try:
        with database.read() as tx:
            return engine_mark(installation_id(tx) or "")
    finally:
        database.close()
