"""The simulated engine of a server, from its settings.

TERA_SIMULATED_HOSTS           the fleet, such as `4x8xV100,2x0`
TERA_SIMULATED_BOOT_SECONDS    how long a guest takes to answer
TERA_SIMULATED_FAULTS          what goes wrong, see `faults.py`; put into a new world once
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput
from teraflock.drivers.simulated import faults
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Weather
from teraflock.drivers.simulated.store import FileWorld

HOSTS: Final = "4x8xV100,2x0"
BOOT_SECONDS: Final = "0.5"
WORLD_NAME: Final = "simulated-world.db"


def open_simulated(
    folder: Path, settings: Mapping[str, str], clock: Clock, *, mark: str = "", site: str = "simulated"
) -> SimulatedEngine:
    """An engine whose world lies in `folder`. Faults that kill take this very process."""
    hosts = fleet(settings.get("TERA_SIMULATED_HOSTS") or HOSTS)
    seconds = settings.get("TERA_SIMULATED_BOOT_SECONDS") or BOOT_SECONDS
    wanted = faults.parse(settings.get("TERA_SIMULATED_FAULTS", ""))
    try:
        boot_seconds = float(seconds)
    except ValueError:
        raise BadInput(
            f"TERA_SIMULATED_BOOT_SECONDS is `{seconds}`", hint="Give it a number of seconds"
        ) from None
    world = FileWorld(folder / WORLD_NAME)
    with world.write() as turn:
        if turn.get(Weather, "weather") is None:
            turn.put(Weather(faults=wanted))
    return SimulatedEngine(
        world, clock, hosts, site=site, mark=mark, boot_seconds=boot_seconds, kill=faults.kill_this_process
    )
