"""`tera host serve`: the program on a joined host. It opens the host's engine and serves it to the server.

The engine's own driver does all the work; nothing is stored here. If it is killed, guests keep running, and the server
finds the host away until the program is back.
"""

import fcntl
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from teraflock.app.engines import lxd_options
from teraflock.app.files import put
from teraflock.app.installation import engine
from teraflock.app.installation.keeper import EngineKeeper
from teraflock.app.installation.places import Places
from teraflock.app.joining.config import HostConfig, HostPlaces, identity_of, joined_config
from teraflock.app.joining.releases import Releases
from teraflock.app.settings import Place, address_of, load_settings
from teraflock.base.clock import SystemClock
from teraflock.base.errors import Conflict, TeraflockError, Unavailable
from teraflock.drivers.joined.authority import host_context
from teraflock.drivers.joined.frames import Upgrade
from teraflock.drivers.joined.serving import BACKLOG, HostServer
from teraflock.drivers.opening import Opening
from teraflock.drivers.registry import kind, open_site
from teraflock.instance.driver import ComputeDriver

LOG: Final = logging.getLogger("teraflock.host")
ENGINE_FOLDER: Final = "engine"
KEEP_SECONDS: Final = 2.0
FINISH_SECONDS_MAX: Final = 20.0
"""How long calls in progress delay the end of the program. All of them can be repeated."""
ANSWER_SECONDS: Final = 0.5
"""Between an upgrade and the restart: the server gets its answer."""


def serve(places: HostPlaces) -> None:
    """Serve until a signal arrives. After an upgrade, become the new version."""
    releases = Releases(places)
    newer = releases.newer()
    if newer is None:
        _serve(places, releases)
        newer = releases.newer()
    if newer is not None:
        releases.run(newer)


def check() -> None:
    """Load all that the host program needs, without touching the engine. An upgrade tries a new version with it."""
    kind(joined_config(HostPlaces()).engine)


def _serve(places: HostPlaces, releases: Releases) -> None:
    config = joined_config(places)
    logging.basicConfig(
        stream=sys.stderr, level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    with _alone(places), _listening(config) as listener:
        _prepare(places, config)
        driver = _driver(places, config)
        ending = threading.Event()
        server = HostServer(
            driver,
            host_context(identity_of(places, config)),
            listener,
            now=SystemClock().now,
            install=partial(_install, releases, ending),
        )
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: ending.set())
        put(places.pid, f"{os.getpid()}\n".encode())
        server.start()
        LOG.info("the host %s listens on %s", config.name, config.listen)
        keeper = _keeper(places, config)
        while not ending.wait(KEEP_SECONDS):
            if keeper is not None:
                keeper.turn()
        server.stop()
        server.finish(FINISH_SECONDS_MAX)


def _install(releases: Releases, ending: threading.Event, request: Upgrade, content: bytes) -> None:
    releases.install(request, content)
    LOG.info("version %s is installed", request.version)
    threading.Timer(ANSWER_SECONDS, ending.set).start()


def _driver(places: HostPlaces, config: HostConfig) -> ComputeDriver:
    folder = places.folder / ENGINE_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    own = lxd_options(load_settings(Place(places.home))) if config.engine == "lxd" else {}
    options = {**own, **config.options, "host_name": config.name, "host_address": config.address}
    opening = Opening(name=config.name, options=options, folder=folder, mark=config.mark, clock=SystemClock())
    return open_site(config.engine, opening)


def _prepare(places: HostPlaces, config: HostConfig) -> None:
    """Start the engine after a boot. The program runs without it, too, and says that it is down."""
    if config.engine != "lxd":
        return
    own = Places(places.home)
    try:
        engine.prepared(engine.choose(own), own)
    except TeraflockError as error:
        LOG.warning("%s", error.sentence)


def _keeper(places: HostPlaces, config: HostConfig) -> EngineKeeper | None:
    """Restarts our own engine if it dies. An engine that existed before us is left alone."""
    own = Places(places.home)
    if config.engine != "lxd" or Path(config.options.get("socket", "")).parent != own.lxd:
        return None
    return EngineKeeper(own, None, SystemClock(), os.urandom)


@contextmanager
def _listening(config: HostConfig) -> Iterator[socket.socket]:
    host, port = address_of(config.listen)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise Unavailable(
            f"The host program cannot listen on `{config.listen}`: {error.strerror}",
            hint="Another program uses the port. Leave and join again with `--listen ADDRESS:PORT`",
        ) from None
    with listener:
        yield listener


@contextmanager
def _alone(places: HostPlaces) -> Iterator[None]:
    with places.lock.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict("The host program is already running here") from None
        yield
