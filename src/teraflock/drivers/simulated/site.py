"""Opens simulated sites. Nothing real runs there, and everything they show is marked as simulated."""

from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.drivers.opening import DriverKind, Opening, truth
from teraflock.drivers.simulated import faults
from teraflock.drivers.simulated.cloud import SimulatedCloud
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Weather
from teraflock.drivers.simulated.store import FileWorld
from teraflock.drivers.simulated.types import TYPES
from teraflock.fleet.model import HostReport

HOSTS: Final = "4x8xV100,2x0"
BOOT_SECONDS: Final = 0.5
LAUNCH_SECONDS: Final = 20.0
WORLD_NAME: Final = "simulated-world.db"
"""File name for the site named `simulated`. Other sites have their name in the file name."""


def world_name(site: str) -> str:
    return WORLD_NAME if site == "simulated" else f"simulated-{site}.db"


def _open(opening: Opening) -> SimulatedEngine:
    """Open an engine whose world is a file in the folder. A `killed` fault ends this process."""
    style = opening.options.get("style") or "own"
    if style not in ("own", "cloud"):
        raise BadInput(f"Unknown style `{style}` of a simulated site", hint="Use `own` or `cloud`")
    wanted = faults.parse(opening.options.get("faults", ""))
    hosts = _named(fleet(opening.options.get("hosts") or HOSTS), opening)
    boot_seconds = opening.option("boot_seconds", BOOT_SECONDS, float)
    world = FileWorld(opening.folder / world_name(opening.name))
    with world.write() as turn:
        if turn.get(Weather, "weather") is None:
            turn.put(Weather(faults=wanted))
    if style == "own":
        return SimulatedEngine(
            world,
            opening.clock,
            hosts,
            site=opening.name,
            mark=opening.mark,
            boot_seconds=boot_seconds,
            kill=faults.kill_this_process,
        )
    return SimulatedCloud(
        world,
        opening.clock,
        types=opening.options.get("types") or TYPES,
        site=opening.name,
        mark=opening.mark,
        boot_seconds=boot_seconds,
        launch_seconds=opening.option("launch_seconds", LAUNCH_SECONDS, float),
        listing_seconds=opening.option("listing_seconds", 0.0, float),
        tokens=opening.option("tokens", True, truth),
        kill=faults.kill_this_process,
    )


def _named(hosts: tuple[HostReport, ...], opening: Opening) -> tuple[HostReport, ...]:
    """The only host of a joined machine has the name and address that it joined with."""
    name, address = opening.options.get("host_name", ""), opening.options.get("host_address", "")
    if not name:
        return hosts
    if len(hosts) != 1:
        raise BadInput("A joined machine is one host", hint="Write the simulated host as `1x8xV100`")
    return (replace(hosts[0], name=name, address=address or hosts[0].address),)


DRIVER: Final = DriverKind(
    summary="Simulated hosts or a simulated cloud, for trying things out. Nothing real runs",
    options={
        "host_name": "With `own`: the name of the only host",
        "host_address": "With `own`: the address of the only host",
        "style": "`own`: hosts on which Teraflock places instances. `cloud`: machine types to rent",
        "hosts": "With `own`: the fleet, such as `4x8xV100,2x0`",
        "types": "With `cloud`: machine types, such as `gpu-1=1xA100-80@east:1.29/0.45`",
        "boot_seconds": "How long a guest takes to answer after it starts to boot",
        "launch_seconds": "With `cloud`: how long a machine takes before it boots",
        "listing_seconds": "With `cloud`: how long until listings show a new machine",
        "tokens": "With `cloud`: whether launch tokens are honoured, `true` or `false`",
        "faults": "Faults to inject, such as `create:after:engine-down`; added once to a new world",
    },
    open=_open,
)
