"""Opens a site on the LXD or Incus of this machine."""

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.base.quantities import GIB
from teraflock.drivers.lxd import daemon, nvidia
from teraflock.drivers.lxd.confinement import Surface
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.flood import FloodLimits
from teraflock.drivers.lxd.hand_over import HandOver
from teraflock.drivers.lxd.network import FLOOD_LIMITS
from teraflock.drivers.lxd.setup import PoolWish
from teraflock.drivers.opening import DriverKind, Opening, truth
from teraflock.host.cleaning import clean
from teraflock.host.inspect import host_report

LOG: Final = logging.getLogger("teraflock.engines")
IMAGE_FOLDER: Final = "images"
DRIVER_FOLDER: Final = "nvidia"
WIRE_FOLDER: Final = "wire"
CARDS_FOLDER: Final = "cards"
POOL_GB: Final = 64
MOULD_STOCK: Final = 8
CONNECTIONS: Final = FLOOD_LIMITS.connections_per_second
PACKETS: Final = FLOOD_LIMITS.packets_per_second
RATE_MAX: Final = 100_000_000
SET_UP_AGAIN_SECONDS: Final = 5.0


def driver_of(opening: Opening) -> Lxd:
    """Create the driver from its options, without setting anything up."""
    given = opening.options.get("socket", "")
    socket = Path(given) if given else daemon.find(os.environ)
    if socket is None:
        raise daemon.NoEngine(
            "No LXD or Incus answers on this machine",
            hint="Set one up with `make up`, or run without one: `TERA_ENGINE=simulated`",
        )
    folder = opening.folder
    pool_gb = opening.option("pool_gb", POOL_GB, int)
    return Lxd(
        socket,
        opening.mark,
        site=opening.name,
        host=opening.options.get("host_name", ""),
        member=opening.options.get("member", ""),
        report=partial(
            host_report,
            name=opening.options.get("host_name", ""),
            address=opening.options.get("host_address", ""),
        ),
        image_cache=folder / IMAGE_FOLDER,
        driver_folder=None if nvidia.engine_provides_it(socket) else folder / DRIVER_FOLDER,
        now=lambda: int(opening.clock.now().timestamp()),
        pool=PoolWish(size_bytes=pool_gb * GIB, source=opening.options.get("pool_source", "")),
        way_out=opening.option("guests_reach_out", True, truth),
        surface=Surface(
            user_namespaces=opening.option("guest_user_namespaces", False, truth),
            io_uring=opening.option("guest_io_uring", False, truth),
            bpf=opening.option("guest_bpf", False, truth),
        ),
        hand_over=HandOver(folder / CARDS_FOLDER, clean),
        wire_folder=folder / WIRE_FOLDER,
        stock=opening.option("mould_stock", MOULD_STOCK, int),
        flood_limits=FloodLimits(
            connections_per_second=opening.option("guest_connections_per_second", CONNECTIONS, _rate),
            packets_per_second=opening.option("guest_packets_per_second", PACKETS, _rate),
            connections_max=opening.option("guest_connections_max", FLOOD_LIMITS.connections_max, _rate),
        ),
    )


def _rate(text: str) -> int:
    number = int(text)
    if not 0 <= number <= RATE_MAX:
        raise ValueError(text)
    return number


def _open(opening: Opening) -> Lxd:
    driver = driver_of(opening)
    _set_up(driver.set_up)
    return driver


def _set_up(set_up: Callable[[], None]) -> None:
    """Set up now if the engine answers, else as soon as it does. The server answers even while its engine is
    down."""
    try:
        set_up()
    except TeraflockError as error:
        LOG.warning("cannot set up the engine yet: %s", error.sentence)
        thread = threading.Timer(SET_UP_AGAIN_SECONDS, _set_up, (set_up,))
        thread.daemon = True
        thread.start()


DRIVER: Final = DriverKind(
    summary="LXD or Incus on this machine",
    options={
        "host_name": "Name of this host. Empty: the name of the machine",
        "host_address": "Address of this host for published ports. Empty: the one of the default route",
        "socket": "Unix socket of the engine. Empty: the usual places",
        "member": "Name of the engine in its cluster. Empty: it is in none",
        "pool_gb": "Size of the file for guests' disks, when it is created",
        "pool_source": "A disk, partition or btrfs folder for guests' disks instead of a file",
        "guests_reach_out": "Whether instances can reach the internet",
        "guest_user_namespaces": "Whether instances may create user namespaces",
        "guest_io_uring": "Whether instances may use io_uring",
        "guest_bpf": "Whether instances may use bpf(2)",
        "guest_connections_per_second": "How many connections an instance may open, and accept, per second. 0: any",
        "guest_packets_per_second": "How many packets an instance may send, and receive, per second. 0: any",
        "guest_connections_max": "How many connections of an instance are tracked at a time. 0: any",
        "mould_stock": "How many copies of each image to prepare ahead of time",
    },
    open=_open,
)
