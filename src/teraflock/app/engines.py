"""The engines of a server, from its settings. The one place that knows which drivers there are."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from teraflock.app.settings import Place, Settings
from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.base.quantities import GIB
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engines import Engines

if TYPE_CHECKING:
    from teraflock.drivers.lxd.driver import Lxd

LOG: Final = logging.getLogger("teraflock.engines")
FOLDER: Final = "engine"
IMAGE_FOLDER: Final = "images"
DRIVER_FOLDER: Final = "nvidia"
CARDS_FOLDER: Final = "cards"
SET_UP_AGAIN_SECONDS: Final = 5.0


def engine_mark(installation_id: str) -> str:
    """What all that an installation makes on an engine bears: its id without the prefix."""
    return installation_id.partition("_")[2]


def open_engines(at: Place, settings: Settings, installation_id: str, clock: Clock) -> Engines:
    folder = at.folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if settings.engine == "simulated":
        return Engines([_simulated(folder, settings, installation_id, clock)])
    return Engines([_lxd(folder, settings, installation_id, clock)])


def _simulated(folder: Path, settings: Settings, installation_id: str, clock: Clock) -> ComputeDriver:
    from teraflock.drivers.simulated.open import open_simulated  # only the engine that is used is loaded

    words = {
        "TERA_SIMULATED_HOSTS": settings.simulated_hosts,
        "TERA_SIMULATED_BOOT_SECONDS": str(settings.simulated_boot_seconds),
        "TERA_SIMULATED_FAULTS": settings.simulated_faults,
    }
    return open_simulated(folder, words, clock, mark=engine_mark(installation_id))


def _lxd(folder: Path, settings: Settings, installation_id: str, clock: Clock) -> "Lxd":
    driver = lxd_driver(folder, settings, installation_id, clock)
    _set_up(driver.set_up)
    return driver


def lxd_driver(folder: Path, settings: Settings, installation_id: str, clock: Clock) -> "Lxd":
    """The driver as the settings want it; nothing is set up by it."""
    import os

    from teraflock.drivers.lxd import daemon, nvidia  # as above
    from teraflock.drivers.lxd.confinement import Surface
    from teraflock.drivers.lxd.driver import Lxd
    from teraflock.drivers.lxd.hand_over import HandOver
    from teraflock.drivers.lxd.setup import PoolWish
    from teraflock.host.cleaning import clean
    from teraflock.host.inspect import host_report

    socket = Path(settings.lxd_socket) if settings.lxd_socket else daemon.find(os.environ)
    if socket is None:
        raise daemon.NoEngine(
            "No LXD or Incus answers on this machine",
            hint="`make up` sets one up; `TERA_ENGINE=simulated` runs without",
        )
    return Lxd(
        socket,
        engine_mark(installation_id),
        report=host_report,
        image_cache=folder / IMAGE_FOLDER,
        driver_folder=None if nvidia.engine_brings_it(socket) else folder / DRIVER_FOLDER,
        now=lambda: int(clock.now().timestamp()),
        pool=PoolWish(size_bytes=settings.pool_gb * GIB, source=settings.pool_source),
        way_out=settings.guests_reach_out,
        surface=Surface(
            user_namespaces=settings.guest_user_namespaces,
            io_uring=settings.guest_io_uring,
            bpf=settings.guest_bpf,
        ),
        hand_over=HandOver(folder / CARDS_FOLDER, clean),
        stock=settings.mould_stock,
    )


def _set_up(set_up: Callable[[], None]) -> None:
    """Now if the engine answers, else as soon as it does: a server answers even while its engine is away."""
    try:
        set_up()
    except TeraflockError as error:
        LOG.warning("the engine is not set up yet: %s", error.sentence)
        thread = threading.Timer(SET_UP_AGAIN_SECONDS, _set_up, (set_up,))
        thread.daemon = True
        thread.start()
