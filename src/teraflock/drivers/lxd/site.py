"""Opens a site on the LXD or Incus of this machine."""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.base.quantities import GIB
from teraflock.drivers.lxd import daemon, nvidia
from teraflock.drivers.lxd.confinement import Surface
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.hand_over import HandOver
from teraflock.drivers.lxd.setup import PoolWish
from teraflock.drivers.opening import DriverKind, Opening, truth
from teraflock.host.cleaning import clean
from teraflock.host.inspect import host_report

LOG: Final = logging.getLogger("teraflock.engines")
IMAGE_FOLDER: Final = "images"
DRIVER_FOLDER: Final = "nvidia"
CARDS_FOLDER: Final = "cards"
POOL_GB: Final = 64
MOULD_STOCK: Final = 8
SET_UP_AGAIN_SECONDS: Final = 5.0


def driver_of(opening: Opening) -> Lxd:
    """The driver as its options want it. Nothing is set up by it."""
    given = opening.options.get("socket", "")
    socket = Path(given) if given else daemon.find(os.environ)
    if socket is None:
        raise daemon.NoEngine(
            "No LXD or Incus answers on this machine",
            hint="`make up` sets one up; `TERA_ENGINE=simulated` runs without",
        )
    folder = opening.folder
    pool_gb = opening.option("pool_gb", POOL_GB, int)
    return Lxd(
        socket,
        opening.mark,
        site=opening.name,
        report=host_report,
        image_cache=folder / IMAGE_FOLDER,
        driver_folder=None if nvidia.engine_brings_it(socket) else folder / DRIVER_FOLDER,
        now=lambda: int(opening.clock.now().timestamp()),
        pool=PoolWish(size_bytes=pool_gb * GIB, source=opening.options.get("pool_source", "")),
        way_out=opening.option("guests_reach_out", True, truth),
        surface=Surface(
            user_namespaces=opening.option("guest_user_namespaces", False, truth),
            io_uring=opening.option("guest_io_uring", False, truth),
            bpf=opening.option("guest_bpf", False, truth),
        ),
        hand_over=HandOver(folder / CARDS_FOLDER, clean),
        stock=opening.option("mould_stock", MOULD_STOCK, int),
    )


def _open(opening: Opening) -> Lxd:
    driver = driver_of(opening)
    _set_up(driver.set_up)
    return driver


def _set_up(set_up: Callable[[], None]) -> None:
    """Now if the engine answers, else as soon as it does: a server answers even while its engine is away."""
    try:
        set_up()
    except TeraflockError as error:
        LOG.warning("the engine is not set up yet: %s", error.sentence)
        thread = threading.Timer(SET_UP_AGAIN_SECONDS, _set_up, (set_up,))
        thread.daemon = True
        thread.start()


DRIVER: Final = DriverKind(
    summary="LXD or Incus on this machine",
    options={
        "socket": "Its Unix socket; empty: the usual places",
        "pool_gb": "Size of the file for guests' disks, when it is made",
        "pool_source": "A disk, partition or btrfs folder for guests' disks instead of a file",
        "guests_reach_out": "Whether instances reach the internet",
        "guest_user_namespaces": "Whether instances may make user namespaces",
        "guest_io_uring": "Whether instances may use io_uring",
        "guest_bpf": "Whether instances may use bpf(2)",
        "mould_stock": "How many copies of each image are prepared ahead of time",
    },
    open=_open,
)
