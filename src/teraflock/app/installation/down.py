"""`make down` and `make purge`: stop what runs, and remove what we created, nothing else.

Everything we created on an engine has the mark of our installation. Everything we created on disk is in the folders
`cloud`, `host` and `ssh` of `TERA_HOME`, and in the folder of our own engine. Prices and plans next to them stay.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from teraflock.app.engines import engine_mark
from teraflock.app.installation import background, connection, engine, removal, unit
from teraflock.app.installation.places import Places
from teraflock.app.installation.up import server_url
from teraflock.app.joining import departure
from teraflock.app.joining.background import stop as stop_host
from teraflock.app.joining.config import HostPlaces
from teraflock.app.settings import Settings, load_settings
from teraflock.base.clock import SystemClock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd.daemon import Daemon
from teraflock.drivers.lxd.names import Names
from teraflock.storage.open import open_database
from teraflock.tenant.installation.store import installation_id

OnProgress = Callable[[str], None]


class DownResult(msgspec.Struct, frozen=True, kw_only=True):
    server: bool
    """Whether the server was running."""
    daemon: bool
    """Whether our own engine was running."""
    guests: int
    """The number of stopped guests, if known."""
    foreign: bool = False
    """Whether the engine is not ours and keeps running."""


def down(places: Places, on_progress: OnProgress, *, guests_too: bool) -> DownResult:
    on_progress("server")
    server = background.stop(places)
    settings = kept_settings(places)
    if settings is None or settings.engine != "lxd":
        return DownResult(server=server, daemon=False, guests=0)
    on_progress("engine")
    guests = 0
    socket, installation = Path(settings.lxd_socket), installation_of(places, settings)
    if guests_too and installation:
        guests = removal.stop_guests(socket, installation)
    is_ours = socket.parent == places.lxd
    stopped = is_ours and engine.stop(places, guests_too=guests_too)
    return DownResult(server=server, daemon=stopped, guests=guests, foreign=not is_ours)


def purge(places: Places, on_progress: OnProgress) -> list[str]:
    """Returns what we cannot remove, in sentences."""
    on_progress("server")
    background.stop(places)
    unit.remove(places)
    _purge_host(places, on_progress)
    settings = kept_settings(places)
    left: list[str] = []
    if settings and settings.engine == "lxd":
        on_progress("engine")
        installation = installation_of(places, settings)
        _purge_engine(places, Path(settings.lxd_socket), Names(installation) if installation else None)
    elif places.engine.exists():  # left by an engine that never answered
        Daemon(places.lxd).stop()
        removal.unmount_below(places.engine)
    if settings and "://" in settings.database:
        left.append(
            f"The tables in {settings.database.rpartition('@')[2]} remain. Drop that database yourself"
        )
    on_progress("files")
    _purge_connection(places, settings)
    for folder in (places.engine, places.ssh, places.cloud):  # the settings go last: they say what to remove
        _remove(folder)
    places.lock.unlink(missing_ok=True)
    for folder in (places.engine.parent, places.home):
        with suppress(OSError):  # it contains other files, or does not exist
            folder.rmdir()
    return left


def _purge_host(places: Places, on_progress: OnProgress) -> None:
    """Remove what a joined host has, and its host program."""
    host = HostPlaces(places.home)
    if not host.folder.exists():
        return
    on_progress("host program")
    stop_host(host)
    config = departure.config_of_engine(host)
    if config is not None:
        _purge_engine(places, Path(config.options["socket"]), departure.names_of(config))
    departure.remove_files(host)


def _purge_engine(places: Places, socket: Path, ours: Names | None) -> None:
    is_ours = socket.parent == places.lxd
    if is_ours and places.lxd.exists():
        Daemon(places.lxd).ensure()  # only the daemon itself can remove its guests and pools
    if ours:
        removal.remove_all(socket, ours)
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
    """The mark of everything we created on an engine; empty if there is no database."""
    address = places.server.database(settings)
    if "://" not in address and not Path(address).exists():
        return ""
    database = open_database(address, SystemClock())
    try:
        with database.read() as tx:
            return engine_mark(installation_id(tx) or "")
    finally:
        database.close()
