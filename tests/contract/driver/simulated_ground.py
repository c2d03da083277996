"""The simulated engine as a test ground, in all its forms."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.contract.driver.grounds import Ground

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.cloud import SimulatedCloud
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.store import FileWorld
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld, World
from teraflock.instance.driver import Machine, Port

FORMS = ("memory", "file", "cloud", "late-cloud")
TYPES = "small=0@east:0.05"
LISTING_SECONDS = 20.0


class SimulatedSurroundings:
    real = False
    image = "img_base"
    image_broken = "img_broken"

    def __init__(self, name: str, world: World, clock: FixedClock) -> None:
        self.name = name
        self.world = world
        self.clock = clock
        self.trouble = Trouble(world)

    def pass_time(self, seconds: float) -> None:
        self.clock.move(timedelta(seconds=seconds))

    def port_answers(self, machine: Machine, port: Port) -> bool:
        with self.world.read() as turn:
            found = [each for each in turn.every(Guest) if each.machine.id == machine.id]
        return any(each.running and port in each.ports for each in found)


def _cloud(world: World, clock: FixedClock, *, late: bool) -> SimulatedEngine:
    return SimulatedCloud(
        world, clock, types=TYPES, mark="contract", boot_seconds=0.8, listing_seconds=LISTING_SECONDS * late
    )


@contextmanager
def simulated_ground(form: str, folder: Path) -> Iterator[Ground]:
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    world: World = FileWorld(folder / "world.db") if form == "file" else MemoryWorld()
    around = SimulatedSurroundings(form, world, clock)
    driver = (
        SimulatedEngine(world, clock, fleet("2x4xV100"), mark="contract", boot_seconds=0.8)
        if form in ("memory", "file")
        else _cloud(world, clock, late=form == "late-cloud")
    )
    driver.build_image(around.image, "base")
    driver.build_image(around.image_broken, "does-not-boot")
    try:
        ground = Ground(driver, around)
        yield ground
        ground.clear()
    finally:
        world.close()
